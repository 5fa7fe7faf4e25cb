"""The public names of docs/api.md, with their signatures, are those of `public_api.json`.

``python -m tests.laws.test_public_api`` prints that file for the installed version.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import re
from pathlib import Path

import numpy as np
import pytest

REFERENCE = Path(__file__).parents[2] / "docs" / "api.md"
STORED = Path(__file__).with_name("public_api.json")
ESTIMATORS = ("KARClassifier", "KARRegressor", "KARClassifierCV", "KARRegressorCV")


def public_object(path):
    """Return the object at a path such as "loo.RidgePath", below karnet."""
    module, _, name = f"karnet.{path}".rpartition(".")
    return getattr(importlib.import_module(module), name)


def signature(function, stored=None):
    """Return parameters and defaults as text, without annotations.

    Optional parameters at the end that the stored signature lacks are left out: old calls work.
    """
    parameters = list(inspect.signature(function).parameters.values())
    if stored is not None:
        arguments = ast.walk(ast.parse(f"def stored{stored}: ..."))
        names = {each.arg for each in arguments if isinstance(each, ast.arg)}
        while parameters and parameters[-1].name not in names and is_optional(parameters[-1]):
            parameters.pop()
    return str(inspect.Signature([each.replace(annotation=each.empty) for each in parameters]))


def is_optional(parameter):
    return parameter.default is not parameter.empty


def members(cls):
    """Return the signature of every public method, and None for every other public attribute."""
    names = [name for name in dir(cls) if not name.startswith("_")]
    # Fields of a dataclass without a default are attributes of its instances only.
    names += getattr(cls, "__dataclass_fields__", {})
    return {
        name: signature(getattr(cls, name)) if callable(getattr(cls, name, None)) else None
        for name in sorted(set(names))
        if not name.startswith("_")
    }


def fitted_attributes(name):
    """Return the names of all attributes of an estimator that end in an underscore."""
    X = np.random.default_rng(0).uniform(size=(30, 2))
    net = public_object(name)(random_state=0).fit(X, np.arange(30) % 2)
    return [each for each in dir(net) if re.fullmatch(r"[a-z]\w*_", each) and hasattr(net, each)]


def listed_names():
    """Return the paths of all objects in docs/api.md."""
    return re.findall(r"^   ([A-Za-z][\w.]*)$", REFERENCE.read_text("utf-8"), re.M)


def current_api():
    """Return every path in docs/api.md with the signature of its object, and with its members."""
    api = {}
    for path in listed_names():
        api[path] = {"signature": signature(public_object(path))}
        if inspect.isclass(public_object(path)):
            api[path]["members"] = members(public_object(path))
        if path in ESTIMATORS:
            api[path]["fitted"] = fitted_attributes(path)
    return api


API = json.loads(STORED.read_text("utf-8"))


@pytest.mark.parametrize("path", API)
def test_public_names_keep_their_signatures(path):
    found, stored = public_object(path), API[path]
    assert signature(found, stored["signature"]) == stored["signature"]
    current = members(found) if inspect.isclass(found) else {}
    for name, expected in stored.get("members", {}).items():
        assert name in current, name
        if expected is not None:
            assert signature(getattr(found, name), expected) == expected, name


@pytest.mark.parametrize("name", ESTIMATORS)
def test_fitted_estimators_keep_their_attributes(name):
    assert set(API[name]["fitted"]) <= set(fitted_attributes(name))


def test_the_reference_lists_every_public_name():
    assert set(API) <= set(listed_names())


if __name__ == "__main__":
    print(json.dumps(current_api(), indent=1))  # noqa: T201
