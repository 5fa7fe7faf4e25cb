"""karnet predict, score, inspect and export: what is done with a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from .._estimator.notebook import layer_table
from .._util.atomic_file import check_writable, whole_file
from .._util.extras import require
from .._util.text_table import TextTable
from ._console import EXIT_CODES, Output, score_in_words, sentences
from ._options import Json, Model, Quiet, TableFile

__all__ = ["add_to"]

PREDICT = """
Predict the target for each row of a table, in the order of its rows.

Columns are found by name: another order and further columns are fine, gaps and categories that were
never seen too.

```text
karnet predict houses.karnet new-houses.csv
karnet predict houses.karnet new-houses.parquet -o prices.csv
```
"""
SCORE = """
Say how well a model predicts a table whose target is known.

```text
karnet score houses.karnet other-houses.csv
```
"""
INSPECT = """
Say what a model is: what it predicts, from which columns, and through which networks.

```text
karnet inspect houses.karnet
```
"""
EXPORT = """
Write a model as ONNX, for programs that do not know Python.

```text
karnet export houses.karnet houses.onnx
```
"""
# Columns that are listed at most.
SHOWN = 15


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("predict", help=PREDICT, epilog=EXIT_CODES)(sentences(predict))
    app.command("score", help=SCORE, epilog=EXIT_CODES)(sentences(score))
    app.command("inspect", help=INSPECT, epilog=EXIT_CODES)(sentences(inspect))
    app.command("export", help=EXPORT, epilog=EXIT_CODES)(sentences(export))


def _loaded(path: Path, command: str) -> Any:
    require(f"karnet {command}", "table", "pandas", "pyarrow", "skrub", "skops")
    from ..files import load

    if not path.exists():
        raise ValueError(f"there is no file {path}: 'karnet fit' writes models.")
    return load(path)


def predict(
    model: Model,
    table: TableFile,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where predictions go: .csv, .tsv (.gz too), .parquet, .arrow or .feather; "
            "printed as CSV by default.",
        ),
    ] = None,
    proba: Annotated[
        bool, typer.Option("--proba", help="Write the probability of each class as well.")
    ] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Predict the target for each row of a table."""
    learned = _loaded(model, "predict")
    from ..tables import as_text, check_format, target_of, write_table

    out = Output(quiet, as_json)
    if output is not None:
        check_format(check_writable(output))
    with out.timed(f"Predicting {table.name}"):
        answers, probabilities = _predicted(learned, table, proba, out)
    name = target_of(learned) or "prediction"
    columns = {name: answers}
    if probabilities is not None:
        columns |= {f"p({c})": p for c, p in zip(learned.classes_, probabilities.T, strict=True)}
    if output is not None:
        write_table(columns, output)
        values = {"output": output, "rows": len(answers), "target": name}
        out.result(values, f"{output} has {len(answers)} predictions of {name!r}.")
    else:
        out.result(columns, as_text(columns).removesuffix("\n"))


def _predicted(model: Any, path: Path, proba: bool, out: Output) -> tuple[Any, Any]:
    """Return the answers for all rows, and probabilities if they are wanted."""
    from ..tables import predict_table, table_blocks

    found: list[Any] = []
    classes = getattr(model, "classes_", None)
    for k, block in enumerate(table_blocks(path)):
        out.remark(*(block.notes if k == 0 else ()))
        found.append(predict_table(model, block, proba=proba))
    answers = np.concatenate(found)
    if not proba:
        return answers, None
    return np.asarray(classes)[answers.argmax(axis=1)], answers


def score(model: Model, table: TableFile, quiet: Quiet = False, as_json: Json = False) -> None:
    """Say how well a model predicts a table whose target is known."""
    learned = _loaded(model, "score")
    from ..tables import read_table, score_table

    out = Output(quiet, as_json)
    with out.timed(f"Scoring {table.name}"):
        read = read_table(table)
        target, found = score_table(learned, read)
    out.remark(*read.notes, *target.notes)
    rows = tuple((s.name, f"{s.value:.4f}", f"{s.low:.4f}", f"{s.high:.4f}") for s in found)
    note = f"{len(target.y)} rows; 'from' and 'to' hold the score of all such rows with 95 %."
    values = {"rows": len(target.y), "target": target.name}
    values |= {s.name: {"value": s.value, "low": s.low, "high": s.high} for s in found}
    title = f"How {model} predicts {target.name!r}"
    out.result(values, str(TextTable(title, ("score", "value", "from", "to"), rows, note)))


def inspect(model: Model, as_json: Json = False) -> None:
    """Say what a model is."""
    learned = _loaded(model, "inspect")
    from ..tables import importances_of, kinds_of

    about = getattr(learned, "table_", {})
    network = learned[-1] if hasattr(learned, "steps") else learned
    kinds, weights = kinds_of(learned), importances_of(learned)
    layers = layer_table(network)
    values = {**about, "network": type(network).__name__, "columns": kinds, "importances": weights}
    if layers is not None:
        values["layers"] = [dict(zip(layers.header, row, strict=True)) for row in layers.rows]
    order = sorted(kinds, key=lambda name: -weights.get(name, 0.0))
    rows = [(n, kinds[n], f"{100 * weights[n]:.1f} %" if n in weights else "-") for n in order]
    note = f"{len(rows) - SHOWN} more columns." if len(rows) > SHOWN else ""
    header = ("column", "taken as", "importance")
    parts = [
        _headline(model, about, network),
        TextTable("Columns", header, tuple(rows[:SHOWN]), note),
    ]
    Output(False, as_json).result(values, "\n\n".join(map(str, filter(None, [*parts, layers]))))


def _headline(path: Path, about: dict[str, Any], network: Any) -> str:
    name = type(network).__name__
    if not about:
        return f"{path} is a {name}."
    return (
        f"{path} is a {name} for the {about['task']} of {about['target']!r}: "
        f"{score_in_words(about)} by {about['judged_by']}, {about['rows']} rows."
    )


def export(
    model: Model,
    output: Annotated[Path, typer.Argument(metavar="FILE", help="Where the model goes, as ONNX.")],
    quiet: Quiet = False,
) -> None:
    """Write a model as ONNX."""
    learned = _loaded(model, "export")
    require("karnet export", "onnx", "onnx", "skl2onnx")
    from ..export._convert import to_onnx
    from ..tables import portable

    out = Output(quiet, as_json=False)
    with out.timed(f"Exporting {model.name}"):
        graph = to_onnx(*portable(learned))
        with whole_file(check_writable(output)) as unfinished:
            unfinished.write_bytes(graph.SerializeToString())
    out.result({}, f"{output} has the model as ONNX.")
