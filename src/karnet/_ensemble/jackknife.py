"""Intervals for predictions, from what members say that were learned without one row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .._rows.memory import block_slices
from .member import Member

__all__ = ["jackknife_plus"]

Array = NDArray[np.float64]


def jackknife_plus(
    members: Sequence[Member],
    answers: Array,
    X: Array,
    errors: Array,
    weight: Array | None,
    coverage: float,
) -> Array:
    """Return the ends of intervals around the mean answers of members.

    Without row i a ridge solution answers ``f(x) - s_i(x) e_i``, e_i being the error it makes on
    that row and s_i(x) the slope of f(x) over the row's target. Members that are no such solution,
    those of finite width, are taken to answer f(x).

    Parameters
    ----------
    members : sequence of Member
        The members.
    answers : ndarray of shape (k, q)
        Their mean answers for new rows.
    X : ndarray of shape (k, d)
        These rows.
    errors : ndarray of shape (m, q)
        For each row of the training set, its target less the mean answer learned without it.
    weight : ndarray of shape (m,), optional
        The weights of these rows.
    coverage : float
        The probability that an interval should hold a target with.

    Returns
    -------
    ndarray of shape (k, q, 2)
    """
    known = ~np.isnan(errors[:, 0])
    e = errors[known]
    shares = np.ones(len(e)) if weight is None else weight[known]
    ends = np.empty((*answers.shape, 2))
    for rows in block_slices(len(X), len(errors)):
        slopes = sum(_slopes(member, X[rows], len(errors)) for member in members) / len(members)
        for j in range(answers.shape[1]):
            without = answers[rows, j, None] - (slopes * np.nan_to_num(errors[:, j]))[:, known]
            spread = np.abs(e[:, j])
            ends[rows, j, 0] = -_quantile(spread - without, shares, coverage)
            ends[rows, j, 1] = _quantile(without + spread, shares, coverage)
    return ends


def _slopes(member: Member, X: Array, m: int) -> Array:
    """Return by how much the answers for rows of X move with the targets of the training set."""
    path = member.path
    if path is None:
        return np.zeros((len(X), m))
    root = np.sqrt(path.weight)
    K = (member.hidden(X) - path.mean) * root
    inner = (K @ path.U) / (path.eigenvalues + member.alpha_)
    return np.asarray((inner @ path.U.T) * root + path.weight / path.weight.sum())


def _quantile(values: Array, weight: Array, coverage: float) -> Array:
    """Return for each row the value that `coverage` of the values, and of one more, stay below."""
    order = np.argsort(values, axis=1)
    upto = np.cumsum(weight[order], axis=1)
    first = (upto < coverage * (weight.sum() + weight.mean()) - 1e-9 * weight.sum()).sum(axis=1)
    place = np.minimum(first, values.shape[1] - 1)
    return np.asarray(np.take_along_axis(values, order, axis=1)[np.arange(len(values)), place])
