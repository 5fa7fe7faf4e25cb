"""Packages that only some of karnet needs."""

from __future__ import annotations

from importlib.util import find_spec

__all__ = ["require"]


def require(what: str, extra: str, *packages: str) -> None:
    """Raise an error that names the extra to install if a package is not here."""
    missing = [name for name in packages if not _found(name)]
    if missing:
        raise ImportError(
            f"{what} needs {' and '.join(missing)}: pip install 'karnet[{extra}]'.",
            name=missing[0],
        )


def _found(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):
        return False
