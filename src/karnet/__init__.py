"""Neural networks trained in closed form: targets pulled back, every layer solved at once."""

from ._lstsq import Solution, lstsq
from .estimators import KARClassifier, KARRegressor

__all__ = ["KARClassifier", "KARRegressor", "Solution", "lstsq"]
__version__ = "0.1.0"
