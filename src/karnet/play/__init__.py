"""Networks to play with in a browser: points in a plane, and what-if questions to a model.

A local server sends pages of plain HTML and answers their messages. Every picture is a fit by the
library itself; the pages compute nothing but coordinates.
"""

from __future__ import annotations

from .._util.extras import require

# The optional libraries of the server.
PACKAGES = ("starlette", "uvicorn", "websockets")
require("karnet play", "play", *PACKAGES)

from ._app import application  # noqa: E402
from ._plane import Plane  # noqa: E402
from ._serve import Server  # noqa: E402

__all__ = ["Plane", "Server", "application"]
