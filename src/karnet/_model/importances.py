"""Importances of columns: the rise of the left-out error when the values of a column are shuffled.

The prediction for a row with a value of another row comes from members without the row, so that
the error before and after is that of rows which were not used in the fit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing

import numpy as np

from .._rows.memory import in_order
from .._search.member import Member
from .._util.types import Array, Indices
from .evidence import RowSample
from .influence import LeftOutRows

# About the number of shuffled rows of a column, and the largest number of shuffles.
SHUFFLED_ROWS = 4000
MOST_SHUFFLES = 20
# About the number of operations for all columns, and the fewest rows.
OPERATIONS = 1e11
FEWEST_ROWS = 100
# The operations of a kernel value besides those of a distance, as a number of inputs.
KERNEL_OPERATIONS = 30
# Leads of a class over all others from which on a row counts as right, or as wrong. From the first
# to the last, which is the plain error rate, rises have less bias and larger standard errors.
CLEAR_LEADS = (0.5, 0.25, 0.125, 0.0)
# The number of divisions of the rows into halves that choose among them.
N_DIVISIONS = 10
# Standard errors below which a rise may be chance.
CHANCE = 2.0


# From targets and predictions of rows to errors of the shape (measures, rows). The last measure is
# the error whose rises are wanted, and the others are smoother.
Errors = Callable[[Array, Array], Array]


def squared_errors(Y: Array, F: Array) -> Array:
    """Return the squared error of each row, summed over outputs: one measure."""
    return np.asarray(np.sum((Y - F) ** 2, axis=1))[None]


def class_errors(Y: Array, F: Array) -> Array:
    """Return the errors of each row's class for each of CLEAR_LEADS: 0 if right, 1 if wrong.

    Y are indicators of classes, and F scores. If the score of the true class differs from the
    largest of all others by less than a clear lead, the error is between 0 and 1 and linear in the
    difference. The standard error is smaller than that of the plain error rate, in which only rows
    count whose predicted class changes. The error is one half if two classes tie.
    """
    true = Y > 0.5
    lead = F[true] - np.where(true, -np.inf, F).max(axis=1)
    shares = [np.clip(lead / clear, -1.0, 1.0) if clear else np.sign(lead) for clear in CLEAR_LEADS]
    return 0.5 - 0.5 * np.array(shares)


def rises_of_error(
    members: Sequence[Member],
    weights: Array,
    offset: Array,
    sample: RowSample,
    origins: Indices,
    row_weight: Array,
    device: str | None,
    of_rows: Errors,
) -> tuple[Array, Array]:
    """Return the rises of the error for each column, and their standard errors.

    `of_rows` computes the errors of rows from their targets and predictions; of several measures,
    the most faithful one is used. A rise that is not more than CHANCE of its standard errors is 0:
    the order of such rises would be chance.
    `weights` and `offset` are those of the sum of the members. `origins` are the columns of which
    the features were made: features of one column are shuffled together. `row_weight` are the
    weights of all training rows.
    """
    columns = np.unique(origins)
    of_row = sum(_operations(member) for member in members) * max(len(columns), 1)
    sample = sample.first(max(int(OPERATIONS / of_row), FEWEST_ROWS))
    X, m = sample.X, len(sample.X)
    known = sample.numbers, row_weight, device
    without = [LeftOutRows.of(member, member.view(X), *known) for member in members]
    n_shuffles = int(np.clip(min(SHUFFLED_ROWS, OPERATIONS / of_row) // m, 1, MOST_SHUFFLES))
    orders = _shuffles(m, n_shuffles)
    share = row_weight[sample.numbers] / row_weight[sample.numbers].sum()

    def errors(shown: Array) -> Array:
        total = offset
        for weight, member, predict in zip(weights, members, without, strict=True):
            total = total + weight * predict(member.view(shown))
        return of_rows(sample.Y, total)

    before = errors(X)

    def rise(column: int) -> Array:
        features = origins == column
        rises = np.zeros_like(before)
        if np.all(X[:, features] == X[:1, features]):
            return rises
        for order in orders:
            changed = X.copy()
            changed[:, features] = X[np.ix_(order, features)]
            rises += (errors(changed) - before) / n_shuffles
        return rises

    with closing(in_order(rise, [int(column) for column in columns])) as each:
        rises = np.array(list(each)).reshape(len(columns), *before.shape)
    found = np.zeros((2, int(origins.max(initial=-1)) + 1))
    found[:, columns] = _above_chance(rises[:, most_faithful(rises, share)], share)
    return found[0], found[1]


def most_faithful(rises: Array, share: Array) -> int:
    """Return the number of the measure whose importances are closest to those of other rows.

    `rises` has the shape (columns, measures, rows), and `share` holds the weights of the rows.
    Importances by each measure come from a random half of the rows, and are compared with those by
    the last measure in the other half: the sum over columns of the products of the square roots is
    largest, on average over divisions. A smooth measure has smaller standard errors, and is closest
    unless it counts changes of scores that do not change the last measure. Of equal ones it is the
    first.
    """
    if rises.shape[1] == 1:
        return 0
    rng = np.random.RandomState(0)
    total = np.zeros(rises.shape[1])
    for _ in range(N_DIVISIONS):
        order = rng.permutation(len(share))
        one, other = order[::2], order[1::2]
        for rows, others in ((one, other), (other, one)):
            found = _above_chance(rises[..., rows], share[rows])[0]
            wanted = rises[:, -1, others] @ share[others]
            total += _root_shares(wanted) @ _root_shares(found)
    return int(np.argmax(total))


def _above_chance(rises: Array, share: Array) -> tuple[Array, Array]:
    """Return means over rows, which are 0 if they may be chance, and their standard errors."""
    share = share / share.sum()
    mean = rises @ share
    error = np.sqrt((rises - mean[..., None]) ** 2 @ share**2)
    return np.where(mean > CHANCE * error, mean, 0.0), error


def _root_shares(rises: Array) -> Array:
    """Return square roots of the shares of columns, the first axis; without a rise they are 0.

    A rise of the error rate is a number of rows, so its standard error grows as its square root.
    The standard errors of the roots are about the same for columns that matter much or little.
    """
    rises = np.maximum(rises, 0.0)
    total = rises.sum(axis=0)
    return np.sqrt(rises / np.where(total > 0.0, total, 1.0))


def _operations(member: Member) -> float:
    """Return about the number of operations that predict a row."""
    n_centres = sum(len(leaf.centres) for leaf in member.network.reached(member.X_fit_[:1]))
    return float(n_centres * (member.X_fit_.shape[1] + KERNEL_OPERATIONS))


def _shuffles(m: int, n: int) -> list[Indices]:
    """Return n orders of m rows in which no row keeps its place, if m > 1."""
    rng = np.random.RandomState(0)
    orders = []
    for _ in range(n):
        circle, order = rng.permutation(m), np.empty(m, dtype=np.intp)
        order[circle] = np.roll(circle, 1)
        orders.append(order)
    return orders
