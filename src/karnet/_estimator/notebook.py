"""The base of all estimators, which shows a table of layers in a notebook."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from html import escape
from typing import Any

from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.utils import estimator_html_repr

from .._util.text_table import TextTable

LAYERS = ("layer", "units", "activation", "learned by", "rank", "residual", "outside", "clipped")
ABOUT_LAYERS = (
    "rank: of the inputs of the layer, with their column of ones. residual: of its least-squares "
    "problem, relative to the target. outside: share of values outside the activation's domain. "
    "clipped: share of targets outside the domain of its inverse."
)
MEMBERS = ("network", "view", "kernel", "scale", "metric", "leaves", "ridge", "squared error")
ABOUT_MEMBERS = (
    "view: the transformation of the inputs. metric: how often the view was stretched by the input "
    "metric. leaves: parts of the table with a solution each. squared error: of left-out "
    "predictions; for numbers in units of their standard deviation."
)


class KAREstimator(BaseEstimator):
    """An estimator that adds a table of layers to the HTML that scikit-learn renders.

    Scikit-learn 1.7 and newer render through `_html_repr`, 1.6 through the other two methods.
    """

    @abstractmethod
    def _layer_table(self) -> TextTable | None:
        """Return the layers, or the networks that are averaged; None before the fit."""

    @abstractmethod
    def _networks(self) -> list[Any]:
        """Return the networks whose weighted sum is predicted; none before the fit."""

    def _html_repr(self) -> str:
        layers = self._layer_table()
        return str(estimator_html_repr(self)) + ("" if layers is None else _html(layers))

    _repr_html_inner = _html_repr

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        output = {"text/plain": repr(self)}
        if get_config()["display"] == "diagram":
            output["text/html"] = self._html_repr()
        return output


def layer_table(estimator: Any) -> TextTable | None:
    """Return the table of layers of an estimator of karnet; None for others and before the fit."""
    return estimator._layer_table() if isinstance(estimator, KAREstimator) else None


def networks_of(estimator: Any) -> list[Any]:
    """Return the networks of an estimator of karnet; none of others and before the fit."""
    return estimator._networks() if isinstance(estimator, KAREstimator) else []


def table_of_layers(net: Any) -> TextTable:
    """Return the table of the layers of a fitted network."""
    reports, weights = net.layers_, net.coefs_ if hasattr(net, "coefs_") else [net.dual_coef_]
    infinite = ["∞"] * (len(reports) - len(weights))
    units = [*infinite, *(str(V.shape[1]) for V in weights)]
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
        for k, (report, n, f) in enumerate(zip(reports, units, net.activations_, strict=True), 1)
    ]
    return TextTable("Layers", LAYERS, tuple(rows), ABOUT_LAYERS)


def table_of_members(members: Sequence[Any]) -> TextTable:
    """Return the table of the networks of an average."""
    rows = [
        (
            str(k),
            member.shape.view,
            member.shape.kernel,
            f"{member.scale:.3g}",
            str(member.shape.rounds),
            str(sum(map(len, member.intercept_))),
            f"{member.alpha_:.2e}",
            f"{member.error:.4f}",
        )
        for k, member in enumerate(members, start=1)
    ]
    return TextTable("Networks that are averaged", MEMBERS, tuple(rows), ABOUT_MEMBERS)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100.0 * share:.1f} %"


def _html(table: TextTable) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in table.header)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows
    )
    return (
        f"<details open><summary>{escape(table.title)}</summary><div style='overflow-x: auto'>"
        f"<table title='{escape(table.note)}'><thead><tr>{head}</tr></thead>"
        f"<tbody>{rows}</tbody></table></div></details>"
    )
