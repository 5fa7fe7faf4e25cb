"""Long tables on a GPU, beside xRFM: ``python benchmarks/long_gpu.py FOLDER``.

The folder holds a file NAME.npz for each table, with X, y, X_test and y_test, the targets floating
point numbers unless they are classes. The CV estimators are fitted as they are by default, with
``device="cuda"``. xRFM has its L2 kernel, standardised inputs, a fifth of the training rows for its
own validation, and three bandwidths, of which the best on these rows counts. All times are in
seconds and contain the search. Each contender first fits generated rows, so that no time contains
the loading of code. Results are written to ``results/long_gpu.csv``.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import karnet
from karnet import KARClassifierCV, KARRegressorCV

RESULTS = Path(__file__).with_name("results") / "long_gpu.csv"
BANDWIDTHS = (3.0, 10.0, 30.0)
COLUMNS = (
    "table",
    "rows",
    "columns",
    "contender",
    "seed",
    "score",
    "measure",
    "fit_s",
    "predict_s",
)


def load(path: Path) -> tuple[list[Any], bool]:
    """Return X, y, X_test and y_test, and whether the targets are classes."""
    with np.load(path, allow_pickle=True) as file:
        X, y, X_test, y_test = (file[name] for name in ("X", "y", "X_test", "y_test"))
    has_classes = y.dtype.kind != "f"
    if has_classes:
        classes = np.unique(y)
        y, y_test = np.searchsorted(classes, y), np.searchsorted(classes, y_test)
    return [X.astype(float), y, X_test.astype(float), y_test], has_classes


def ours(X: Any, y: Any, has_classes: bool, seed: int) -> Any:
    """Return a fitted estimator of karnet."""
    estimator = KARClassifierCV if has_classes else KARRegressorCV
    return estimator(device="cuda", random_state=seed).fit(X, y)


class Peer:
    """xRFM with the best of three bandwidths."""

    def __init__(self, X: Any, y: Any, has_classes: bool, seed: int) -> None:
        self.has_classes, self.mean, self.scale = has_classes, X.mean(axis=0), X.std(axis=0)
        self.scale[self.scale == 0.0] = 1.0
        held = np.random.default_rng(seed).permutation(len(X)) < len(X) // 5
        self.level, self.unit = (0.0, 1.0) if has_classes else (y.mean(), y.std())
        y = y if has_classes else (y - self.level) / self.unit
        Z = (X - self.mean) / self.scale
        tried = [self._fitted(Z, y, held, bandwidth, seed) for bandwidth in BANDWIDTHS]
        self.model = min(tried, key=lambda each: each[0])[1]

    def _fitted(self, Z: Any, y: Any, held: Any, bandwidth: float, seed: int) -> Any:
        from xrfm import xRFM

        parameters = {
            "model": {"kernel": "l2", "exponent": 1.0, "bandwidth": bandwidth, "diag": False},
            "fit": {"reg": 1e-3, "iters": 5, "return_best_params": True, "early_stop_rfm": True},
        }
        metric = "brier" if self.has_classes else "mse"
        device = torch.device("cuda")
        model = xRFM(
            parameters, device=device, tuning_metric=metric, random_state=seed, verbose=False
        )
        model.fit(Z[~held], y[~held], Z[held], y[held])
        if self.has_classes:
            return np.mean(model.predict(Z[held]).ravel() != y[held]), model
        return np.mean((np.ravel(model.predict(Z[held])) - y[held]) ** 2), model

    def predict(self, X: Any) -> Any:
        """Return the prediction for each row."""
        found = np.ravel(self.model.predict((X - self.mean) / self.scale))
        return found if self.has_classes else self.level + self.unit * found


CONTENDERS = {"karnet": ours, "xRFM": Peer}


def load_code(contender: str) -> None:
    """Fit a contender to generated rows of both tasks."""
    X = np.random.default_rng(0).normal(size=(6000, 10))
    for has_classes, y in ((False, X[:, 0] * X[:, 1]), (True, np.digitize(X[:, 0], [-0.5, 0.5]))):
        try:
            CONTENDERS[contender](X, y, has_classes, 0).predict(X)
        except (ImportError, RuntimeError, ValueError, TypeError) as error:
            print(f"{contender} on generated rows: {error}", file=sys.stderr, flush=True)


def measured(contender: str, path: Path, seed: int) -> dict[str, Any]:
    """Return the score of a contender on a table, and its times."""
    (X, y, X_test, y_test), has_classes = load(path)
    torch.cuda.synchronize()
    start = time.perf_counter()
    model = CONTENDERS[contender](X, y, has_classes, seed)
    torch.cuda.synchronize()
    fitted = time.perf_counter()
    found = model.predict(X_test)
    end = time.perf_counter()
    if has_classes:
        score, measure = 100.0 * np.mean(found == y_test), "accuracy, %"
    else:
        score, measure = np.sqrt(np.mean((found - y_test) ** 2)), "RMSE"
    values = path.stem, *X.shape, contender, seed, f"{score:.5g}", measure
    times = f"{fitted - start:.1f}", f"{end - fitted:.2f}"
    return dict(zip(COLUMNS, (*values, *times), strict=True))


def main() -> None:
    """Measure all contenders on all tables of a folder."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=1, help="fits of each, with different seeds")
    parser.add_argument("--contenders", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    print(f"karnet {karnet.__version__}, torch {torch.__version__}, {torch.cuda.get_device_name()}")
    for contender in options.contenders:
        load_code(contender)
    rows = []
    for path in sorted(options.folder.glob("*.npz"), key=lambda path: path.stem):
        for contender in options.contenders:
            for seed in range(options.seeds):
                try:
                    rows.append(measured(contender, path, seed))
                except (ImportError, RuntimeError, ValueError, TypeError) as error:
                    print(f"{contender} on {path.stem}: {error}", file=sys.stderr, flush=True)
                    continue
                print(*rows[-1].values(), sep="\t", flush=True)
    with options.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
