"""The report on a fit: a single HTML page that needs no other files."""

from __future__ import annotations

from .._util.extras import require

require("a report", "table", "matplotlib")

from ._fit import write_fit_report  # noqa: E402
from ._held_out import HeldOut, held_out  # noqa: E402

__all__ = ["HeldOut", "held_out", "write_fit_report"]
