"""Neural networks trained in closed form: targets pulled back, every layer solved at once."""

from ._lstsq.solve import Solution, lstsq
from ._util.environment import show_versions
from ._version import __version__ as __version__
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
    "show_versions",
]
