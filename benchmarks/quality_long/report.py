"""The page of results: tables of scores, times and memory, and a CSV file of all numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from ..quality.peers import FOREST
from ..quality.report import absent_list, cell, markdown
from ..quality.store import Store
from .peers import CONTENDERS, OURS
from .results import Result

TITLE = "# Long tables compared with other libraries: all numbers"
RULES = """\
This page is written by `make quality-long`. Each contender is fitted once to the training rows of
each table, in a process of its own with one thread, and scored on the same held-out rows.

- All contenders get the same arrays: numbers as they are, and an indicator for each category.
- Defaults of karnet were compared on the held-out rows of most of these tables, MNIST included, so
  its scores are somewhat optimistic. The defaults of the other libraries were not.
- The seconds of a fit are CPU time, and include every selection of parameters. Each contender first
  fits a few generated rows, so that no fit includes the time to load code.
- Memory is the peak of the process during the fit minus its memory before the fit. The table is in
  memory before the fit.
- Log-loss is scikit-learn's, which replaces a probability of 0 by 2e-16.
- The time for one row is the median of 25 predictions of the same row, of five in measurements
  of older versions of this page (those of all libraries but karnet and RandomForest)."""
OWN_SCORES = """\
## Own score of karnet

`best_score_` is computed from training rows that had no part in the search. The standard error is
that of the held-out accuracy."""
SIZES = ("rows", "held out", "columns")
NUMBERS = "long.csv"


class Section(NamedTuple):
    """A table of the page: its title, the field of a result, its unit, and the kind of target."""

    title: str
    field: str
    unit: float = 1.0
    kind: str = ""


FIT = Section("Fit, CPU seconds", "fit_cpu")
SECTIONS = (
    Section("Accuracy", "accuracy", kind="classification"),
    Section("Log-loss", "log_loss", kind="classification"),
    Section("RMSE", "rmse", kind="regression"),
    FIT,
    Section("Prediction of all held-out rows, seconds", "predict_wall"),
    Section("Prediction of one row, milliseconds", "predict_one", 1e-3),
    Section("Memory of the fit, MB", "memory", 1e6),
)


@dataclass(frozen=True)
class Report:
    """The report.

    Parameters
    ----------
    text : str
        The page in Markdown.
    numbers : DataFrame
        The newest result of every contender on every table.
    """

    text: str
    numbers: pd.DataFrame

    def write(self, page: Path, folder: Path) -> None:
        """Write the page, and the numbers as CSV to a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        page.write_text(self.text + "\n", encoding="utf-8")
        self.numbers.to_csv(folder / NUMBERS, index=False, float_format="%.6g")


def restore(folder: Path, store: Store[Result]) -> None:
    """Store the numbers of a folder that `Report.write` wrote; stored results are not replaced."""
    text = {field.name: "" for field in fields(Result) if field.default == ""}
    numbers = pd.read_csv(folder / NUMBERS, dtype=dict.fromkeys(text, str)).fillna(text)
    for row in numbers.to_dict("records"):
        store.add(Result(**row))


def make(results: Sequence[Result], absent: dict[str, str]) -> Report:
    """Return the report on the newest results of all contenders."""
    columns = [field.name for field in fields(Result)]
    frame = pd.DataFrame([asdict(result) for result in results], columns=columns)
    frame = _newest(frame[frame["contender"].isin(CONTENDERS)])
    parts = [TITLE, RULES, _contenders(frame), _circumstances(frame)]
    parts += [_section(frame, section) for section in SECTIONS]
    parts += [_own_scores(frame), _failures(frame), absent_list(absent)]
    return Report("\n\n".join(filter(None, parts)), frame)


