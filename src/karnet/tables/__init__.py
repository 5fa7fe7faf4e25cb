"""Tables from files, and models that are fitted on them.

Text and columnar files are read without options; every assumption is reported in a sentence.
Their columns are read as numbers, dates, categories and text for estimators that select all
hyper-parameters themselves; skrub recognises dates and encodes text.
"""

from __future__ import annotations

from .._util.extras import require

# The optional libraries that tables need.
PACKAGES = ("pandas", "pyarrow", "skrub")
require("karnet.tables", "table", *PACKAGES)

from ._columns import Columns  # noqa: E402
from ._files import as_text, check_format, read_table, table_blocks, write_table  # noqa: E402
from ._large import fit_large, is_large  # noqa: E402
from ._model import (  # noqa: E402
    TableFit,
    columns_of,
    fit_table,
    importances_of,
    inputs_of,
    kinds_of,
    network_of,
    portable,
    predict_table,
    prediction_columns,
    seen_by_network,
    target_of,
)
from ._scores import Score, score_table, scores, wilson  # noqa: E402
from ._table import Table  # noqa: E402
from ._target import Target, find_target  # noqa: E402

__all__ = [
    "Columns",
    "Score",
    "Table",
    "TableFit",
    "Target",
    "as_text",
    "check_format",
    "columns_of",
    "find_target",
    "fit_large",
    "fit_table",
    "importances_of",
    "inputs_of",
    "is_large",
    "kinds_of",
    "network_of",
    "portable",
    "predict_table",
    "prediction_columns",
    "read_table",
    "score_table",
    "scores",
    "seen_by_network",
    "table_blocks",
    "target_of",
    "wilson",
    "write_table",
]
