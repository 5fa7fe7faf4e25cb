"""The command line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from . import __version__
from .paper import EXPERIMENTS

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command that the arguments name."""
    parser = argparse.ArgumentParser(
        prog="karnet", description="Neural networks trained in closed form."
    )
    parser.add_argument("--version", action="version", version=f"karnet {__version__}")
    commands = parser.add_subparsers(title="commands", required=True)
    reproduce = commands.add_parser(
        "reproduce", help="run the paper's experiments again and print their tables"
    )
    reproduce.add_argument(
        "experiment", nargs="?", choices=[*EXPERIMENTS, "all"], default="all", help="which one"
    )
    chosen = parser.parse_args(arguments).experiment
    for name in EXPERIMENTS if chosen == "all" else [chosen]:
        for table in EXPERIMENTS[name]():
            print(table, end="\n\n\n", flush=True)
