"""Neural networks trained in closed form: targets pulled back, every layer solved at once."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__ as __version__

if TYPE_CHECKING:
    from ._lstsq.solve import Solution, lstsq
    from ._util.environment import show_versions
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

# The module of each name. It is imported when the name is first used: the import of scikit-learn
# takes a second, and 'karnet --help' does not need it.
_MODULE_OF = {
    **dict.fromkeys(("KARClassifier", "KARRegressor"), "estimators"),
    **dict.fromkeys(("KARClassifierCV", "KARRegressorCV"), "selection"),
    **dict.fromkeys(("Solution", "lstsq"), "_lstsq.solve"),
    **dict.fromkeys(("load", "save"), "files"),
    "show_versions": "_util.environment",
}
# Modules that are attributes of the package after 'import karnet'.
_MODULES = (
    *("accumulate", "activations", "blocks", "estimators", "files"),
    *("kernels", "learner", "loo", "selection"),
)


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        value = getattr(import_module(f".{_MODULE_OF[name]}", __name__), name)
        globals()[name] = value
        return value
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
