"""Report of the results: tables, CSV files and a critical-difference diagram."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd

from benchmarks.text_table import aligned_table

from .data import extent
from .peers import CONTENDERS, FOREST
from .store import Result, Store

SECONDS = ("fit_wall", "fit_cpu", "predict_wall", "predict_cpu")
SCORES = ("accuracy", "log_loss", "brier", "rmse", "r2", "best_score")
FOLD = ["dataset", "repeat", "fold"]
# An estimator's own score is correct if it is off by at most this,
POINT = 0.01
# or by at most this number of standard errors.
N_ERRORS = 2.0
# Smallest numbers of contenders and data sets for the diagram of ranks.
FEWEST = 3


@dataclass(frozen=True)
class Report:
    """The report.

    Parameters
    ----------
    text : str
        All tables in Markdown.
    tables : dict of DataFrame
        Tables that are written as CSV, by the stem of the file.
    accuracy : DataFrame
        Mean accuracy, with a row for each data set on which all contenders finished a fold.
    """

    text: str
    tables: dict[str, pd.DataFrame]
    accuracy: pd.DataFrame

    def write(self, folder: Path) -> None:
        """Write report.md, the CSV files, and the diagram as SVG and PNG."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "report.md").write_text(self.text + "\n", encoding="utf-8")
        for stem, table in self.tables.items():
            table.to_csv(folder / f"{stem}.csv", index=False, float_format="%.6g")
        if min(self.accuracy.shape) >= FEWEST:
            _diagram(self.accuracy, folder)


