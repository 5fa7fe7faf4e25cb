"""Sphinx configuration: `make docs` builds the site from this folder, without network access."""

from __future__ import annotations

import re
from importlib.metadata import distribution

from sphinx.application import Sphinx
from sphinx_gallery.sorting import ExplicitOrder

import karnet

project = "karnet"
author = "The karnet developers"
copyright = f"{author}, BSD 3-Clause"  # noqa: A001
version = release = karnet.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_templates"]

# Pages are Markdown, so that they can also be read in the repository.
myst_enable_extensions = ["dollarmath"]
myst_fence_as_directive = ["math"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
toc_object_entries_show_parents = "hide"

# MathJax as a single local file, so that formulas also work when pages are opened from disk.
mathjax = distribution("sphinx-mathjax-offline").locate_file(
    "sphinx-mathjax-offline/static/mathjax/tex-svg.js"
)
mathjax_path = "tex-svg.js"

html_theme = "pydata_sphinx_theme"
html_title = "karnet"
html_static_path = ["_static", str(mathjax)]
html_css_files = ["karnet.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}

EXAMPLES = [
    "method_in_pictures",
    "xor",
    "moons",
    "iris_widths",
    "mixed_table",
    "what_does_it_know",
    "streaming",
    "five_sites",
    "gpu",
    "onnx_graph",
]


sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"\.py$",
    "within_subsection_order": ExplicitOrder([*(f"{name}.py" for name in EXAMPLES), "*"]),
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 1.0,
}


# Files outside this folder that have a page on the site, and the addresses of these pages.
PAGES = {
    r"(?:\.\./)+examples/(\w+)\.py": r"auto_examples/\1.rst",
    r"(?:\.\./)+benchmarks/NOTES\.md": "notes.md",
    r"(?:\.\./)+benchmarks/quality/README\.md": "quality.md",
    r"(?:\.\./)+benchmarks/quality/results/report\.md": "quality-report.md",
}


def links_to_pages(app: Sphinx, name: str, source: list[str]) -> None:
    """Replace links to files of the repository by links to the pages of the site."""
    up = "../" * name.count("/")
    for link, page in PAGES.items():
        source[0] = re.sub(rf"\({link}\)", rf"({up}{page})", source[0])


def setup(app: Sphinx) -> None:
    """Register the replacement of links in every page."""
    app.connect("source-read", links_to_pages)
