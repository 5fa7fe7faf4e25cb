"""Reports on a fit and on an audit: single HTML pages that need no other files."""

from __future__ import annotations

from .._util.extras import require

require("a report", "table", "matplotlib")

from ._audit import (  # noqa: E402
    first_rows,
    summary,
    table_of_findings,
    table_of_suspects,
    write_audit_report,
)
from ._fit import write_fit_report  # noqa: E402
from ._held_out import HeldOut, held_out  # noqa: E402

__all__ = [
    "HeldOut",
    "first_rows",
    "held_out",
    "summary",
    "table_of_findings",
    "table_of_suspects",
    "write_audit_report",
    "write_fit_report",
]
