"""Neural networks trained in closed form: targets pulled back, every layer solved at once."""

from ._lstsq import Solution, lstsq
from .estimators import KARClassifier, KARRegressor
from .files import load, save
from .selection import KARClassifierCV, KARRegressorCV

__all__ = [
    "KARClassifier",
    "KARClassifierCV",
    "KARRegressor",
    "KARRegressorCV",
    "Solution",
    "load",
    "lstsq",
    "save",
]
__version__ = "0.1.0"
