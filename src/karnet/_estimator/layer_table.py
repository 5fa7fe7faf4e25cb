"""What a fitted estimator is made of, as a table: its layers, or the networks it averages."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._util.text_table import TextTable

__all__ = ["layer_table"]

LAYERS = ("layer", "units", "activation", "learned by", "rank", "residual", "outside", "clipped")
ABOUT_LAYERS = (
    "rank: of what the layer sees, its column of ones included. residual: of its least-squares "
    "problem, over the target. outside: share of values outside the activation's domain. clipped: "
    "share of targets outside that of its inverse."
)
MEMBERS = (
    *("network", "view", "kernel", "activation", "hidden layers", "units", "scale", "metric"),
    *("ridge", "squared error"),
)
ABOUT_MEMBERS = (
    "view: what inputs go through first. metric: how often the view was stretched by the input "
    "metric. squared error: of rows left out; of numbers in units of their standard deviation."
)


def layer_table(estimator: Any) -> TextTable | None:
    """Return the layers of a plain estimator, or the networks of one that averages some.

    Parameters
    ----------
    estimator : estimator
        One of `karnet`.

    Returns
    -------
    Table or None
        None if it is not fitted.
    """
    if hasattr(estimator, "estimators_"):
        return _members(estimator)
    return _layers(estimator) if hasattr(estimator, "layers_") else None


def _layers(estimator: Any) -> TextTable:
    reports = estimator.layers_
    if hasattr(estimator, "coefs_"):
        units = [str(V.shape[1]) for V in estimator.coefs_]
    else:
        units = [*["∞"] * (len(reports) - 1), str(estimator.dual_coef_.shape[1])]
    rows = [
        (
            "output" if k == len(reports) else str(k),
            n,
            f.name,
            report.solver,
            "-" if report.rank is None else str(report.rank),
            "-" if report.residual is None else f"{report.residual:.2e}",
            _percent(report.outside),
            _percent(report.clipped),
        )
        for k, (report, n, f) in enumerate(
            zip(reports, units, estimator.activations_, strict=True), start=1
        )
    ]
    return TextTable("Layers", LAYERS, tuple(rows), ABOUT_LAYERS)


def _members(estimator: Any) -> TextTable:
    rows = [
        (
            str(k),
            member.shape.view,
            member.shape.kernel,
            member.activation,
            str(len(member.hidden_layer_sizes)),
            "∞" if np.isinf(member.width) else str(int(member.width)),
            f"{member.scale:.3g}",
            str(member.shape.rounds),
            f"{member.alpha_:.2e}",
            f"{member.error:.4f}",
        )
        for k, member in enumerate(estimator.estimators_, start=1)
    ]
    return TextTable("Networks that are averaged", MEMBERS, tuple(rows), ABOUT_MEMBERS)


def _percent(share: float) -> str:
    return f"{100.0 * share:.1f} %"
