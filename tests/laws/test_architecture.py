"""The page on the architecture agrees with the source, and tests leave private names alone."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PATHS = sorted(set(re.findall(r"`([\w/]+\.py)`", PAGE)))
TESTS = sorted((ROOT / "tests").rglob("*.py"))


def test_the_picture_is_drawn_from_the_present_imports():
    drawn = runpy.run_path(str(ROOT / "docs" / "draw_rooms.py"))["picture"]()
    committed = (ROOT / "docs" / "rooms.svg").read_text(encoding="utf-8")
    assert committed == drawn, "run python docs/draw_rooms.py"


@pytest.mark.parametrize("path", PATHS)
def test_the_page_names_files_that_exist(path):
    assert (ROOT / path).exists() or (ROOT / "src" / "karnet" / path).exists()


def test_the_page_describes_every_place():
    places = {each.stem for each in (ROOT / "src" / "karnet").iterdir()}
    unlisted = {"__init__", "_version", "py", "__pycache__"}
    assert {p for p in places - unlisted if f"`{p}`" not in PAGE} == set()


@pytest.mark.parametrize("path", TESTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_test_patches_a_private_name(path):
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"setattr\(\s*f?[\"']karnet\.(\w+\.)*_", text)
