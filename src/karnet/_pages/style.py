"""The style of figures, and their conversion to SVG."""

from __future__ import annotations

import re
from io import BytesIO

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

# Nearly black; on a page it is replaced by the colour of the text.
INK = "#010203"
# Colours that the colour-blind can distinguish, on white and on black.
COLOURS = ("#2a7fc4", "#d9640f", "#0d9373")
# The marker of each colour.
MARKERS = ("o", "s", "^")
# A colour map from the first to the second colour.
SHADES = LinearSegmentedColormap.from_list("shades", [COLOURS[0], "#f4f1ea", COLOURS[1]])
# The width of a figure in inches, which is readable on a phone.
WIDTH = 4.6
# The height of a line of text in points.
LINE = 16.0
# A decorator of functions that draw or save in the style of the pages.
STYLED = rc_context(
    {
        "font.size": 10.0,
        **dict.fromkeys(("axes.titlesize", "axes.labelsize", "legend.fontsize"), 10.0),
        **dict.fromkeys(("xtick.labelsize", "ytick.labelsize"), 10.0),
        **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor"), INK),
        **dict.fromkeys(("xtick.color", "ytick.color"), INK),
        **dict.fromkeys(("axes.facecolor", "figure.facecolor", "savefig.facecolor"), "none"),
        **dict.fromkeys(("axes.spines.top", "axes.spines.right", "legend.frameon"), False),
        "legend.handletextpad": 0.2,
        "lines.markersize": 5.0,
        "svg.fonttype": "none",
        "svg.hashsalt": "karnet",
    }
)


@STYLED
def svg(figure: Figure, name: str) -> str:
    """Return a figure as SVG, the same bytes for the same figure.

    Ids start with the name of the figure, so that a page can hold several figures. Everything drawn
    in `INK` has the colour of the surrounding text.
    """
    buffer = BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue().decode()
    text = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", text)
    text = re.sub(r"\s*<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    return text.replace(INK, "currentColor")


def rules(ax: Axes, label: str) -> None:
    """Draw a faint line at each tick, and repeat the numbers above a tall figure."""
    ax.grid(color=INK, alpha=0.12, linewidth=0.6)
    ax.tick_params(which="both", length=0.0)
    ax.tick_params(axis="x", labeltop=len(ax.get_yticks()) > 20)
    ax.spines[:].set_visible(False)
    ax.set_xlabel(label)
    ax.set_axisbelow(True)
