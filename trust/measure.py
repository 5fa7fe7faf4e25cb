"""Forward errors, backward errors and ranks of karnet's solvers and of LAPACK's drivers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgWarning
from scipy.linalg import lstsq as lapack_lstsq

from karnet import Solution, lstsq
from trust.families import Family, Instance
from trust.matrices import EPS

Array = NDArray[np.float64]
OURS = ("auto", "cholesky", "qr", "svd")
DRIVERS = ("gelsd", "gelsy", "gelss")
# Suffix of results at SciPy's cut-off.
AT_EPS = " at eps"
# There is a gap if no singular value is within this factor of the cut-off.
GAP = 3.0


@dataclass
class Measured:
    """The measurements of one family, with an entry for each seed.

    Attributes
    ----------
    forward : dict of lists
        Decimal logarithms of the forward errors of each solver and driver, for seeds with a clear
        rank, or for all seeds if there are none.
    everywhere : dict of lists
        The same for all seeds, with "auto" and every driver at both cut-offs.
    clear : list
        Whether the rank of each seed is clear in double precision.
    backward : list
        Backward errors of all of karnet's solvers, in units of n eps.
    explained : list
        Forward errors of all of karnet's solvers, in units of n eps times the condition of the
        problem, for seeds with a clear rank.
    ranks : list
        Whether each reported rank is correct, where there is a gap.
    used : list
        The solvers that "auto" selected.
    """

    forward: dict[str, list[float]] = field(default_factory=dict)
    everywhere: dict[str, list[float]] = field(default_factory=dict)
    clear: list[bool] = field(default_factory=list)
    backward: list[float] = field(default_factory=list)
    explained: list[float] = field(default_factory=list)
    ranks: list[bool] = field(default_factory=list)
    used: list[str] = field(default_factory=list)

    def median(self, solver: str) -> float:
        """Return the median over seeds of a solver's or driver's forward error."""
        return float(np.median(self.forward[solver]))

    @property
    def best(self) -> str:
        """The driver with the smallest median."""
        names = (driver + at for at in ("", AT_EPS) for driver in DRIVERS)
        return min((name for name in names if name in self.forward), key=self.median)

    def behind(self, solver: str) -> float:
        """Return by how many digits a solver is behind the best driver."""
        return self.median(solver) - self.median(self.best)

    def behind_everywhere(self, ours: str = "", theirs: str = "") -> float:
        """Return by how many digits auto is behind the best driver over all seeds.

        Both are at karnet's cut-off or, with `AT_EPS`, at SciPy's.
        """
        medians = {name: float(np.median(each)) for name, each in self.everywhere.items()}
        return medians["auto" + ours] - min(medians[driver + theirs] for driver in DRIVERS)

    def add(self, name: str, error: float) -> None:
        """Add the forward error of one seed."""
        self.everywhere.setdefault(name, []).append(error)


def quiet_lstsq(A: Array, b: Array, **options: Any) -> Solution:
    """Return the solution of `lstsq`, without a warning where a solver falls back on another."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinAlgWarning)
        return lstsq(A, b, **options)


def measure(
    family: Family, seeds: Iterable[int], solve: Callable[..., Solution] = quiet_lstsq
) -> Measured:
    """Return errors and ranks of all solvers and drivers over some seeds of a family.

    `solve` takes the arguments of `lstsq`.
    """
    measured = Measured()
    for seed in seeds:
        instance = family(seed)
        rank = expected_rank(instance)
        clear = rank == instance.rank
        measured.clear.append(clear)
        for name, x in _by_drivers(instance).items():
            measured.add(name, forward_error(x, instance.exact))
        condition = problem_condition(instance) if clear else None
        for solver in OURS:
            solution = solve(instance.A, instance.b, solver=solver, bias=instance.bias)
            _add_ours(measured, instance, solver, solution, rank, condition)
        at_eps = solve(instance.A, instance.b, bias=instance.bias, rcond=EPS)
        measured.add("auto" + AT_EPS, forward_error(at_eps.coef, instance.exact))
    measured.forward = _comparable(measured)
    return measured


