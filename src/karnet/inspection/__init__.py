"""Plots of fitted networks, with the interface of scikit-learn's displays, and explanations.

The method `from_estimator` computes and draws a display. The display stores the numbers that it
shows, and the method `plot` draws them again. `row_influence` and `column_effects` explain single
predictions of estimators that keep their training rows.
"""

from ._influence import RowInfluence, RowInfluenceDisplay, column_effects, row_influence
from ._metric import MetricDisplay
from ._path import LooPathDisplay
from ._spectrum import LayerSpectrumDisplay

__all__ = [
    "LayerSpectrumDisplay",
    "LooPathDisplay",
    "MetricDisplay",
    "RowInfluence",
    "RowInfluenceDisplay",
    "column_effects",
    "row_influence",
]
