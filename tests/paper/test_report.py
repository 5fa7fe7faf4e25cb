"""The report holds what was run, says what was not, and stands alone."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from math import nan

import numpy as np
import pytest

from karnet._pages import html as page
from karnet._pages.style import INK
from karnet._util.text_table import TextTable
from karnet.datasets import DATASETS
from karnet.paper import iris, report, xor
from karnet.paper.methods import DEPTHS, METHODS
from karnet.paper.store import Fit, Store
from karnet.paper.uci import RunSettings
from karnet.paper.verdicts import Results

SECTIONS = ["summary", "xor", "iris", "sets", "depth", "choices", "deviations", "machine"]
FIGURES = [
    "figure-02-xor",
    "figure-03-iris-outputs",
    "figure-04-iris-two-layers",
    "figure-05-iris-five-layers",
    "figure-06-accuracy",
    "figure-07-accuracy-equal-width",
    "figure-08-time",
    "figure-09-time-equal-width",
    "figure-10-depth",
    "open-choices",
]
HOSTILE = "karnet <script>alert('&')</script> \"$title"
SETTINGS = RunSettings(("iris", "letter"), n_trials=2, n_folds=2)


class Page(HTMLParser):
    """What an HTML page holds; elements that are not closed in order are refused."""

    def __init__(self, text):
        super().__init__()
        self.open, self.names, self.links, self.text = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.handle_startendtag(tag, attributes)
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        assert tag not in ("script", "link", "iframe", "img", "object")
        for name, value in attributes:
            if name == "id":
                self.names.append(value)
            if name.split(":")[-1] in ("href", "src", "srcset", "data", "action"):
                self.links.append(value)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text.append(data)


def stand_in_fits():
    """Return fits of every method on three data sets, one out of memory and one cut short."""
    rng = np.random.RandomState(0)
    fits = []
    for name in ("iris", "wine", "letter"):
        number = DATASETS[name].number
        for method in METHODS.values():
            if number not in method.numbers:
                continue
            for fold in range(2):
                structure = "-".join(map(str, method.sizes(5)))
                accuracy, cpu, note = rng.uniform(0.5, 1.0), rng.uniform(1e-3, 1.0), ""
                if method.name == "levenberg-marquardt":
                    note = {"iris": "time limit", "letter": "out of memory"}.get(name, "")
                    accuracy = nan if number == 42 else accuracy
                    cpu = nan if number == 42 else 300 * cpu
                times = (cpu, cpu, 1.0)
                fit = (method.name, name, 0, fold, structure, accuracy, *times, 0, "0 <1>", note)
                fits.append(Fit(*fit))
    return fits


@pytest.fixture(scope="module")
def studies():
    fits = tuple(iris.fitted(width) for width in (89, 90))
    return xor.study(3), fits, (iris.sweeps(2, 1), iris.sweeps(5, 1))


@pytest.fixture(scope="module")
def written(studies, tmp_path_factory):
    out = tmp_path_factory.mktemp("report")
    return report.write(out, Results(stand_in_fits(), *studies, SETTINGS, [HOSTILE]))


def test_a_report_holds_every_section_and_every_link_leads_somewhere(written):
    content = Page(written.read_text(encoding="utf-8"))
    assert [name for name in content.names if name in SECTIONS] == SECTIONS
    assert len(set(content.names)) == len(content.names)
    inside = {f"#{name}" for name in content.names}
    assert all(link in inside or link.startswith("data:image/png") for link in content.links)


def test_a_report_stands_alone_and_is_small(written):
    text = written.read_text(encoding="utf-8")
    assert "http" not in text
    assert "url(" not in text.replace("url(#", "")
    assert len(text) < 2_000_000


def test_a_report_shows_what_is_missing_as_such(written):
    text = " ".join(Page(written.read_text(encoding="utf-8")).text)
    assert not re.search(r"\bnan\b", text, re.IGNORECASE)
    assert "out of memory" in text
    assert "Of 6 trainings, 2 reached the time limit of 20 s and 2 did not fit in memory" in text
    assert "ended before the time limit (1 of the sets)" in text
    assert "not run in full" in text
    assert "for this section" not in text


def test_depths_are_compared_on_shared_folds_and_sets_with_fewer_are_named(studies, tmp_path):
    fits = [fit for fit in stand_in_fits() if fit.method in DEPTHS.values()]
    fits += [fit._replace(trial=1, accuracy=0.0) for fit in fits if fit.dataset != "wine"]
    fits.remove(next(fit for fit in fits if fit.method == DEPTHS[4] and fit.trial == 1))
    path = report.write(tmp_path, Results(fits, *studies, SETTINGS, []))
    text = " ".join(Page(path.read_text(encoding="utf-8")).text)
    assert "These are 9 folds of 3 sets, in 2 trials." in text
    assert "Not all folds of these trials were run on iris, wine." in text
    assert "Sets that were not run: 1, 2," in text


def test_what_a_user_writes_is_text_and_not_markup(written):
    text = written.read_text(encoding="utf-8")
    assert "<script" not in text
    assert HOSTILE in "".join(Page(text).text)
    table = page.table(TextTable("<b>", ("", "data set"), (("1", "<i>&\"'"),), "<u>"))
    assert "<i>&\"'" in "".join(Page(table).text)
    for tag in ("<b>", "<i>", "<u>"):
        assert tag not in table


def test_every_figure_is_written_as_svg_and_png(written):
    files = sorted(path.name for path in (written.parent / "figures").iterdir())
    assert files == sorted(f"{name}.{kind}" for name in FIGURES for kind in ("png", "svg"))


def test_the_same_results_give_the_same_figures(written, studies, tmp_path):
    again = report.write(tmp_path, Results(stand_in_fits(), *studies, SETTINGS, []))
    for path in (written.parent / "figures").iterdir():
        assert path.read_bytes() == (again.parent / "figures" / path.name).read_bytes(), path.name


def test_figures_take_the_colour_of_the_text_around_them(written):
    for name in FIGURES:
        drawing = (written.parent / "figures" / f"{name}.svg").read_text(encoding="utf-8")
        assert "currentColor" in drawing
        assert INK not in drawing
        assert "#000000" not in drawing


def test_a_report_without_results_says_what_to_run(studies, tmp_path):
    path = report.write(tmp_path, Results([], *studies, SETTINGS, ["karnet reproduce report"]))
    content = Page(path.read_text(encoding="utf-8"))
    text = " ".join(content.text)
    assert [name for name in content.names if name in SECTIONS] == SECTIONS
    for experiment in ("uci", "depth", "choices"):
        assert f"run “karnet reproduce {experiment}” for this section" in text
    assert "not run" in text
    assert not re.search(r"\bnan\b", text, re.IGNORECASE)


def test_a_report_is_made_of_what_the_folder_holds(studies, tmp_path, monkeypatch):
    monkeypatch.setattr(xor, "study", lambda: studies[0])
    monkeypatch.setattr(iris, "sweeps", lambda n_layers: studies[2][n_layers == 5])
    with Store(tmp_path / "results.sqlite", str(SETTINGS)) as store:
        store.add([fit for fit in stand_in_fits() if fit.method == "karnet"])
    path = report.write_report(tmp_path, SETTINGS, "karnet reproduce uci")
    text = " ".join(Page(path.read_text(encoding="utf-8")).text)
    assert "KARnet, 3 sets, 1 trial, 6 fits" in text
    assert "“karnet reproduce uci”" not in text
    assert "run “karnet reproduce depth” for this section" in text


def test_an_output_bias_moves_the_step_by_one_in_two_layers_and_in_five(studies):
    for without, with_bias in studies[2]:
        assert (without.step, with_bias.step) == (90, 89)
    below, on = studies[1]
    assert np.abs(below.outputs - below.targets).max() > 1e-3
    assert np.abs(on.outputs - on.targets).max() < 1e-6


def test_two_of_four_points_are_not_enough_for_xor(studies):
    right = {(each.n_layers, each.network): each.n_right for each in studies[0]}
    for n_layers in (2, 5):
        assert right[n_layers, xor.KARNET] == 3
        assert right[n_layers, xor.DIVIDED] == 0


def test_nothing_is_drawn_before_a_report_is_asked_for():
    code = "import sys, karnet.cli; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
