"""`karnet fit`, `karnet predict` and KARClassifierCV on mixed tables, compared with LightGBM.

Data sets with text and missing values are split into stratified folds. The two commands have no
option but the target. KARClassifierCV and LightGBM have their default parameters and the same data
frame, with text as categories; missing values are not imputed.
"""

from __future__ import annotations

import argparse
import csv
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from machine import describe_machine, describe_versions
from sklearn.model_selection import StratifiedKFold

from karnet import KARClassifierCV

SETS = (
    "credit-approval",
    "votes",
    "breast-cancer-wisconsin",
    "wpbc",
    "shuttle-landing-control",
    "tic-tac-toe",
    "car",
    "splice",
    "abalone",
    "mushroom",
    "nursery",
)
TARGET = "target"
# Goal: largest time of each command.
SECONDS = 20.0


@dataclass(frozen=True)
class Trial:
    """One fold of one data set."""

    dataset: str
    fold: int
    ours: float
    native: float
    lightgbm: float
    fit: float
    fit_cpu: float
    predict: float
    predict_cpu: float


def command(*arguments: str) -> tuple[float, float]:
    """Run karnet in a separate process, and return its time and its CPU time."""
    line = [sys.executable, "-c", "from karnet.cli import main; main()", *arguments]
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(line, check=True, stdout=subprocess.DEVNULL)
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, cpu


def trial(name: str, fold: int, train: pd.DataFrame, test: pd.DataFrame) -> Trial:
    """Fit and predict with karnet and LightGBM."""
    with tempfile.TemporaryDirectory() as folder:
        files = ("train.csv", "test.csv", "model.karnet", "predictions.csv")
        known, new, model, out = (str(Path(folder) / each) for each in files)
        train.to_csv(known, index=False)
        test.drop(columns=TARGET).to_csv(new, index=False)
        fit = command("fit", known, "--target", TARGET, "--model", model, "--quiet")
        predict = command("predict", model, new, "-o", out, "--quiet")
        predictions = pd.read_csv(out, dtype=str, keep_default_na=False)[TARGET]
    ours = float(np.mean(predictions.to_numpy() == test[TARGET].to_numpy()))
    native, lightgbm = (_accuracy(model, train, test) for model in _models())
    return Trial(name, fold, ours, native, lightgbm, *fit, *predict)


def _models() -> tuple[Any, Any]:
    """Return the estimator of karnet, and that of LightGBM if it is installed."""
    try:
        from lightgbm import LGBMClassifier
    except ImportError:
        return KARClassifierCV(random_state=0), None
    return KARClassifierCV(random_state=0), LGBMClassifier(random_state=0, verbosity=-1)


def _accuracy(model: Any, train: pd.DataFrame, test: pd.DataFrame) -> float:
    if model is None:
        return float("nan")
    X, X_test = (_native(part.drop(columns=TARGET), train) for part in (train, test))
    model.fit(X, train[TARGET])
    return float(np.mean(model.predict(X_test) == test[TARGET]))


def _native(part: pd.DataFrame, train: pd.DataFrame) -> pd.DataFrame:
    """Return columns as numbers if all training rows are numbers or missing, else as categories."""
    columns: dict[str, Any] = {}
    for name in part:
        known = train[name][train[name] != ""]
        if pd.to_numeric(known, errors="coerce").notna().all():
            columns[name] = pd.to_numeric(part[name], errors="coerce").to_numpy(float)
        else:
            seen = part[name].where(part[name].isin(set(known)), None)
            columns[name] = pd.Categorical(seen, categories=sorted(set(known)))
    return pd.DataFrame(columns)


def report(trials: list[Trial]) -> None:
    """Print a line for each data set, the means, and the goals."""
    print(
        f"{'data set':<25}{'karnet fit':>11}{'estimator':>11}{'LightGBM':>10}"
        f"{'fit, s (CPU)':>17}{'predict':>16}"
    )
    means = []
    for name in dict.fromkeys(each.dataset for each in trials):
        found = [each for each in trials if each.dataset == name]
        means.append([100 * _column(found, key).mean() for key in ("ours", "native", "lightgbm")])
        fit, fit_cpu, predict, predict_cpu = (
            _column(found, key).max() for key in ("fit", "fit_cpu", "predict", "predict_cpu")
        )
        print(
            f"{name:<25}{means[-1][0]:>9.2f} %{means[-1][1]:>9.2f} %{means[-1][2]:>8.2f} %"
            f"{fit:>10.1f} ({fit_cpu:.1f}){predict:>10.1f} ({predict_cpu:.1f})"
        )
    ours, native, theirs = np.mean(means, axis=0)
    print(f"{'mean':<25}{ours:>9.2f} %{native:>9.2f} %{theirs:>8.2f} %\n")
    differences = np.subtract(*np.array(means).T[[1, 0]])
    error = differences.std(ddof=1) / np.sqrt(len(means)) if len(means) > 1 else 0.0
    print(f"Estimator less karnet fit: {differences.mean():+.2f} +- {error:.2f} points")
    print(f"Not below by more than the standard error: {_met(differences.mean() >= -error)}")
    goal = "not installed" if np.isnan(theirs) else _met(min(ours, native) > theirs)
    print(f"Both above LightGBM: {goal}")
    slowest = max(_column(trials, "fit").max(), _column(trials, "predict").max())
    goal = _met(slowest < SECONDS)
    print(f"Each command under {SECONDS:g} s: {goal}, the slowest {slowest:.1f} s")


def _column(trials: list[Trial], key: str) -> np.ndarray:
    return np.array([getattr(each, key) for each in trials])


def _met(true: bool) -> str:
    return "met" if true else "not met"


def main() -> None:
    """Run all trials, print a summary, and write them as CSV."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("KARNET_DATA"), help="folder of CSV files")
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument(
        "--only", type=int, default=None, help="run only this number of folds of each set"
    )
    parser.add_argument("--out", type=Path, help="CSV file for all trials")
    options = parser.parse_args()
    if options.data is None:
        parser.exit(2, "name the folder of data sets: --data DIR or KARNET_DATA\n")
    print(describe_machine(os.cpu_count() or 1), describe_versions(), sep="\n", end="\n\n")
    trials = []
    for name in options.sets:
        frame = pd.read_csv(f"{options.data}/{name}.csv", dtype=str, keep_default_na=False)
        folds = StratifiedKFold(options.folds, shuffle=True, random_state=0)
        for k, (train, test) in enumerate(folds.split(frame, frame[TARGET])):
            if options.only is None or k < options.only:
                trials.append(trial(name, k, frame.iloc[train], frame.iloc[test]))
    report(trials)
    if options.out is not None:
        with options.out.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(Trial.__dataclass_fields__)
            writer.writerows([vars(each).values() for each in trials])


if __name__ == "__main__":
    main()