def _newest(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the last result of every contender on every table, the shortest table first."""
    newest = frame.sort_values("measured", kind="stable")
    newest = newest.drop_duplicates(["dataset", "contender"], keep="last")
    place = newest["contender"].map(list(CONTENDERS).index)
    newest = newest.assign(place=place).sort_values(["n_train", "dataset", "place"])
    return newest.drop(columns="place")


def _contenders(frame: pd.DataFrame) -> str:
    there = [CONTENDERS[name] for name in CONTENDERS if name in set(frame["contender"])]
    lines = [f"- **{each.name}**: {each.about}." for each in there]
    return "\n".join(["Contenders:", "", *lines]) if lines else ""


def _circumstances(frame: pd.DataFrame) -> str:
    """Return the machines and the versions of all packages."""
    if frame.empty:
        return ""
    machines = sorted(set(frame["machine"]) - {""})
    packages = {"Python", "numpy", "scipy", *(each.package for each in CONTENDERS.values())}
    listed = {each for versions in frame["versions"] for each in versions.split(", ")}
    versions = [each for each in listed if each.partition(" ")[0] in packages]
    return f"Measured on: {'; '.join(machines)}. Versions: {', '.join(sorted(versions))}."


def _section(frame: pd.DataFrame, section: Section) -> str:
    """Return a table of one number, with a row per table and a column per contender."""
    chosen = frame[frame["kind"] == section.kind] if section.kind else frame
    if chosen.empty:
        return ""
    cells = chosen.assign(cell=(chosen[section.field] / section.unit).map(cell))
    cells["cell"] = cells["cell"].where(cells["error"] == "", cells["error"].map(_mark))
    wide = _wide(cells, "cell").fillna("")
    ratios = _ratios(chosen) if section is FIT else pd.Series(dtype=float)
    if len(ratios):
        wide[f"{OURS} / {FOREST}"] = ratios.map(cell).reindex(wide.index, fill_value="")
    wide = _sizes(chosen).join(wide).rename_axis("table").reset_index()
    return "\n\n".join(filter(None, (f"## {section.title}", markdown(wide), _median(ratios))))


def _own_scores(frame: pd.DataFrame) -> str:
    """Return a table of karnet's own score of each fit, beside the score of the held-out rows."""
    ours = frame[(frame["contender"] == OURS) & (frame["error"] == "")]
    if ours.empty:
        return ""
    held_out = ours["accuracy"].fillna(ours["r2"])
    columns = {
        "table": ours["dataset"],
        "held out": ours["n_test"].astype(str),
        "score": ours["accuracy"].notna().map({True: "accuracy", False: "R²"}),
        "best_score_": ours["best_score"].map(cell),
        "held-out score": held_out.map(cell),
        "difference": (ours["best_score"] - held_out).map(cell),
        "standard error": np.sqrt(held_out * (1.0 - held_out) / ours["n_test"])
        .where(ours["accuracy"].notna())
        .map(cell, na_action="ignore")
        .fillna(""),
    }
    return f"{OWN_SCORES}\n\n{markdown(pd.DataFrame(columns))}"


def _wide(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    wide = frame.pivot(index="dataset", columns="contender", values=column)
    return wide[[name for name in CONTENDERS if name in wide]]


def _sizes(frame: pd.DataFrame) -> pd.DataFrame:
    sizes = frame.drop_duplicates("dataset").set_index("dataset")
    return sizes[["n_train", "n_test", "n_columns"]].set_axis(SIZES, axis=1).astype(str)


def _mark(error: str) -> str:
    return "too slow" if error.startswith("more than") else "failed"


def _ratios(frame: pd.DataFrame) -> pd.Series:
    """Return karnet's CPU time relative to the forest's, on the tables that both finished."""
    seconds = _wide(frame[frame["error"] == ""], "fit_cpu")
    if not {OURS, FOREST} <= set(seconds):
        return pd.Series(dtype=float)
    return (seconds[OURS] / seconds[FOREST]).dropna()


def _median(ratios: pd.Series) -> str:
    if ratios.empty:
        return ""
    return (
        f"The median of the ratios of {OURS} to {FOREST} is {cell(float(ratios.median()))} "
        f"(tables that both finished: {len(ratios)})."
    )


def _failures(frame: pd.DataFrame) -> str:
    failed = frame[frame["error"] != ""]
    if failed.empty:
        return ""
    named = failed[["contender", "dataset", "error"]].rename(columns={"dataset": "table"})
    return f"## Failures\n\n{markdown(named)}"
