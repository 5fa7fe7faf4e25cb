"""A process that measures the fit that is requested on standard input."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..quality.measure import why_absent
from ..quality.worker import Watch, serve
from .measure import measure, version
from .peers import CONTENDERS
from .results import Key
from .tables import Table


def answer(task: dict[str, Any], watch: Watch) -> dict[str, Any]:
    """Return whether and in which version a contender is installed, or the result of a fit."""
    if "contender" in task:
        contender = CONTENDERS[task["contender"]]
        reason = why_absent(contender)
        return {"reason": reason, "version": "" if reason else version(contender)}
    table = Table.load(Path(task["table"]))
    return asdict(measure(Key(*task["key"]), table, lambda: watch.allow(task["limit"])))


if __name__ == "__main__":
    serve(answer)
