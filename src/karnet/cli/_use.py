"""The commands that use a model: karnet predict, score, inspect and export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from .._util.atomic_file import check_writable, whole_file
from .._util.extras import require
from .._util.messages import in_per_cent
from .._util.text_table import TextTable
from ._console import Json, Model, Output, Quiet, TableFile, score_in_words

# The most columns that `karnet inspect` lists.
MAX_LISTED_COLUMNS = 15
# What importances are.
IMPORTANCE = (
    "An importance is the rise of the error of left-out rows when the column is shuffled, as a "
    "share of all rises, ± its standard error. It is 0 if the rise may be chance. Columns that "
    "say the same share their importance."
)


def _loaded(path: Path, command: str) -> Any:
    require(f"karnet {command}", "table", "skops")
    from .. import tables  # noqa: F401  (raises an error if a library is missing)
    from ..files import load

    if not path.exists():
        raise ValueError(f"there is no file {path}: 'karnet fit' writes model files.")
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
            help="File for the predictions: .csv, .tsv (.gz too), .parquet, .arrow or .feather; "
            "without it, they are printed as CSV.",
        ),
    ] = None,
    proba: Annotated[
        bool, typer.Option("--proba", help="Also write the probability of each class.")
    ] = False,
    coverage: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            help="Also write what contains the target with this probability, such as 0.9: for "
            "numbers, the lower and the upper end of an interval; for classes, a set of classes "
            "separated by '|'.",
        ),
    ] = None,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Also write the three training rows that influence each prediction most, as row "
            "numbers of the training table (the first row below the column names is 1), and the "
            "three columns that move it most from its mean, with their signed effects.",
        ),
    ] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Predict the target for each row of a table, in the order of the rows.

    Columns are found by name: their order and further columns do not matter. Gaps and categories
    that the model was not fitted on are handled.

    ```text
    karnet predict houses.karnet new-houses.csv
    karnet predict houses.karnet new-houses.parquet -o prices.csv
    karnet predict houses.karnet new-houses.csv --coverage 0.9
    karnet predict houses.karnet new-houses.csv --explain
    ```
    """
    fitted = _loaded(model, "predict")
    from ..tables import as_text, check_format, prediction_columns, table_blocks, write_table

    out = Output(quiet, as_json)
    if output is not None:
        check_format(check_writable(output))
    blocks: list[Any] = []
    with out.timed(f"Predicting {table.name}"):
        for block in table_blocks(table):
            out.note(*(() if blocks else block.notes))
            blocks.append(prediction_columns(fitted, block, proba, coverage))
            if explain:
                from ._explain import explanation_columns

                blocks[-1] |= explanation_columns(fitted, block)
    name, *_ = blocks[0]
    columns = {key: np.concatenate([block[key] for block in blocks]) for key in blocks[0]}
    if output is None:
        out.result(columns, as_text(columns).removesuffix("\n"))
        return
    write_table(columns, output)
    n = len(columns[name])
    values = {"output": output, "rows": n, "target": name}
    out.result(values, f"{output} has {n} predictions of {name!r}.")


def score(model: Model, table: TableFile, quiet: Quiet = False, as_json: Json = False) -> None:
    """Score a model on a table that has the target.

    ```text
    karnet score houses.karnet other-houses.csv
    ```
    """
    fitted = _loaded(model, "score")
    from ..tables import read_table, score_table

    out = Output(quiet, as_json)
    with out.timed(f"Scoring {table.name}"):
        rows = read_table(table)
        target, scores = score_table(fitted, rows)
    out.note(*rows.notes, *target.notes)
    n = len(target.y)
    values = {"rows": n, "target": target.name}
    values |= {s.name: {"value": s.value, "low": s.low, "high": s.high} for s in scores}
    content = TextTable(
        f"Scores of {model} for {target.name!r}",
        ("score", "value", "from", "to"),
        tuple((s.name, *(f"{x:.4f}" for x in (s.value, s.low, s.high))) for s in scores),
        f"{n} rows; 'from' and 'to' are the ends of a 95 % confidence interval.",
    )
    out.result(values, str(content))


def inspect(model: Model, as_json: Json = False) -> None:
    """Describe a model: its target, its columns and its networks.

    ```text
    karnet inspect houses.karnet
    ```
    """
    fitted = _loaded(model, "inspect")
    from .._estimator.notebook import layer_table
    from ..tables import importances_with_errors, kinds_of, network_of

    about = getattr(fitted, "table_", {})
    network = network_of(fitted)
    kinds, (shares, errors) = kinds_of(fitted), importances_with_errors(fitted)
    layers = layer_table(network)
    values = {**about, "network": type(network).__name__, "columns": kinds}
    values |= {"importances": shares, "importances_se": errors}
    if layers is not None:
        values["layers"] = [dict(zip(layers.header, row, strict=True)) for row in layers.rows]
    columns = _listed_columns(kinds, shares, errors)
    headline = f"{model} is a {type(network).__name__}"
    if about:
        headline += f" for the {about['task']} of {about['target']!r}: {score_in_words(about)}"
        headline += f", {about['rows']} rows"
    parts = [f"{headline}.", columns, *([] if layers is None else [layers])]
    Output(False, as_json).result(values, "\n\n".join(map(str, parts)))


def _listed_columns(
    kinds: dict[str, str], shares: dict[str, float], errors: dict[str, float]
) -> TextTable:
    """Return the most important columns as a table, and what importances are."""
    order = sorted(kinds, key=lambda name: -shares.get(name, 0.0))
    words = {name: in_per_cent(shares[name], errors.get(name)) for name in shares}
    rows = [(name, kinds[name], words.get(name, "-")) for name in order]
    n_more = len(rows) - MAX_LISTED_COLUMNS
    notes = [f"{n_more} more columns."] if n_more > 0 else []
    if shares:
        notes.append(IMPORTANCE)
    header = ("column", "used as", "importance")
    return TextTable("Columns", header, tuple(rows[:MAX_LISTED_COLUMNS]), " ".join(notes))


def export(
    model: Model,
    output: Annotated[Path, typer.Argument(metavar="FILE", help="The ONNX file to write.")],
    quiet: Quiet = False,
) -> None:
    """Export a model as ONNX, for programs without Python.

    ```text
    karnet export houses.karnet houses.onnx
    ```
    """
    fitted = _loaded(model, "export")
    require("karnet export", "onnx", "onnx", "skl2onnx")
    from ..export._convert import to_onnx
    from ..tables import portable

    out = Output(quiet, as_json=False)
    with out.timed(f"Exporting {model.name}"):
        graph = to_onnx(*portable(fitted))
        with whole_file(check_writable(output)) as unfinished:
            unfinished.write_bytes(graph.SerializeToString())
    out.result({}, f"{output} holds the model as ONNX.")
