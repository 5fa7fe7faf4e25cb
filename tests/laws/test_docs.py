"""What documentation shows works when it is typed in."""

from __future__ import annotations

import contextlib
import doctest
import inspect
import io
import re
import runpy
from pathlib import Path

import pytest

import karnet
from karnet.activations import ACTIVATIONS
from tests.laws.test_imports import modules

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# Pages whose lines need more than the core.
NEEDED = {
    "autogluon.md": ("autogluon.tabular",),
    "blocks.md": ("pyarrow",),
    "command-line.md": ("pandas", "pyarrow", "skrub"),
    "dask.md": ("dask.array",),
    "files.md": ("skops", "skl2onnx", "onnxruntime"),
    "gpu.md": ("torch", "array_api_compat"),
    "inspection.md": ("matplotlib.pyplot",),
    "understanding.md": ("matplotlib.pyplot",),
}


def lines_of_python(page):
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.S | re.M)


PAGES = [page for page in sorted(DOCS.rglob("*.md")) if lines_of_python(page)]


def houses():
    lines = [f"{70 + 3 * i},{['north', 'south'][i % 2]},{200 + 9 * i + i % 2}" for i in range(40)]
    for name in ("houses.csv", "new-houses.csv"):
        Path(name).write_text("\n".join(["size,part,price", *lines]))
    return {}


# What pages take for granted.
GIVEN = {"command-line.md": houses}


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.__name__)
def test_examples_of_docstrings(module):
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_lines_of_python_in_pages_run(page, tmp_path, monkeypatch):
    for module in NEEDED.get(page.name, ()):
        pytest.importorskip(module)
    monkeypatch.chdir(tmp_path)
    names = GIVEN.get(page.name, dict)()
    with contextlib.redirect_stdout(io.StringIO()):
        for block in lines_of_python(page):
            exec(compile(block, page.name, "exec"), names)


@pytest.mark.parametrize("name", ["KARClassifier", "KARRegressor"])
@pytest.mark.parametrize("kind", ["", "CV"])
def test_every_parameter_is_documented_once_and_in_its_place(name, kind):
    estimator = getattr(karnet, name + kind)
    section = estimator.__doc__.partition("Parameters\n")[2].partition("Attributes\n")[0]
    documented = re.findall(r"^    (\w+) : ", section, re.M)
    signature = inspect.signature(estimator)
    assert documented == list(signature.parameters)


def test_the_readme_s_lines_of_python_run():
    (block,) = lines_of_python(ROOT / "README.md")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(block, {})
    accuracies = [float(line.split()[0]) for line in printed.getvalue().splitlines()]
    assert len(accuracies) == 2
    assert min(accuracies) > 0.9


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_links_of_the_repository_s_own_pages_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#:]+)(?:#[\w-]+)?\)", (ROOT / page).read_text())
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_every_activation_and_estimator_is_in_the_reference():
    reference = (DOCS / "api.md").read_text()
    assert [name for name in ACTIVATIONS if f"`{name}`" not in reference] == []
    assert [name for name in karnet.__all__ if f"   {name}\n" not in reference] == []


def test_links_that_lead_nowhere_are_found(tmp_path):
    broken = runpy.run_path(str(DOCS / "check_links.py"))["broken"]
    (tmp_path / "a.html").write_text('<p id="here"><a href="b.html#there">b</a>')
    (tmp_path / "b.html").write_text('<p id="there"><a href="a.html">a</a><a href="#there">b</a>')
    assert list(broken(tmp_path)) == []
    (tmp_path / "c.html").write_text(
        '<a href="b.html#gone">b</a><a href="gone.html">c</a><img src="https://example.org/x.png">'
    )
    assert len(list(broken(tmp_path))) == 3


def test_every_example_has_its_place_in_the_gallery():
    names = {path.stem for path in (ROOT / "examples").glob("*.py")}
    listed = re.search(r"EXAMPLES = \[(.*?)\]", (DOCS / "conf.py").read_text(), re.S)[1]
    assert set(re.findall(r'"(\w+)"', listed)) == names


def test_the_changelog_and_the_licence_are_there():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.findall(r"^## (\S+) \(\d{4}-\d\d-\d\d\)$", changelog, re.M)
    assert released[0] == karnet.__version__
    assert "BSD 3-Clause" in (ROOT / "LICENSE").read_text()
    assert f"\nversion: {karnet.__version__}\n" in (ROOT / "CITATION.cff").read_text()
