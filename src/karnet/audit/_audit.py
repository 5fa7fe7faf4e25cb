"""The audit of a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays.namespace import check_device
from .._columns.frames import Column
from .._estimator import validation
from .._estimator.ensemble_base import features_of, fit_and_report
from .._util.progress import Report
from .._util.types import Indices
from ..learner import indicator
from ..selection import KARClassifierCV, KARRegressorCV
from . import _columns as checks
from ._findings import Finding, Suspect, names_of, some_columns
from ._model import alone, scores_without, wrong_classes, wrong_numbers
from ._rows import equal_rows, far_outside

# Whole numbers with more different values are numbers, not classes.
MAX_INTEGER_CLASSES = 50
# Columns of these reasons are left out of the model: with them, no label would look wrong.
LEFT_OUT = ("gives the target away", "row numbers", "names of rows")
# The order of the reasons: the first is the most likely to be an error.
REASONS = ("label", "target", "conflict", "far outside", "unlike all others", "duplicate")


@dataclass(frozen=True)
class Audit:
    """The result of `audit`.

    Attributes
    ----------
    estimator : KARClassifierCV or KARRegressorCV
        The model that was fitted to the table.
    suspects : list of Suspect
        Rows that look wrong, by reason, the clearest first. A row may have several reasons.
    findings : list of Finding
        Columns, classes and other properties of the table that look wrong.
    score : float
        The left-out accuracy or R^2 of the rows that are no suspects.
    score_without_suspects : float
        The same score of networks that forgot the suspects.
    left_out : ndarray of shape (n_rows,) or (n_rows, n_classes)
        The left-out decision function or predictions of all rows.
    """

    estimator: KARClassifierCV | KARRegressorCV
    suspects: list[Suspect]
    findings: list[Finding]
    score: float
    score_without_suspects: float
    left_out: NDArray[Any]

    @property
    def rows(self) -> NDArray[np.intp]:
        """The numbers of all suspects in ascending order, each once."""
        return np.unique([each.row for each in self.suspects]).astype(np.intp)

    @property
    def counts(self) -> dict[str, int]:
        """The number of suspects for each reason."""
        counts = Counter(each.reason for each in self.suspects)
        return {reason: counts[reason] for reason in REASONS if counts[reason]}


def audit(
    X: Any,
    y: Any,
    *,
    task: str = "auto",
    random_state: Any = 0,
    device: str | None = None,
    row_names: Sequence[Any] | None = None,
    report: Report | None = None,
) -> Audit:
    """Check a table for rows, labels and columns that look wrong.

    A model is fitted to the table, without columns that give the target away or number the rows.
    Rows are compared with the predictions of networks fitted without them. Their targets may have a
    part in the input metrics of these networks. Nothing is changed.

    Parameters
    ----------
    X : array-like or data frame of shape (n_rows, n_columns)
        The inputs: numbers, categories, text and dates, with or without gaps.
    y : array-like of shape (n_rows,)
        The target, without gaps.
    task : {"auto", "classification", "regression"}
        Whether the target is a class or a number; by default, numbers with fractions and more than
        50 different whole numbers are numbers, and all others classes.
    random_state : int, RandomState instance or None, default=0
        The `random_state` of the model.
    device : str, default=None
        The device to compute on; None is the CPU.
    row_names : sequence, optional
        The names of the rows in the details of suspects; by default their numbers from 0 on.
    report : callable, optional
        A function that is called after each step of the fit.

    Returns
    -------
    Audit

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from karnet.audit import audit
    >>> X, y = load_iris(return_X_y=True)
    >>> y[7] = 2
    >>> audit(X, y).suspects[0].row
    7
    """
    classes = _are_classes(y, task)
    net = (KARClassifierCV if classes else KARRegressorCV)(random_state=random_state, device=device)
    X = X if hasattr(X, "columns") or hasattr(X, "tocoo") else np.asarray(X)
    columns, _ = validation.check_columns(net, X, reset=True)
    check = validation.check_labels if classes else validation.check_real_targets
    target, names = check(y, len(columns[0])), names_of(X)
    if target.ndim > 1:
        raise ValueError(f"y must have one column for an audit, but has the shape {target.shape}.")
    findings = _findings(names, columns, target, classes)
    kept = _usable(names, findings)
    fit_and_report(net, some_columns(X, kept), target, report)
    model = net.model_
    left_out = model.left_out(device=check_device(device))
    predicted = left_out if classes else model.output.decision(left_out)
    found = chain(
        wrong_classes(net, target, left_out)
        if isinstance(net, KARClassifierCV)
        else wrong_numbers(target, predicted),
        equal_rows(
            columns, target, classes, range(len(target)) if row_names is None else row_names
        ),
        far_outside(names, columns),
        alone(model, features_of(net, some_columns(X, kept))),
    )
    suspects = sorted(found, key=lambda each: REASONS.index(each.reason))
    is_suspect = np.zeros(len(target), dtype=bool)
    is_suspect[[each.row for each in suspects]] = True
    scores = scores_without(net, left_out, is_suspect)
    return Audit(net, suspects, findings, *scores, predicted)


def _are_classes(y: Any, task: str) -> bool:
    """Return whether targets are classes."""
    if task not in ("auto", "classification", "regression"):
        raise ValueError(f"task={task!r} must be 'auto', 'classification' or 'regression'.")
    if task != "auto":
        return task == "classification"
    values = np.asarray(y)
    if values.dtype.kind not in "fiu":
        return True
    whole = values.dtype.kind != "f" or bool(np.all(values == np.floor(values)))
    return whole and len(np.unique(values)) <= MAX_INTEGER_CLASSES


def _findings(
    names: Sequence[str], columns: Sequence[Column], y: NDArray[Any], classes: bool
) -> list[Finding]:
    """Return what is found on columns, classes and the order of rows."""
    codes = np.unique(y, return_inverse=True)[1]
    targets = indicator(codes, int(codes.max()) + 1) if classes else y[:, None]
    unusable = list(checks.unusable(names, columns))
    numbers = {each.subject for each in unusable if each.reason == "row numbers"}
    kept = [k for k, name in enumerate(names) if name not in numbers]
    varying = [names[k] for k in kept], [columns[k] for k in kept]
    return list(
        chain(
            checks.giving_away(names, columns, targets),
            unusable,
            checks.small_classes(y) if classes else (),
            checks.drifts(*varying, y, classes),
        )
    )


def _usable(names: Sequence[str], findings: Sequence[Finding]) -> Indices:
    """Return the columns that a model can be judged by: neither the target nor names of rows."""
    out = {each.subject for each in findings if each.reason in LEFT_OUT}
    kept = np.array([k for k, name in enumerate(names) if name not in out], dtype=np.intp)
    return kept if len(kept) else np.arange(len(names))
