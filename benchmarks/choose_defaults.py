"""Settings of small tables, each chosen by leaving one data set out.

``python benchmarks/choose_defaults.py --data FOLDER`` fits `KARClassifierCV` with the default and
with other settings of its search to the same folds of the paper's data sets of up to 1500 training
rows. For each data set, the setting is chosen that has the best mean accuracy on all other sets.
The mean accuracy of these choices is the figure to expect on tables that had no part in the choice.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from dataclasses import replace
from multiprocessing import Pool
from types import MappingProxyType
from typing import Any

import numpy as np
from machine import describe_machine, describe_versions
from quality.data import arrays, load

from karnet import KARClassifierCV, datasets
from karnet._search import settings as search_settings

MOST_ROWS = 1500
DEFAULT = "default"
# For each choice, the settings that differ from the defaults.
CHOICES: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        DEFAULT: {},
        "margin 5 %": {"margin": 0.05},
        "margin 20 %": {"margin": 0.2},
        "one kernel": {"n_kernels": 1},
        "10 folds": {"n_folds": 10},
        "all rows shape": {"shaping_share": 1.0},
        "half of the shrinkage": {"shrinkage": 0.5 * search_settings.SETTINGS.shrinkage},
    }
)


def accuracies(job: tuple[str, int]) -> list[float] | None:
    """Return the accuracy of each setting on a fold of a data set, or None for a long one."""
    name, fold = job
    problem = load(name)
    part = problem.split(0)[fold]
    if len(part.train) > MOST_ROWS or problem.kind != "classification":
        return None
    X, X_test = arrays(problem.inputs[part.train], problem.inputs[part.test])
    found, defaults = [], search_settings.SETTINGS
    for changed in CHOICES.values():
        search_settings.SETTINGS = replace(defaults, **changed)
        net = KARClassifierCV(random_state=fold).fit(X, problem.y[part.train])
        found.append(100.0 * float(np.mean(net.predict(X_test) == problem.y[part.test])))
    search_settings.SETTINGS = defaults
    return found


def report(table: dict[str, np.ndarray]) -> None:
    """Print each setting beside the default, and the choices of leaving one set out."""
    means = np.array(list(table.values()))
    for name, accuracy, differences in zip(
        CHOICES, means.mean(axis=0), (means - means[:, :1]).T, strict=True
    ):
        error = differences.std(ddof=1) / np.sqrt(len(differences))
        print(f"{name:<44}{accuracy:8.2f} %{differences.mean():+8.2f} +- {error:.2f}")
    # The default, which comes first, is kept where others are equal.
    chosen = np.array(
        [np.argmax(np.delete(means, k, axis=0).mean(axis=0)) for k in range(len(means))]
    )
    mean = means[np.arange(len(means)), chosen].mean()
    print(f"\nChosen by the other sets: {mean:.2f} %, default {means[:, 0].mean():.2f} %")
    for name, n in zip(CHOICES, np.bincount(chosen, minlength=len(CHOICES)), strict=True):
        if n:
            print(f"  {name}: chosen for {n} of {len(means)} sets")


def main() -> None:
    """Fit all settings to all folds, and print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("KARNET_DATA"), help="folder of CSV files")
    parser.add_argument("--folds", type=int, default=3, help="number of the 5 folds; default: 3")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    if options.data is not None:
        os.environ["KARNET_DATA"] = options.data
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    print(describe_machine(1), describe_versions(), sep="\n", end="\n\n")
    jobs = [(name, fold) for name in datasets.DATASETS for fold in range(options.folds)]
    by_set: dict[str, list[list[float]]] = {}
    with Pool(options.processes) as pool:
        for (name, _), found in zip(jobs, pool.imap(accuracies, jobs), strict=True):
            if found is not None:
                by_set.setdefault(name, []).append(found)
                print(f"{name:<28}" + "".join(f"{each:8.2f}" for each in found), flush=True)
    print()
    report({name: np.mean(found, axis=0) for name, found in by_set.items()})


if __name__ == "__main__":
    main()
