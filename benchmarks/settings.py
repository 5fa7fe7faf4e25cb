"""The page of the settings of the search: what each does if it is halved or doubled.

``python benchmarks/settings.py --out docs/settings.md`` fits the CV estimators to fresh tables with
each field of `Settings` halved and doubled. Per field it reports the mean change of the error (1 -
ROC AUC of two classes, log-loss of more, RMSE of numbers) as a share, with its standard error over
tables, and of the CPU time. Reasons are the comments beside the fields.
"""

from __future__ import annotations

import argparse
import inspect
import os
from collections.abc import Iterator
from dataclasses import fields, replace
from multiprocessing import Pool
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from machine import describe_machine, describe_versions
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import ShuffleSplit

from karnet import KARClassifierCV, KARRegressorCV
from karnet._search import settings as search_settings
from karnet._search.settings import Settings

DEFAULT = ("", 1.0)
FACTORS = (0.5, 2.0)
# Fields that are shares cannot exceed 1.
SHARES = ("shaping_share", "share_of_directions")
# Smallest error that is compared: below it, all rows are right.
LEAST_ERROR = 1e-4


def changed(name: str, factor: float) -> Settings:
    """Return the settings with a field multiplied by a factor."""
    defaults = search_settings.SETTINGS
    if not name:
        return defaults
    value = getattr(defaults, name)
    new: Any = factor * value
    if name in SHARES:
        new = min(new, 1.0)
    return replace(defaults, **{name: max(round(new), 1) if isinstance(value, int) else new})


def variants() -> Iterator[tuple[str, float]]:
    """Yield the default, and each field with each factor."""
    yield DEFAULT
    yield from ((field.name, factor) for field in fields(Settings) for factor in FACTORS)


def measured(job: tuple[str, str, str, int]) -> dict[tuple[str, float], tuple[float, float]] | None:
    """Return the error and the CPU time of each variant on a table; None where it is refused."""
    import fresh_tables

    package, item, task, seed = job
    sizes = replace(fresh_tables.LONG, rows=(500, 6000))
    X, y = fresh_tables.problem(package, item, task, sizes)
    train, test = next(ShuffleSplit(1, test_size=1 / 3, random_state=seed).split(y))
    kind: Any = KARRegressorCV if task == "regression" else KARClassifierCV
    found, defaults = {}, search_settings.SETTINGS
    for variant in variants():
        settings = changed(*variant)
        try:
            search_settings.SETTINGS = settings
            start = process_time()
            net = kind(random_state=seed).fit(X.iloc[train], y[train])
            seconds = process_time() - start
            found[variant] = error_of(net, X.iloc[test], y[test]), seconds
        except ValueError:
            return None
        finally:
            search_settings.SETTINGS = defaults
    return found


def error_of(net: Any, X: Any, y: Any) -> float:
    """Return 1 - ROC AUC of two classes, log-loss of more, or RMSE of numbers."""
    if not hasattr(net, "classes_"):
        return float(np.sqrt(np.mean((net.predict(X) - y) ** 2)))
    probabilities = net.predict_proba(X)
    if len(net.classes_) > 2:
        return float(log_loss(y, probabilities, labels=net.classes_))
    return 1.0 - float(roc_auc_score(y == net.classes_[1], probabilities[:, 1]))


def reasons() -> dict[str, str]:
    """Return the comment above each field; fields without one share that of the field before."""
    found, lines, last = {}, [], ""
    for line in inspect.getsource(Settings).splitlines():
        text = line.strip()
        if text.startswith("#"):
            lines.append(text.removeprefix("#").strip())
        elif ":" in text and "=" in text:
            last = " ".join(lines) or last
            found[text.partition(":")[0]] = last
            lines = []
    return found


def page(tables: list[dict[tuple[str, float], tuple[float, float]]]) -> str:
    """Return the page as Markdown."""
    values = {variant: np.array([table[variant] for table in tables]) for variant in variants()}
    base = np.maximum(values[DEFAULT], LEAST_ERROR)
    rows = []
    for field in fields(Settings):
        cells = []
        for factor in FACTORS:
            falls = np.log(np.maximum(values[field.name, factor], LEAST_ERROR) / base)
            mean, error = falls.mean(axis=0), falls.std(axis=0, ddof=1) / np.sqrt(len(falls))
            cells.append(f"{100 * mean[0]:+.1f} ± {100 * error[0]:.1f} %")
            cells.append(f"{np.exp(mean[1]):.2f}")
        value = getattr(search_settings.SETTINGS, field.name)
        rows.append(f"| `{field.name}` | {value:g} | {' | '.join(cells)} |")
    about = [f"- `{name}`: {reason}" for name, reason in reasons().items()]
    return "\n".join(
        [
            "# Settings of the search",
            "",
            "The search of `KARClassifierCV` and `KARRegressorCV` has these settings. No user",
            "needs to know them. The table shows the change of the error, and the factor of the",
            "CPU time,",
            f"if a setting is halved or doubled: means of {len(tables)} tables of R's packages of",
            "330 to 4000 training rows. `python benchmarks/settings.py` prints it.",
            "",
            *describe_machine(1).splitlines(),
            *describe_versions().splitlines(),
            "",
            "| setting | value | error if halved | time | error if doubled | time |",
            "|---------|------:|----------------:|-----:|-----------------:|-----:|",
            *rows,
            "",
            "## Reasons",
            "",
            *about,
            "",
        ]
    )


def main() -> None:
    """Measure all settings, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=12, help="tables of each task; default: 12")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, help="file of the page; by default it is printed")
    options = parser.parse_args()
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    import fresh_tables

    sizes = replace(fresh_tables.LONG, rows=(500, 6000))
    jobs = [
        (package, item, task, 0)
        for task in fresh_tables.TASKS
        for package, item in fresh_tables.tables(options.tables, task, sizes)
    ]
    with Pool(options.processes) as pool:
        tables = [found for found in pool.imap_unordered(measured, jobs) if found is not None]
    text = page(tables)
    if options.out is None:
        print(text)
    else:
        options.out.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
