"""How well novelty separates rows like those of the table from rows unlike them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.metrics import roc_auc_score

from .. import tables
from ._held_out import HeldOut

# The largest number of held-out rows, and of foreign rows, whose novelty is computed.
MAX_ROWS = 1000
# What foreign rows are, in words.
FOREIGN = (
    "Foreign rows are made of held-out rows: the values of each column are shuffled independently, "
    "so that every column keeps its values but not its relation to the others."
)


@dataclass(frozen=True)
class MeasuredNovelty:
    """The novelty of held-out rows and of foreign rows."""

    n: int  # the number of rows of each kind
    auroc: float  # the probability that a foreign row has the larger novelty
    held_out: float  # the share of held-out rows with a novelty above 1
    foreign: float  # the same for foreign rows


def measured_novelty(other: HeldOut | None) -> MeasuredNovelty | None:
    """Return how novelty separates held-out rows from foreign ones, if the network has one."""
    if other is None or not hasattr(tables.network_of(other.model), "novelty"):
        return None
    rng = np.random.RandomState(0)
    own = other.table.take(np.sort(rng.permutation(len(other.table))[:MAX_ROWS]))
    foreign = own
    for name in other.model.table_["columns"]:
        foreign = foreign.shuffled(name, rng.permutation(len(own)))
    network = tables.network_of(other.model)
    novelties = [network.novelty(tables.inputs_of(other.model, rows)) for rows in (own, foreign)]
    is_foreign = np.repeat([False, True], len(own))
    auroc = roc_auc_score(is_foreign, np.concatenate(novelties))
    shares = [float(np.mean(each > 1.0)) for each in novelties]
    return MeasuredNovelty(len(own), float(auroc), *shares)
