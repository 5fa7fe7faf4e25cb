"""Draw the decision regions of KARClassifier and KARClassifierCV on two moons.

Prints the test accuracy of both and of a classifier of scikit-learn.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import make_moons
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import RidgeClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from karnet import KARClassifier, KARClassifierCV

RIDGES = np.logspace(-3, 3, 13)
DARK, LIGHT = "#1f4e79", "#c55a11"


def contenders() -> dict[str, Any]:
    """Return the classifiers by name."""
    return {
        "KARClassifier": make_pipeline(MinMaxScaler(), KARClassifier(random_state=0)),
        "KARClassifierCV": KARClassifierCV(random_state=0),
        "Nystroem, RidgeClassifierCV": make_pipeline(
            StandardScaler(), Nystroem(random_state=0), RidgeClassifierCV(RIDGES)
        ),
    }


def main() -> None:
    """Fit, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--out", type=Path, default=Path("docs/choosing"), help="folder of the figure"
    )
    out = parser.parse_args().out
    X, y = make_moons(400, noise=0.2, random_state=0)
    new, labels = make_moons(10_000, noise=0.2, random_state=1)
    fitted = {name: net.fit(X, y) for name, net in contenders().items()}
    scores = {name: net.score(new, labels) for name, net in fitted.items()}
    for name, score in scores.items():
        print(f"{name:30s} {100.0 * score:.1f} %")
    shown = [(name, fitted[name]) for name in ("KARClassifier", "KARClassifierCV")]
    _draw(shown, scores, X, y, out)


def _draw(
    shown: list[tuple[str, Any]], scores: dict[str, float], X: Any, y: Any, out: Path
) -> None:
    mpl.rcParams.update({"svg.hashsalt": "karnet", "font.size": 10.0})
    figure = Figure(figsize=(8.0, 3.4), layout="constrained")
    grid = np.meshgrid(np.linspace(-1.8, 2.8, 200), np.linspace(-1.3, 1.8, 150))
    points = np.column_stack([axis.ravel() for axis in grid])
    for axes, (name, net) in zip(figure.subplots(1, len(shown)), shown, strict=True):
        decision = net.decision_function(points).reshape(grid[0].shape)
        axes.contourf(
            *grid, decision > 0.0, levels=[-0.5, 0.5, 1.5], colors=[DARK, LIGHT], alpha=0.2
        )
        axes.contour(*grid, decision, levels=[0.0], colors="black", linewidths=1.0)
        for label, colour in enumerate((DARK, LIGHT)):
            axes.plot(*X[y == label].T, ".", color=colour, markersize=4.0)
        axes.set_title(f"{name}: {100.0 * scores[name]:.1f} % of new rows", fontsize=10.0)
        axes.set_xticks([])
        axes.set_yticks([])
    out.mkdir(parents=True, exist_ok=True)
    for kind in ("svg", "png"):
        figure.savefig(
            out / f"moons.{kind}", dpi=110, metadata={"Date": None} if kind == "svg" else None
        )


if __name__ == "__main__":
    main()
