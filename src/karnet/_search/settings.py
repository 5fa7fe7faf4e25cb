"""The settings of the search, each chosen on many tables."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .._network.input_metric import MOST_INPUTS


@dataclass(frozen=True)
class Settings:
    """Sizes, margins and budgets of the search and of the fit."""

    # The folds; each start leaves one of them out, and has metrics of its own.
    n_folds: int = 5
    # Rows over all starts: a table of n rows has about this number over n starts.
    rows_of_starts: int = 30_000
    # The share of the rows outside its fold that shape the metrics of a start: starts that share
    # fewer rows find more different metrics.
    shaping_share: float = 0.8
    # Rows that shape metrics, and that judge them, at most, over all starts.
    shaping: int = 32_000
    judging: int = 8000
    # Rows that shape and judge when views are compared: at most, and at least.
    compared_rows: int = 8000
    comparing_rows: int = 500
    # Rows from which views are made.
    view_rows: int = 20_000
    # The largest difference of two views, in standard deviations of a column, that count as one.
    alike: float = 0.3
    # Views that get a metric: the best ones, and all within a margin of the least error.
    n_views: int = 3
    view_margin: float = 0.1
    # The margin within which views, after they have a metric, take turns with the best one.
    turn_margin: float = 0.05
    # Columns beyond which the diagonal of the metric is tried too.
    columns_of_full: int = 10
    # Columns beyond which principal directions may replace them, their number, and the least share
    # of the variance that they must have.
    wide: int = MOST_INPUTS
    n_directions: int = 64
    share_of_directions: float = 0.85
    # Scores of an additive network join the columns if the error falls by at least this share.
    gain_of_scores: float = 0.1
    # Rows of a leaf in the search of many outputs; a single output has three times as many. They
    # double while the error falls by a share.
    leaf: int = 600
    largest_leaf: int = 2000
    gain_of_leaf: float = 0.05
    # Rounds of the metric end when the error falls by less than this share.
    gain: float = 0.01
    n_rounds: int = 10
    # The same number for the other kernels, which are tried if their error exceeds the least by at
    # most a share.
    n_branch_rounds: int = 4
    branch_margin: float = 0.5
    # Rows of a leaf that select scale and ridge, in the search and for the fit, and leaves.
    tuned_rows: int = 600
    fit_tuned_rows: int = 1000
    n_tuned_leaves: int = 2
    # Rows over which a metric is averaged, over all starts, and in each leaf at least.
    metric_rows: int = 1000
    metric_rows_of_leaf: int = 60
    # Kernels whose error exceeds the least by at most this share are averaged; the share is larger
    # for few judging rows, by a number over the root of theirs.
    margin: float = 0.1
    margin_of_few: float = 4.0
    n_kernels: int = 4
    # Weights shrink towards equal ones, by this number over the root of the number of rows.
    shrinkage: float = 5.0
    # About the number of operations that predict a row; rows of a leaf at least and at most, and
    # trees of a network at most.
    operations: float = 1e6
    smallest_leaf: int = 400
    most_rows_of_leaf: int = 4000
    most_trees: int = 4
    # Directions are dropped while their part of squared distances stays below this share times the
    # relative error.
    short_share: float = 1e-3

    def within(self, width: int | None) -> Settings:
        """Return the settings with leaves of at most `width` rows."""
        if width is None:
            return self
        leaves = {
            name: min(getattr(self, name), width)
            for name in ("leaf", "largest_leaf", "smallest_leaf")
        }
        return replace(self, most_rows_of_leaf=width, **leaves)


SETTINGS = Settings()
# On a GPU, many short computations take longer than few long ones.
DEVICE_SETTINGS = replace(
    SETTINGS,
    rows_of_starts=20_000,
    leaf=8000,
    largest_leaf=16_000,
    metric_rows=4000,
    operations=1e8,
    most_rows_of_leaf=60_000,
    n_directions=0,
)


def settings_for(device: str | None) -> Settings:
    """Return the settings for a device."""
    return SETTINGS if device is None or device.startswith("cpu") else DEVICE_SETTINGS
