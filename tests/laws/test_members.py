"""Networks of all kinds have the methods that others call: no code asks for the kind."""

from __future__ import annotations

import ast

import pytest

from tests.laws.test_imports import every_module

KINDS = {"LocalNetwork", "Network"}


def kinds_asked_for(tree):
    """Return the kinds of networks that some code tells apart."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass"):
            found |= {ast.unparse(each).split(".")[-1] for each in ast.walk(node.args[1])}
        if isinstance(node, ast.MatchClass):
            found.add(ast.unparse(node.cls).split(".")[-1])
    return found & KINDS


@every_module
def test_no_code_asks_for_the_kind_of_a_network(path):
    assert not kinds_asked_for(ast.parse(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "code",
    [
        "isinstance(a, Network)",
        "isinstance(a, int | layers.Network)",
        "isinstance(a, (LocalNetwork, int))",
        "match a:\n    case Network(layers): ...",
    ],
)
def test_questions_for_the_kind_are_found(code):
    assert kinds_asked_for(ast.parse(code))
    assert not kinds_asked_for(ast.parse(code.replace("Network", "Thing")))
