"""Pictures of fitted networks, in the manner of scikit-learn's displays.

Each is made by `from_estimator`, keeps the numbers that it shows, and draws them by `plot`.
"""

from __future__ import annotations

from ._metric import MetricDisplay
from ._path import LooPathDisplay
from ._spectrum import LayerSpectrumDisplay
from ._surface import DecisionSurfaceDisplay

__all__ = ["DecisionSurfaceDisplay", "LayerSpectrumDisplay", "LooPathDisplay", "MetricDisplay"]
