"""Optional packages."""

from __future__ import annotations

from importlib.util import find_spec


def require(feature: str, extra: str, *packages: str) -> None:
    """Raise an error that names the extra to install if a package is missing."""
    missing = [name for name in packages if not _is_installed(name)]
    if missing:
        raise ImportError(
            f"{feature} needs {' and '.join(missing)}: pip install 'karnet[{extra}]'.",
            name=missing[0],
        )


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):
        return False
