"""The settings of the search: sizes and margins that were chosen on many tables."""
from __future__ import annotations
from dataclasses import dataclass

@dataclass(frozen=True)
class Settings:
    n_folds: int = 5
    starts_rows: float = 60000.0
    shaping_share: float = 0.8      # of rows outside the fold
    shaping: int = 32000            # rows that shape metrics, of all starts
    judging: int = 8000             # rows that judge, of all starts
    first_rows: int = 1000          # rows that compare views before they have a metric
    view_margin: float = 0.1
    n_views: int = 3
    second_view: float = 0.05
    comparing_rows: int = 500
    patience: int = 1
    most_rounds: int = 10
    gain: float = 0.01
    gain_of_leaf: float = 0.05
    most_search_leaf: int = 2000
    leaf: int = 1000
    tuned_rows: int = 400
    n_tuned_leaves: int = 2
    metric_rows: int = 1000
    margin: float = 0.1
    margin_of_few: float = 4.0
    n_first_views: int = 3
    settle: bool = True
    alike: float = 0.3
    shrink_power: float = 5.0
    n_families: int = 4
    shrink: float = 0.1
    operations: float = 1e6
    least_leaf: int = 400
    most_leaf: int = 4000
    fit_tuned_rows: int = 1000
    n_branch_rounds: int = 4
    branch_margin: float = 0.5
    columns_of_full: int = 10
    short_share: float = 1e-3
    plain_kernels: tuple = ("laplace_l1",)
