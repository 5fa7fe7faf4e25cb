"""Sizes that decide how a table is fitted."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class TableSizes:
    """Sizes and thresholds, read when a table is fitted, so that tests can change them."""

    # Tables of more columns must hold numbers only, and gaps are filled at once.
    max_encoded_columns: int = 10_000
    # Widths of the paper's network that cross-validation chooses from, as in the paper.
    paper_widths: tuple[int, ...] = (1, 2, 3, 5, 10, 20, 30, 50, 80, 100, 200, 500)
    # Cross-validation folds that choose the width of the paper's network.
    paper_folds: int = 10
    # Rows of a large file that the encoding is fitted on, and the most rows that are held out.
    sample_rows: int = 10_000
    # Hidden units of a network for rows that memory does not hold even in single precision.
    hidden_units: int = 1000
    # Share of this machine's memory that a table in memory may need.
    memory_share: float = 0.5
    # Share of this machine's memory that the text of a table may take.
    text_share: float = 0.25


SIZES = TableSizes()