def restore(folder: Path, store: Store[Result]) -> None:
    """Store the means of a folder that `Report.write` wrote, as the result of each fold.

    Stored results are not replaced.
    """
    for kind in ("classification", "regression"):
        text = {"error": "", "versions": ""}
        numbers = pd.read_csv(folder / f"{kind}.csv", dtype=dict.fromkeys(text, str)).fillna(text)
        sizes = (
            numbers.groupby("dataset")[["n_train", "n_test"]].transform("max").round().astype(int)
        )
        for row in numbers.assign(**sizes).to_dict("records"):
            done, failed, error = row.pop("folds"), row.pop("failed"), row.pop("error")
            n_repeats, n_folds = extent(row["n_train"] + row["n_test"])
            for k in range(min(done + failed, n_repeats * n_folds)):
                place = {"repeat": k // n_folds, "fold": k % n_folds}
                store.add(Result(**row, **place, kind=kind, error=error if k >= done else ""))


def make(results: Sequence[Result], absent: dict[str, str], only: Sequence[str] = ()) -> Report:
    """Return the report on all results, or on those of some contenders only."""
    frame = pd.DataFrame([asdict(result) for result in results], columns=_columns())
    frame = frame[frame["contender"].isin(only or CONTENDERS)]
    parts: list[str] = []
    tables: dict[str, pd.DataFrame] = {}
    for kind, summarise in (("classification", _classifiers), ("regression", _regressors)):
        of_kind = frame[frame["kind"] == kind]
        if of_kind.empty:
            continue
        tables[kind] = _by_set(of_kind)
        tables[f"{kind}-summary"] = summarise(of_kind)
        parts += [_title(of_kind, kind), markdown(tables[f"{kind}-summary"]), _expected(of_kind)]
        parts += [_not_compared(of_kind)]
    parts += [_wide(tables), _failures(frame), absent_list(absent)]
    shared = _shared(frame[frame["kind"] == "classification"])
    return Report("\n\n".join(filter(None, parts)), tables, _means(shared, "accuracy"))


def _columns() -> list[str]:
    return list(asdict(Result("", "", 0, 0, "")))


def _shared(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the results on folds that all contenders finished; those without any are ignored."""
    good = frame[frame["error"] == ""]
    everybody = good.groupby(FOLD)["contender"].transform("nunique") == good["contender"].nunique()
    return good[everybody]


def _means(frame: pd.DataFrame, score: str) -> pd.DataFrame:
    """Return the mean of a score, with a row for each data set and a column for each contender."""
    # Rounded, so that equal means tie however they were summed.
    means = frame.pivot_table(score, "dataset", "contender", aggfunc="mean").round(5)
    return means[[name for name in CONTENDERS if name in means]]


def _by_set(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the means and failures of every contender on every data set."""
    groups = frame.groupby(["dataset", "contender"])
    good = frame[frame["error"] == ""].groupby(["dataset", "contender"])
    table = good[[*SCORES, *SECONDS, "n_train", "n_test"]].mean().dropna(axis=1, how="all")
    table = table.reindex(groups.size().index)
    table["folds"] = groups["error"].agg(lambda errors: (errors == "").sum())
    table["failed"] = groups["error"].agg(lambda errors: (errors != "").sum())
    table["error"] = groups["error"].max()
    table["versions"] = groups["versions"].max()
    return table.reset_index()


def _standing(shared: pd.DataFrame, score: str, largest_is_best: bool) -> pd.DataFrame:
    """Return the mean rank and wins by a score, and the total times, with a row per contender."""
    means = _means(shared, score)
    best = means.max(axis=1) if largest_is_best else means.min(axis=1)
    seconds = shared.groupby("contender")[list(SECONDS)].sum()
    return pd.DataFrame(
        {
            "rank": means.rank(axis=1, ascending=not largest_is_best).mean(),
            "wins": means.eq(best, axis=0).sum(),
            "fit, s": seconds["fit_wall"],
            "fit, CPU s": seconds["fit_cpu"],
            "predict, CPU s": seconds["predict_cpu"],
        },
        index=means.columns,
    )


def _classifiers(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table of classifiers, the best rank first."""
    shared = _shared(frame)
    table = _standing(shared, "accuracy", largest_is_best=True)
    for position, score in enumerate(("accuracy", "log_loss", "brier")):
        table.insert(position, score.replace("_", "-"), _overall(shared, score))
    compared = {name: _compared_with_forest(frame, name) for name in frame["contender"].unique()}
    return _finished(table, frame, pd.DataFrame(compared).T)


def _regressors(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table of regressors, the best rank first."""
    shared = _shared(frame)
    table = _standing(shared, "rmse", largest_is_best=False)
    table.insert(0, "R²", _overall(shared, "r2"))
    rmse = _means(shared, "rmse")
    table.insert(1, "RMSE / best", rmse.div(rmse.min(axis=1), axis=0).mean())
    return _finished(table, frame, pd.DataFrame(index=table.index))


def _overall(shared: pd.DataFrame, score: str) -> pd.Series:
    return _means(shared, score).mean() if shared[score].notna().any() else pd.Series(dtype=float)


def _finished(table: pd.DataFrame, frame: pd.DataFrame, more: pd.DataFrame) -> pd.DataFrame:
    table = table.reindex([name for name in CONTENDERS if name in set(frame["contender"])])
    table["fit / forest"] = _ratios(frame)
    table = table.join(more)
    failed = frame[frame["error"] != ""].groupby("contender")["dataset"].nunique()
    table["sets failed"] = failed.reindex(table.index, fill_value=0)
    return table.sort_values("rank").rename_axis("contender").reset_index()


def _with_forest(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    return _shared(frame[frame["contender"].isin((name, FOREST))])


def _ratios(frame: pd.DataFrame) -> pd.Series:
    """Return the CPU time of fits relative to the forest, on folds that both finished."""
    ratios = {}
    for name in frame["contender"].unique():
        seconds = _with_forest(frame, name).groupby("contender")["fit_cpu"].sum()
        if {name, FOREST} <= set(seconds.index):
            ratios[name] = seconds[name] / seconds[FOREST]
    return pd.Series(ratios, dtype=float)


def _compared_with_forest(frame: pd.DataFrame, name: str) -> dict[str, str]:
    """Return the number of sets on which accuracy and log-loss are better than the forest's."""
    found = {}
    both = _with_forest(frame, name)
    for score, sign in (("accuracy", 1.0), ("log_loss", -1.0)):
        means = _means(both.dropna(subset=[score]), score) if len(both) else pd.DataFrame()
        title = f"{score.replace('_', '-')} better than forest"
        if name == FOREST or name not in means or FOREST not in means:
            found[title] = ""
            continue
        ahead = sign * (means[name] - means[FOREST])
        found[title] = f"{(ahead > 0.0).sum()} of {ahead.notna().sum()}"
    return found


def _title(frame: pd.DataFrame, kind: str) -> str:
    shared = _shared(frame)
    return (
        f"## {kind.capitalize()}: {shared['dataset'].nunique()} sets, "
        f"{len(shared.drop_duplicates(FOLD))} folds that all contenders finished"
    )


def _expected(frame: pd.DataFrame) -> str:
    """Return a table that compares `best_score_` with the mean score over the folds."""
    score = "accuracy" if frame["accuracy"].notna().any() else "r2"
    rows = []
    for name, own in frame.dropna(subset=["best_score", score]).groupby("contender"):
        sets = own.groupby("dataset")
        mean, tested = sets[score].mean(), sets["n_test"].sum() / sets["repeat"].nunique()
        off = sets["best_score"].mean() - mean
        row = {"contender": name, "sets": len(off), f"best_score_ - {score}": off.mean()}
        if score == "accuracy":
            allowed = np.maximum(POINT, N_ERRORS * np.sqrt(mean * (1.0 - mean) / tested))
            row["sets within 1 point or 2 errors"] = f"{(off.abs() <= allowed).mean():.0%}"
        rows.append(row)
    return f"What estimators expect of themselves:\n\n{markdown(pd.DataFrame(rows))}" * bool(rows)


def _not_compared(frame: pd.DataFrame) -> str:
    """Return the data sets that are missing in the table, and which contenders did not finish."""
    lines = []
    good = frame[frame["error"] == ""]
    for name in sorted(set(frame["dataset"]) - set(_shared(frame)["dataset"])):
        there = set(good.loc[good["dataset"] == name, "contender"])
        lines.append(f"- {name}: not finished by {_list(set(good['contender']) - there)}")
    return (
        "\n".join(["Data sets without a fold that all contenders finished:", "", *lines])
        if lines
        else ""
    )


def _wide(tables: dict[str, pd.DataFrame]) -> str:
    """Return accuracy and RMSE of all contenders on all sets, with "failed" for failures."""
    parts = []
    for kind, score in (("classification", "accuracy"), ("regression", "rmse")):
        if kind not in tables:
            continue
        table = tables[kind].assign(failed=tables[kind]["folds"].eq(0))
        numbers = table.get(score, pd.Series(np.nan, table.index)).map("{:.4g}".format)
        cells = numbers.where(~table["failed"], "failed")
        wide = table.assign(cell=cells).pivot(index="dataset", columns="contender", values="cell")
        wide = wide[[name for name in CONTENDERS if name in wide]].fillna("").reset_index()
        parts.append(f"## {score.capitalize() if score != 'rmse' else 'RMSE'}\n\n{markdown(wide)}")
    return "\n\n".join(parts)


def _failures(frame: pd.DataFrame) -> str:
    failed = frame[frame["error"] != ""]
    if failed.empty:
        return ""
    groups = failed.groupby(["contender", "dataset", "error"]).size().rename("folds")
    return f"## Failures\n\n{markdown(groups.reset_index())}"


def absent_list(absent: dict[str, str]) -> str:
    """Return the section that says which contenders and data sets are missing, and why."""
    lines = [f"- {name}: {reason}" for name, reason in absent.items()]
    return "\n".join(["## Not available", "", *lines]) if lines else ""


def _list(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def markdown(table: pd.DataFrame) -> str:
    """Return a data frame as a table in Markdown."""
    rows = [list(map(cell, row)) for row in table.to_numpy()]
    return aligned_table(list(map(str, table.columns)), rows)


def cell(value: Any) -> str:
    """Return a value as text, numbers with four digits."""
    if isinstance(value, float):
        return "" if np.isnan(value) else f"{round(value, 6):.4g}"
    return str(value)


def _diagram(accuracy: pd.DataFrame, folder: Path) -> None:
    """Draw mean ranks; a bar joins contenders that Nemenyi's test does not separate at 5 %."""
    mpl.use("agg")
    mpl.rcParams.update({"svg.hashsalt": "karnet", "svg.fonttype": "none", "font.size": 9})
    import scikit_posthocs as posthocs
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(9, 3), layout="constrained")
    ranks = accuracy.rank(axis=1, ascending=False).mean()
    p_values = posthocs.posthoc_nemenyi_friedman(accuracy.to_numpy())
    p_values = p_values.set_axis(accuracy.columns, axis=0).set_axis(accuracy.columns, axis=1)
    posthocs.critical_difference_diagram(ranks, p_values, ax=axes)
    axes.set_title(f"Mean rank by accuracy on {len(accuracy)} data sets; joined: no difference")
    figure.savefig(folder / "critical-difference.svg", metadata={"Date": None})
    figure.savefig(folder / "critical-difference.png", dpi=120)
    plt.close(figure)
