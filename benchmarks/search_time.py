"""CPU time of KARClassifierCV and of a forest of 500 trees on the paper's data sets.

All fits of a fold follow one another, in processes with one thread each. With ``--against SRC``,
the version of karnet in the folder SRC is fitted to the same folds, and the mean difference of both
accuracies is printed with its standard error over the data sets.
"""

from __future__ import annotations

import argparse
import os
from functools import lru_cache
from pathlib import Path
from time import process_time

import numpy as np
from machine import describe_machine, describe_versions
from quality.data import arrays, load
from sklearn.ensemble import RandomForestClassifier
from versions import SOURCE, Worker, serve

from karnet import KARClassifierCV, datasets

# Goal: largest CPU time relative to the forest.
RATIO = 0.6
# Goal: largest deficit of the mean accuracy, in percentage points.
POINTS = 0.1
cached = lru_cache(maxsize=1)(load)


def fitted(contender: str, name: str, repeat: int, fold: int) -> dict[str, float]:
    """Return the CPU time of a fit to all folds but one, and the accuracy on that fold."""
    problem = cached(name)
    part = problem.split(repeat)[fold]
    X, X_test = arrays(problem.inputs[part.train], problem.inputs[part.test])
    seed = 1000 * repeat + fold
    model = (
        RandomForestClassifier(500, n_jobs=1, random_state=seed)
        if contender == "forest"
        else KARClassifierCV(random_state=seed)
    )
    start = process_time()
    model.fit(X, problem.y[part.train])
    seconds = process_time() - start
    accuracy = 100.0 * np.mean(model.predict(X_test) == problem.y[part.test])
    return {"rows": len(part.train), "seconds": seconds, "accuracy": float(accuracy)}


def warm_up() -> None:
    """Fit once, which loads all code."""
    X = np.random.default_rng(0).random((60, 3))
    for model in (KARClassifierCV(random_state=0), RandomForestClassifier(5)):
        model.fit(X, np.arange(60) % 2)


def report(found: dict[str, dict[str, np.ndarray]]) -> None:
    """Print both goals, from the means of each contender: rows, seconds and accuracy by set."""
    seconds = {name: means["seconds"] for name, means in found.items()}
    ratio = seconds["karnet"].sum() / seconds["forest"].sum()
    each = np.mean(seconds["karnet"] / seconds["forest"])
    print(f"CPU time over that of the forest: {ratio:.2f} of the sums, {each:.2f} on average")
    print(f"At most {RATIO:g}: {'met' if max(ratio, each) <= RATIO else 'not met'}")
    for name, means in found.items():
        print(f"Mean accuracy of {name}: {means['accuracy'].mean():.2f} %")
    if "other" in found:
        differences = found["karnet"]["accuracy"] - found["other"]["accuracy"]
        error = differences.std(ddof=1) / np.sqrt(len(differences)) if len(differences) > 1 else 0.0
        print(f"Difference from the other version: {differences.mean():+.3f} +- {error:.3f} points")
        met = differences.mean() >= -POINTS
        print(f"Not below by more than {POINTS:g} point: {'met' if met else 'not met'}")


def main() -> None:
    """Fit all contenders to all folds, and print a line for each data set and a summary."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("KARNET_DATA"), help="folder of CSV files")
    parser.add_argument("--sets", nargs="+", default=list(datasets.DATASETS))
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--folds", type=int, default=1, help="number of the 5 folds; default: 1")
    parser.add_argument("--against", type=Path, metavar="SRC", help="folder of another version")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        warm_up()
        return serve(fitted)
    if options.data is not None:
        os.environ["KARNET_DATA"] = options.data
    print(describe_machine(1), describe_versions(), sep="\n", end="\n\n")
    karnet = Worker(__file__, SOURCE)
    contenders = {"karnet": karnet, "forest": karnet}
    if options.against is not None:
        contenders["other"] = Worker(__file__, options.against)
    print(f"{'':<24} rows" + "".join(f"{name:>9} s{'%':>8}" for name in contenders))
    means: dict[str, list[dict[str, float]]] = {name: [] for name in contenders}
    for name in options.sets:
        folds = [
            {"name": name, "repeat": repeat, "fold": fold}
            for repeat in range(options.repeats)
            for fold in range(options.folds)
        ]
        rounds = [
            {who: fit(contender=who, **fold) for who, fit in contenders.items()} for fold in folds
        ]
        for who in contenders:
            of_who = [each[who] for each in rounds]
            means[who].append({key: np.mean([each[key] for each in of_who]) for key in of_who[0]})
        last = [means[who][-1] for who in contenders]
        cells = "".join(f"{each['seconds']:>11.3f}{each['accuracy']:>8.2f}" for each in last)
        print(f"{name:<24}{last[0]['rows']:>5.0f}{cells}", flush=True)
    print()
    report(
        {
            who: {key: np.array([each[key] for each in rows]) for key in rows[0]}
            for who, rows in means.items()
        }
    )
    return None


if __name__ == "__main__":
    main()
