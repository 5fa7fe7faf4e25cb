"""The style of drawings: colours, sizes, and how one becomes part of a page."""

from __future__ import annotations

import re
from io import BytesIO

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

__all__ = [
    "COLOURS",
    "INK",
    "LINE",
    "MARKERS",
    "SHADES",
    "STYLED",
    "WIDTH",
    "rules",
    "svg",
]

# Nearly black; in a page it becomes the colour of the text around the figure.
INK = "#010203"
# Told apart by the colour-blind, and on white as on black; every colour has its own shape.
COLOURS = ("#2a7fc4", "#d9640f", "#0d9373")
MARKERS = ("o", "s", "^")
SHADES = LinearSegmentedColormap.from_list("shades", [COLOURS[0], "#f4f1ea", COLOURS[1]])
# Inches, and points of a line of text: what is readable on a phone is so everywhere.
WIDTH, LINE = 4.6, 16.0
# A decorator: what a function draws or saves, it does in this style.
STYLED = rc_context(
    {
        "font.size": 10.0,
        "axes.titlesize": 10.0,
        "axes.labelsize": 10.0,
        "legend.fontsize": 10.0,
        "legend.frameon": False,
        "legend.handletextpad": 0.2,
        "xtick.labelsize": 10.0,
        "ytick.labelsize": 10.0,
        "text.color": INK,
        "axes.edgecolor": INK,
        "axes.labelcolor": INK,
        "xtick.color": INK,
        "ytick.color": INK,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.facecolor": "none",
        "figure.facecolor": "none",
        "savefig.facecolor": "none",
        "lines.markersize": 5.0,
        "svg.fonttype": "none",
        "svg.hashsalt": "karnet",
    }
)


@STYLED
def svg(figure: Figure, name: str) -> str:
    """Return a figure as SVG, the same bytes for the same figure.

    Names within the SVG start with its own name, so that a page can hold several, and what is drawn
    in `INK` takes the colour of the text.
    """
    buffer = BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue().decode()
    text = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", text)
    text = re.sub(r"\s*<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    return text.replace(INK, "currentColor")


def rules(ax: Axes, label: str) -> None:
    """Draw a faint line for each row and tick, and numbers above as below."""
    ax.grid(color=INK, alpha=0.12, linewidth=0.6)
    ax.tick_params(which="both", length=0.0)
    ax.tick_params(axis="x", labeltop=len(ax.get_yticks()) > 20)
    ax.spines[:].set_visible(False)
    ax.set_xlabel(label)
    ax.set_axisbelow(True)
