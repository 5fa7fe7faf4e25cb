"""What every report is made of: tables, a page of HTML, the style of drawings, the machine."""

from __future__ import annotations

from .table import Table

__all__ = ["Table"]
