"""Workflows, recipe and metadata of a release agree with each other and ask for little."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import karnet

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
RECIPE = ROOT / "conda" / "recipe.yaml"
# Rights beyond reading the repository, and the workflow that needs them.
RIGHTS = {("codeql", "security-events"), ("release", "id-token")}
# Names of conda-forge that are not those of PyPI.
ON_PYPI = {"matplotlib-base": "matplotlib"}
every_workflow = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)


def read(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@every_workflow
def test_a_workflow_has_the_least_rights_and_no_secrets(path):
    content = read(path)
    assert content["permissions"] == {"contents": "read"}
    assert "group" in content["concurrency"]
    for job in content["jobs"].values():
        assert job["timeout-minutes"] <= 60
        written = {name for name, right in job.get("permissions", {}).items() if right == "write"}
        assert {(path.stem, name) for name in written} <= RIGHTS
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"secrets\.|password|pull_request_target", text.partition("\nname:")[2])


@every_workflow
def test_actions_are_pinned_and_keep_no_credentials(path):
    for job in read(path)["jobs"].values():
        for step in (each for each in job["steps"] if "uses" in each):
            assert re.search(r"@((release/)?v\d+|[0-9a-f]{40})$", step["uses"])
            if step["uses"].startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False


@pytest.mark.skipif(not WORKFLOWS, reason="an sdist has no workflows")
def test_the_tested_pythons_are_those_of_nox_on_three_systems():
    matrix = read(ROOT / ".github" / "workflows" / "tests.yml")["jobs"]["tests"]["strategy"][
        "matrix"
    ]
    nox = (ROOT / "noxfile.py").read_text(encoding="utf-8")
    assert matrix["python"] == re.findall(r'"(3\.\d+)"', re.search(r"PYTHONS = (.*)", nox)[1])
    assert PROJECT["project"]["requires-python"] == f">={matrix['python'][0]}"
    assert [each.partition("-")[0] for each in matrix["os"]] == ["ubuntu", "macos", "windows"]


@pytest.mark.skipif(not WORKFLOWS, reason="an sdist has no workflows")
def test_workflows_run_sessions_of_nox_that_exist():
    nox = (ROOT / "noxfile.py").read_text(encoding="utf-8")
    known = re.findall(r"^def (\w+)\(session", nox, re.M)
    for path in WORKFLOWS:
        for name in re.findall(r"nox --session \"?(\w+)", path.read_text(encoding="utf-8")):
            assert name in known


def requirements(lines):
    """Return the versions that lines such as "numpy >=2.0" allow, by name."""
    pairs = (line.partition(" ")[::2] for line in lines)
    return {ON_PYPI.get(name, name): versions for name, versions in pairs}


def versions_in_project():
    """Return the versions that pyproject.toml allows, by name; of the core alone, and of all."""
    core = {
        each.name: each.specifier for each in map(Requirement, PROJECT["project"]["dependencies"])
    }
    extras = PROJECT["project"]["optional-dependencies"].values()
    needs = (Requirement(each) for extra in extras for each in extra)
    return core, core | {each.name: each.specifier for each in needs}


@pytest.mark.skipif(not RECIPE.exists(), reason="an sdist has no recipe")
def test_the_recipe_has_the_dependencies_of_the_project():
    recipe = read(RECIPE)
    core, all_of_them = versions_in_project()
    assert recipe["context"]["version"] == karnet.__version__
    assert PROJECT["project"]["requires-python"] == f">={recipe['context']['python_min']}"
    needed = requirements(recipe["requirements"]["run"])
    assert needed.pop("python") == ">=${{ python_min }}"
    assert needed.keys() == core.keys()
    for name, versions in (
        needed | requirements(recipe["requirements"]["run_constraints"])
    ).items():
        assert Requirement(f"{name} {versions}").specifier == all_of_them[name], name
    (build,) = PROJECT["build-system"]["requires"]
    assert build.replace(">=", " >=") in recipe["requirements"]["host"]
    (command,) = recipe["build"]["python"]["entry_points"]
    assert PROJECT["project"]["scripts"] == dict([command.split(" = ")])
    assert recipe["about"]["summary"] == PROJECT["project"]["description"]
    assert recipe["about"]["license"] == PROJECT["project"]["license"]


@pytest.mark.skipif(not WORKFLOWS, reason="an sdist has no forms")
def test_the_form_for_problems_asks_for_the_versions():
    fields = read(ROOT / ".github" / "ISSUE_TEMPLATE" / "bug.yml")["body"]
    (versions,) = [each for each in fields if each.get("id") == "versions"]
    command = re.search(r'python -c "(.*)"', versions["attributes"]["description"])[1]
    assert versions["validations"]["required"]
    assert compile(command, "bug.yml", "exec")
    assert callable(karnet.show_versions)
    assert command.endswith("karnet.show_versions()")
