"""How a fitted estimator looks in a notebook: scikit-learn's diagram, and its layers below."""

from __future__ import annotations

from html import escape
from typing import Any

from sklearn import get_config
from sklearn.utils import estimator_html_repr

from .._util.text_table import TextTable
from .layer_table import layer_table

__all__ = ["ShowsLayers"]


class ShowsLayers:
    """Adds the table of layers to the HTML of a fitted estimator.

    Scikit-learn 1.7 and newer render through `_html_repr`, 1.6 through the other two.
    """

    def _html_repr(self) -> str:
        layers = layer_table(self)
        return str(estimator_html_repr(self)) + ("" if layers is None else _html(layers))

    def _repr_html_inner(self) -> str:
        return self._html_repr()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        output = {"text/plain": repr(self)}
        if get_config()["display"] == "diagram":
            output["text/html"] = self._html_repr()
        return output


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
