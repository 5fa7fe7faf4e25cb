"""Statistics of a least-squares problem ``[1, A] W = B`` that are kept between updates.

Rows are added, removed and merged, and the problem can be solved at any time, as if all rows had
been given at once.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ._arrays import namespace as arrays
from ._lstsq import updates
from ._lstsq.lapack import EPS, ESTIMATE_FACTOR, default_rcond
from ._lstsq.problem import GRAM_CONDITION, Problem, Reduce, Solution
from ._lstsq.solve import check_rcond, refuse_overflow
from ._lstsq.solvers import PRIMAL, from_gram, solve_in_turn
from ._lstsq.statistics import Gram, Stack, SufficientStatistic, Triangle
from ._rows.memory import Rows
from ._util.checks import check_flag, check_non_negative, check_one_of, real
from ._util.messages import shown
from ._util.types import Array, Indices

__all__ = ["FORMS", "Accumulator"]

FORMS = ("auto", "gram", "triangle")

# Largest relative error of the coefficients that are returned.
MAX_ERROR = 1e-8
# A larger error is accepted up to this many times the error of a single decomposition.
INHERENT_FACTOR = 100.0
# Share of the weight that must remain when rows are removed.
LEAST_WEIGHT = 1e-12


@dataclass(frozen=True, eq=False)
class Accumulator:
    """The mergeable statistics of a least-squares problem ``[1, A] W = B``.

    `solve` minimises ``||[1, A] W - B||^2 + alpha ||W||^2`` and, of all minimisers, the norm of W,
    over the rows that were added and not removed, as `karnet.lstsq` does for an array of rows. An
    accumulator never changes: `add`, `merge` and `remove` return a new one.

    Parameters
    ----------
    n, q : int
        The numbers of columns of A and of B.
    bias : bool, default=True
        Put a column of ones before A. With a ridge its coefficient is not penalised.
    alpha : float, default=0.0
        The ridge. It counts in the condition number that decides on the form.
    rcond : float, optional
        As in `karnet.lstsq`.
    form : {"auto", "gram", "triangle"}, default="auto"
        "gram" keeps A'A and A'B: one product per block of rows, but the condition number of A is
        squared. "triangle" keeps R and Q'B of ``A = Q R``: one decomposition per block, and the
        condition number is kept. "auto" starts with Gram products and switches to a triangle when
        the condition number of A (columns centred and scaled to unit length, with the ridge) is
        above 1e3.
    statistic, least_alpha : optional
        The statistic of the rows, and the least ridge for which it is accurate enough.

    Notes
    -----
    About ``8 n (n + q)`` bytes are kept. Adding m rows takes about ``m n^2`` multiplications and
    ``n^3 / 3`` for the condition number, or ``2 (m + n) n^2`` for a triangle; removing them takes
    about the same and a solve.

    Coefficients agree to 1e-8 with those of all rows at once, or an error says why they do not. The
    agreement is measured with a few additional right-hand sides whose solution is known.

    Examples
    --------
    >>> from karnet.accumulate import Accumulator
    >>> line = Accumulator(1, 1).add([[0.0], [1.0], [3.0]], [1.0, 3.0, 7.0])
    >>> more = line.merge(Accumulator(1, 1).add([[2.0]], [8.0]))
    >>> more.remove([[2.0]], [8.0]).solve().coef.round(8).tolist()
    [[1.0], [2.0]]
    """

    n: int
    q: int
    _: KW_ONLY
    bias: bool = True
    alpha: float = 0.0
    rcond: float | None = None
    form: str = "auto"
    statistic: SufficientStatistic | None = field(default=None, repr=False)
    least_alpha: float = field(default=0.0, repr=False)

    def __post_init__(self) -> None:
        for name, size in (("n", self.n), ("q", self.q)):
            if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 0:
                raise ValueError(f"{name}={shown(size)} must be an integer that is not negative.")
        check_flag("bias", self.bias)
        check_non_negative("alpha", self.alpha)
        check_rcond(self.rcond)
        check_one_of("form", self.form, FORMS)

    @classmethod
    def of(cls, found: SufficientStatistic | Stack, *, bias: bool, **settings: Any) -> Self:
        """Return the accumulator of rows from the statistic in the solution of their problem.

        Settings are `alpha`, `rcond` and `form`.
        """
        statistic = found.triangle(bias) if isinstance(found, Stack) else found
        empty = cls(statistic.centre.n, len(statistic.centre.B), bias=bias, **settings)
        if isinstance(statistic, Triangle):
            return empty._keeping(updates.with_controls(statistic))
        condition = empty._problem().condition(statistic)
        if condition > GRAM_CONDITION:
            raise ValueError(
                f"the Gram products were computed from a matrix of condition {condition:.1e}, and "
                f"above {GRAM_CONDITION:.0e} rows cannot be added or removed exactly: fit by "
                "partial_fit, which keeps a triangle there."
            )
        return empty._keeping(updates.with_controls(statistic))

    def add(self, A: ArrayLike, B: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Return the accumulator of more rows.

        Parameters
        ----------
        A : array-like of shape (m, n)
            The rows.
        B : array-like of shape (m, q), or (m,) for one right-hand side
            The right-hand sides.
        sample_weight : array-like of shape (m,), optional
            Weights of the rows. A weight of k stands for k copies of the row.

        Returns
        -------
        Accumulator
        """
        rows = self._rows(A, B, sample_weight)
        return self.take(rows.reduce, len(rows)) if len(rows) else self

    def remove(self, A: ArrayLike, B: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Return the accumulator without some rows.

        The rows must have been added before, which the statistics cannot verify in general. An
        error is raised if more would be removed than was added, if too little would remain in some
        direction to be accurate, or if nothing would remain there without a ridge.

        Parameters
        ----------
        A, B, sample_weight
            As in `add`.

        Returns
        -------
        Accumulator
        """
        rows = self._rows(A, B, sample_weight)
        return self.drop(rows.reduce, len(rows)) if len(rows) else self

    @np.errstate(all="ignore")
    def merge(self, other: Accumulator, /) -> Self:
        """Return the accumulator of the rows of both, with the ridge and form of this one.

        Gram products and a triangle merge into a triangle.
        """
        if not isinstance(other, Accumulator):
            raise TypeError(f"an Accumulator merges with another one, not with {type(other)}.")
        ours, theirs = (self.n, self.q, self.bias), (other.n, other.q, other.bias)
        if ours != theirs:
            raise ValueError(
                f"accumulators of different problems cannot be merged: n, q and bias are {ours} "
                f"and {theirs}."
            )
        rows = replace(self, statistic=other.statistic, least_alpha=other.least_alpha)
        first, second = self.statistic, other.statistic
        if first is None or second is None:
            return rows._keeping(second) if first is None else self
        if isinstance(first, Gram) and isinstance(second, Gram):
            gram = first.merge(second)
            if self._as_gram(gram):
                return self._keeping(gram)
        (triangle, least), (added, least_of_added) = self._triangle(), rows._triangle()
        both = replace(self, least_alpha=max(least, least_of_added))
        return both._keeping(triangle.merge(added))

    @np.errstate(all="ignore")
    def solve(self, alpha: float | None = None) -> Solution:
        """Return the least-squares solution over all rows.

        Parameters
        ----------
        alpha : float, optional
            A ridge to use instead of that of the accumulator.

        Returns
        -------
        Solution
        """
        if alpha is not None and check_non_negative("alpha", alpha) != self.alpha:
            return replace(self, alpha=float(alpha)).solve()
        if self.statistic is not None:
            self._refuse_rounding(self.statistic.lengths)
        solution, _ = self._solution
        return replace(solution, coef=solution.coef.copy())

    @np.errstate(all="ignore")
    def take(self, reduce: Reduce, m: int) -> Self:
        """Return the accumulator of m more rows, read through a reduction over blocks of them.

        The reduction is called once or more.
        """
        p, statistic = self._problem(reduce, m), self.statistic
        # The columns of so few rows are linearly dependent.
        dependent = statistic is None and m <= self.n and not self.alpha
        by_products = self.form == "gram" or (self.form == "auto" and not dependent)
        if by_products and self.n and not isinstance(statistic, Triangle):
            gram = updates.with_controls(self._read(p, Gram))
            gram = gram if statistic is None else statistic.merge(gram)
            if self._as_gram(gram):
                return self._keeping(gram)
        return self.merge(replace(self, statistic=updates.with_controls(p.triangle)))

    @np.errstate(all="ignore")
    def drop(self, reduce: Reduce, m: int) -> Self:
        """Return the accumulator without m rows, read through a reduction over blocks of them."""
        try:
            whole = self.statistic
            if whole is None:
                raise ValueError("there are none.")
            if self.alpha and self.form == "auto" and isinstance(whole, Triangle):
                # The ridge can make Gram products accurate enough.
                gram = whole.gram()
                whole = gram if self._as_gram(gram) else whole
            rest = replace(self, statistic=self._rest(self._problem(reduce, m), whole))
            # In the scale of all rows: a column that would become empty is not a small column.
            rest._refuse_rounding(whole.lengths)
            rest.solve()
        except ValueError as error:
            raise ValueError(f"these rows cannot be removed: {error}") from error
        return rest

    def spread(self, columns: Indices, q: int) -> Self:
        """Return the accumulator of q right-hand sides: these in some columns, zeros in others."""
        statistic = self.statistic
        return replace(self, q=q, statistic=statistic and updates.spread(statistic, columns, q))

    def _rest(self, p: Problem, whole: SufficientStatistic) -> SufficientStatistic:
        """Return the statistic without the rows of a problem."""
        part, weight = self._read(p, type(whole)), whole.centre.weight
        if self.bias and not weight - part.centre.weight > LEAST_WEIGHT * weight:
            raise ValueError(
                f"their weight is {part.centre.weight:.6g}, and that of all rows {weight:.6g}."
            )
        part = updates.with_controls(part)
        if isinstance(whole, Triangle):
            p.triangle = whole
            return updates.without_rows(p, part, updates.control_solutions(self.n))
        rest = whole.without(part)
        empty = np.diag(rest.AA) <= updates.SHARE_ULPS * EPS * np.diag(whole.AA)
        if p.condition(rest) == np.inf or (empty.any() and not self.alpha):
            updates.refuse_share(p.least_share(whole, rest))
        return rest

    def _read(self, p: Problem, form: type[SufficientStatistic]) -> Any:
        of_block = partial(Gram.of, careful=True) if form is Gram else Triangle.of
        return arrays.on_host(p.reduce(partial(of_block, bias=self.bias)))

    @cached_property
    def _solution(self) -> tuple[Solution, Array]:
        """The solution, and the errors of the control columns."""
        statistic, q, p = self.statistic, self.q, self._problem()
        if statistic is None:
            # Every W fits no rows, and 0 is the shortest.
            return Solution(np.zeros((self.n + self.bias, q)), 0, "svd"), np.zeros((self.n, 0))
        if self.alpha < self.least_alpha:
            raise ValueError(
                f"the statistics are accurate for a ridge of {self.least_alpha:.3g} or more, not "
                f"for {self.alpha:.3g}: fit the rows afresh."
            )
        if isinstance(statistic, Triangle):
            p.triangle = updates.with_errors(statistic)
            solution: Solution | None = solve_in_turn(PRIMAL, p, "qr")
        else:
            self._refuse_condition(p.condition(statistic))
            solution = from_gram(p, updates.with_errors(statistic))
        if solution is None:
            raise ValueError(
                f"from Gram products, the matrix cannot be solved at rcond={p.rcond:.1e}: keep a "
                "triangle."
            )
        refuse_overflow(coef := solution.coef)
        found = Solution(coef[:, :q], solution.rank, solution.solver)
        return found, coef[int(self.bias) :, q:]

    def _refuse_rounding(self, scale: Array) -> None:
        """Raise an error if rounding changes the coefficients of columns of these lengths."""
        _, errors = self._solution
        X = updates.control_solutions(self.n)
        size = updates.sizes(scale[:, None] * X).max() or 1.0
        errors = updates.sizes(scale[:, None] * errors) / size
        lost, inherent = (part.max() for part in np.split(errors, [updates.N_CONTROLS]))
        if not lost <= max(MAX_ERROR, INHERENT_FACTOR * inherent):
            raise ValueError(
                f"rounding would change the coefficients by {lost:.1e}, more than {MAX_ERROR:.0e}: "
                "fit the rows afresh, or use a larger ridge."
            )

    def _as_gram(self, gram: Gram) -> bool:
        """Return whether Gram products are accurate enough to be kept."""
        if self.form == "gram":
            return True
        p = self._problem()
        condition = p.condition(gram)
        return condition <= GRAM_CONDITION and ESTIMATE_FACTOR * p.rcond * condition <= 1.0

    def _keeping(self, statistic: SufficientStatistic | None) -> Self:
        kept = replace(self, statistic=statistic)
        if isinstance(statistic, Gram) and self.form == "triangle":
            triangle, least = kept._triangle()
            return replace(kept, statistic=triangle, least_alpha=least)
        mixed = self.form == "gram" and isinstance(statistic, Triangle)
        return replace(kept, form="auto") if mixed else kept

    def _triangle(self) -> tuple[Triangle, float]:
        """Return the statistic as a triangle, and the least ridge for which it is accurate."""
        statistic = self.statistic
        if not isinstance(statistic, Gram):
            assert statistic is not None
            return statistic, self.least_alpha
        p = self._problem()
        self._refuse_condition(p.condition(statistic))
        accurate = EPS * replace(p, alpha=0.0).condition(statistic) ** 2 <= MAX_ERROR
        return statistic.triangle(), self.least_alpha if accurate else self.alpha

    def _refuse_condition(self, condition: float) -> None:
        if not EPS * condition**2 <= MAX_ERROR:
            raise ValueError(
                f"from Gram products, a matrix of condition {condition:.1e} cannot be solved to "
                f"{MAX_ERROR:.0e}: keep a triangle, or use a larger ridge."
            )

    def _problem(self, reduce: Any = None, m: int = 0) -> Problem:
        """Return the problem of some rows, or of the statistic, which is solved without rows."""
        rcond = default_rcond(self.n + self.bias) if self.rcond is None else self.rcond
        return Problem(reduce, m, self.n, self.bias, self.alpha, rcond)

    def _rows(self, A: ArrayLike, B: ArrayLike, sample_weight: ArrayLike | None) -> Rows:
        M, right = real("A", A, (2,)), real("B", B, (1, 2))
        right = right[:, None] if right.ndim == 1 else right
        if M.shape != (len(M), self.n) or right.shape != (len(M), self.q):
            raise ValueError(
                f"A and B must have {self.n} and {self.q} columns and the same number of rows, but "
                f"their shapes are {M.shape} and {right.shape}."
            )
        if sample_weight is None:
            return Rows(M, right)
        weight = real("sample_weight", sample_weight, (1,))
        if len(weight) != len(M) or not (weight >= 0.0).all():
            raise ValueError(
                f"sample_weight must hold a number that is not negative for each of the {len(M)} "
                "rows."
            )
        kept = weight > 0.0
        return Rows(M[kept], right[kept], weight[kept])