def _comparable(measured: Measured) -> dict[str, list[float]]:
    """Return errors of seeds with a clear rank; if there are none, of all at our cut-off."""
    if not any(measured.clear):
        return {name: e for name, e in measured.everywhere.items() if not name.endswith(AT_EPS)}
    return {
        name: [error for error, clear in zip(errors, measured.clear, strict=True) if clear]
        for name, errors in measured.everywhere.items()
    }


def _add_ours(
    measured: Measured,
    instance: Instance,
    solver: str,
    solution: Solution,
    rank: int | None,
    condition: float | None,
) -> None:
    A, b, unit = instance.matrix, instance.b, instance.A.shape[1] * EPS
    error = forward_error(solution.coef, instance.exact)
    measured.add(solver, error)
    measured.backward.append(backward_error(A, b, solution.coef) / unit)
    if rank is not None:
        measured.ranks.append(solution.rank == rank)
    if condition is not None:
        measured.explained.append(10.0**error / (unit * condition))
    if solver == "auto":
        measured.used.append(solution.solver)


def _by_drivers(instance: Instance) -> dict[str, Array]:
    """Return solutions at our cut-off and at SciPy's."""
    A, b = instance.matrix, instance.b
    return {
        driver + at: lapack_lstsq(A, b, cond=cond, lapack_driver=driver)[0]
        for driver in DRIVERS
        for at, cond in (("", EPS * A.shape[1]), (AT_EPS, EPS))
    }


def expected_rank(instance: Instance) -> int | None:
    """Return the number of singular values above the cut-off, or None if there is no gap there.

    Columns are centred if there is a bias and scaled to unit length, as `lstsq` documents.
    """
    A, bias = instance.A.astype(np.longdouble), instance.bias
    A = (A - bias * A.mean(axis=0)).astype(np.float64)
    norms = np.linalg.norm(A, axis=0)
    s = np.linalg.svd(A / np.where(norms == 0.0, 1.0, norms), compute_uv=False)
    share = s / (EPS * (A.shape[1] + bias) * s[0])
    if ((share > 1.0 / GAP) & (share < GAP)).any():
        return None
    return min(int(np.sum(share > 1.0)) + bias, *instance.matrix.shape)


def problem_condition(instance: Instance) -> float:
    """Return the condition of the least-squares problem with respect to A and b.

    Wedin's bound: ``k (2 + (k + 1) |r| / (|A| |x|))`` for A of condition k.
    """
    A, x = instance.matrix, instance.exact
    s = np.linalg.svd(A, compute_uv=False)
    k = s[0] / s[instance.rank - 1]
    residual = np.linalg.norm(instance.b - A @ x)
    return float(k * (2.0 + (k + 1.0) * residual / (s[0] * np.linalg.norm(x))))


def forward_error(x: Array, exact: Array) -> float:
    """Return the decimal logarithm of the relative error, at least that of one rounding."""
    return float(np.log10(np.linalg.norm(x - exact) / np.linalg.norm(exact) + EPS / 2))


def backward_error(A: Array, b: Array, x: Array) -> float:
    """Return the smallest relative change of A for which x solves the least-squares problem.

    The formula of Walden, Karlson and Sun (1995), in the space spanned by the columns of A and r.
    """
    r = b - A @ x
    size_r, size_x, size_A = np.linalg.norm(r), np.linalg.norm(x), np.linalg.norm(A)
    if size_r == 0.0:
        return 0.0
    if size_x == 0.0:
        return float(np.linalg.norm(A.T @ r) / (size_A * size_r)) if size_A else 0.0
    ratio, Q = size_r / size_x, np.linalg.qr(np.column_stack([A, r]))[0]
    A, r = Q.T @ A, Q.T @ r / size_r
    projector = np.eye(len(r)) - np.outer(r, r)
    smallest = np.linalg.svd(np.hstack([A, ratio * projector]), compute_uv=False)[-1]
    return float(min(ratio, smallest) / size_A)
