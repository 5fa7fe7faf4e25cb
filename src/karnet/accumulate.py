"""The statistics of one least-squares problem ``[1, A] W = B`` that a user keeps.

Rows are added to them, two of them merge, rows are removed from them, and at any time they are
solved, as if all rows had been there at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._arrays import namespace as arrays
from ._lstsq.control_columns import N_CONTROLS, controlled, controls, sizes, spread, with_errors
from ._lstsq.downdate import ULPS, GoneError, too_little_left, without_rows
from ._lstsq.forms import (
    LIMIT,
    Known,
    as_gram,
    as_triangle,
    condition,
    least_share,
    lengths,
    triangle_of_rows,
)
from ._lstsq.lapack import EPS, ESTIMATE_FACTOR
from ._lstsq.problem import Problem, Reduce
from ._lstsq.solve import Solution, check_rcond, refuse_overflow
from ._lstsq.solvers import PRIMAL, from_gram
from ._lstsq.statistics import Gram, Stack, Triangle
from ._rows.memory import Rows
from ._util.checks import check_non_negative, real
from ._util.messages import shown

__all__ = ["FORMS", "Accumulator"]

Array = NDArray[np.float64]
FORMS = ("auto", "gram", "triangle")

# Relative error of the coefficients above which they are not given out, unless it is at most so
# many times the error that a single decomposition has.
DIGITS, INHERENT = 1e-8, 100.0
# Share of the weight that must be left when rows are removed.
LEAST_WEIGHT = 1e-12


@dataclass(frozen=True, eq=False)
class Accumulator:
    """The mergeable statistics of a least-squares problem ``[1, A] W = B``.

    `solve` minimises ``||[1, A] W - B||^2 + alpha ||W||^2`` and, of all minimisers, the norm of W,
    over the rows that were added and not removed, as `karnet.lstsq` does over rows themselves. An
    accumulator never changes: `add`, `merge` and `remove` return another.

    Parameters
    ----------
    n, q : int
        The numbers of columns of A and of B.
    bias : bool, default=True
        Put a column of ones before A. With a ridge its coefficient is free.
    alpha : float, default=0.0
        The ridge. It counts in the condition that decides on the form.
    rcond : float, optional
        As in `karnet.lstsq`.
    form : {"auto", "gram", "triangle"}, default="auto"
        "gram" keeps A'A and A'B: one product per block of rows, but it squares the condition of A.
        "triangle" keeps R and Q'B of ``A = Q R``: a decomposition per block, and the condition
        stays as it is. "auto" starts with Gram products and turns to a triangle where the condition
        of A (columns centred and scaled to unit length, with the ridge) is above 1e3.
    statistic, least_alpha : optional
        What is kept, and the least ridge that its digits are enough for; nothing at the beginning.

    Notes
    -----
    About ``8 n (n + q)`` bytes are kept. To add m rows takes about ``m n^2`` multiplications and
    ``n^3 / 3`` for a look at the condition, or ``2 (m + n) n^2`` for a triangle; to remove them
    takes about the same and a solve.

    Coefficients are those that the rows at once would give to 1e-8, or an error says why not. That
    is measured, by a few right-hand sides of known solution that are carried along.

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
    statistic: Known | None = field(default=None, repr=False)
    least_alpha: float = field(default=0.0, repr=False)

    def __post_init__(self) -> None:
        for name, size in (("n", self.n), ("q", self.q)):
            if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 0:
                raise ValueError(f"{name}={shown(size)} must be an integer that is not negative.")
        if not isinstance(self.bias, (bool, np.bool_)):
            raise ValueError(f"bias={shown(self.bias)} must be True or False.")
        check_non_negative("alpha", self.alpha)
        check_rcond(self.rcond)
        if not isinstance(self.form, str) or self.form not in FORMS:
            raise ValueError(
                f"form={shown(self.form)} is not known: give one of {', '.join(FORMS)}."
            )

    @classmethod
    def of(cls, found: Known | Stack, *, bias: bool, **settings: Any) -> Accumulator:
        """Return the accumulator of rows from the statistic that a solver found for them.

        Settings are `alpha`, `rcond` and `form`.
        """
        known = triangle_of_rows(found, bias) if isinstance(found, Stack) else found
        empty = cls(known.centre.n, len(known.centre.B), bias=bias, **settings)
        if isinstance(known, Gram):
            worst = condition(empty._problem(), known)
            if worst > LIMIT:
                raise ValueError(
                    f"Gram products of a matrix of condition {worst:.1e} were kept, and above "
                    f"{LIMIT:.0e} they lack the digits for rows to be added or removed exactly: "
                    "learn by partial_fit, which keeps a triangle there."
                )
        return empty._keeping(controlled(known))

    def add(
        self, A: ArrayLike, B: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Accumulator:
        """Return the accumulator of more rows.

        Parameters
        ----------
        A : array-like of shape (m, n)
            The rows.
        B : array-like of shape (m, q), or (m,) for one right-hand side
            What they are to give.
        sample_weight : array-like of shape (m,), optional
            Weights of the rows. A weight of k is k copies of the row.

        Returns
        -------
        Accumulator
        """
        rows = self._rows(A, B, sample_weight)
        return self.take(rows.reduce, len(rows)) if len(rows) else self

    def remove(
        self, A: ArrayLike, B: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Accumulator:
        """Return the accumulator that never saw some rows.

        They must have been added before; the statistics cannot tell that in general. Refused is
        what they can tell: if there is more to remove than there is, if too little would be left in
        some direction for its digits, or if, without a ridge, nothing would be left there.

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
    def merge(self, other: Accumulator, /) -> Accumulator:
        """Return the accumulator of the rows of both, with the ridge and form of this one.

        Gram products and a triangle make a triangle.
        """
        if not isinstance(other, Accumulator):
            raise TypeError(f"an Accumulator merges with another one, not with {type(other)}.")
        ours, theirs = (self.n, self.q, self.bias), (other.n, other.q, other.bias)
        if ours != theirs:
            raise ValueError(
                f"accumulators of different problems cannot be merged: n, q and bias are {ours} "
                f"and {theirs}."
            )
        other = replace(self, statistic=other.statistic, least_alpha=other.least_alpha)
        first, second = self.statistic, other.statistic
        if first is None or second is None:
            return other._keeping(second) if first is None else self
        if isinstance(first, Gram) and isinstance(second, Gram):
            gram = first.merge(second)
            if self._as_gram(gram):
                return self._keeping(gram)
        R, least = self._triangle()
        other_R, other_least = other._triangle()
        return replace(self, least_alpha=max(least, other_least))._keeping(R.merge(other_R))

    @np.errstate(all="ignore")
    def solve(self, alpha: float | None = None) -> Solution:
        """Return the least-squares solution over all rows.

        Parameters
        ----------
        alpha : float, optional
            Another ridge than that of the accumulator.

        Returns
        -------
        Solution
        """
        if alpha is not None and check_non_negative("alpha", alpha) != self.alpha:
            return replace(self, alpha=float(alpha)).solve()
        if self.statistic is not None:
            self._refuse_rounding(lengths(self.statistic))
        solution, _ = self._found
        return replace(solution, coef=solution.coef.copy())

    @np.errstate(all="ignore")
    def take(self, reduce: Reduce, m: int) -> Accumulator:
        """Return the accumulator of m more rows, read through a reduction over blocks of them.

        It is called once or more.
        """
        p, known = self._problem(reduce, m), self.statistic
        # Columns of so few rows depend on each other.
        few = known is None and m <= self.n and not self.alpha
        wanted = self.form == "gram" or (self.form == "auto" and not few)
        if wanted and self.n and not isinstance(known, Triangle):
            gram = controlled(arrays.on_host(p.reduce(self._products())))
            assert isinstance(gram, Gram)
            gram = known.merge(gram) if isinstance(known, Gram) else gram
            if self._as_gram(gram):
                return self._keeping(gram)
        more = replace(self, statistic=controlled(p.triangle))
        return self.merge(more)

    @np.errstate(all="ignore")
    def drop(self, reduce: Reduce, m: int) -> Accumulator:
        """Return the accumulator without m rows, read through a reduction over blocks of them."""
        try:
            whole = self._for_removal()
            rest = replace(self, statistic=self._rest(self._problem(reduce, m), whole))
            # In the units of all rows: a column that would be left empty is no small one.
            rest._refuse_rounding(lengths(whole))
            rest.solve()
        except ValueError as error:
            raise ValueError(f"these rows cannot be removed: {error}") from error
        return rest

    def spread(self, columns: NDArray[np.intp], q: int) -> Accumulator:
        """Return the accumulator of q right-hand sides: these in some columns, zeros in others."""
        known = self.statistic
        return replace(self, q=q, statistic=known and spread(known, columns, q))

    def _for_removal(self) -> Known:
        """Return what is kept; as products if a ridge makes up for what these lose."""
        known = self.statistic
        if known is None:
            raise GoneError("there are none.")
        if self.alpha and self.form == "auto" and isinstance(known, Triangle):
            gram = as_gram(known)
            return gram if self._as_gram(gram) else known
        return known

    def _rest(self, p: Problem, whole: Known) -> Known:
        """Return the statistic without the rows of a problem."""
        part: Known
        if isinstance(whole, Gram):
            part = arrays.on_host(p.reduce(self._products()))
        else:
            part = arrays.on_host(p.reduce(partial(Triangle.of, bias=self.bias)))
        weight, total = part.centre.weight, whole.centre.weight
        if self.bias and not total - weight > LEAST_WEIGHT * total:
            raise GoneError(f"their weight is {weight:.6g}, and that of all rows {total:.6g}.")
        part = controlled(part)
        if isinstance(whole, Gram):
            assert isinstance(part, Gram)
            rest = whole.without(part)
            empty = np.diag(rest.AA) <= ULPS * EPS * np.diag(whole.AA)
            if condition(p, rest) == np.inf or (empty.any() and not self.alpha):
                raise GoneError(too_little_left(least_share(p, whole, rest)))
            return rest
        assert isinstance(part, Triangle)
        p.known = whole
        return without_rows(p, part, controls(self.n))

    @cached_property
    def _found(self) -> tuple[Solution, Array]:
        """The solution, and what rounding did to those of the control columns."""
        known, q, p = self.statistic, self.q, self._problem()
        if known is None:
            # Every W fits no rows, and 0 is the shortest.
            return Solution(np.zeros((self.n + self.bias, q)), 0, "svd"), np.zeros((self.n, 0))
        if self.alpha < self.least_alpha:
            raise ValueError(
                f"what was kept has the digits for a ridge of {self.least_alpha:.3g} or more, not "
                f"for {self.alpha:.3g}: learn from the rows afresh."
            )
        if isinstance(known, Gram):
            self._refuse_condition(condition(p, known))
            solver, found = "cholesky", from_gram(p, with_errors(known))
            if found is None:
                raise ValueError(
                    f"from Gram products, the matrix cannot be solved at rcond={p.rcond:.1e}: keep "
                    "a triangle."
                )
        else:
            p.known = with_errors(known)
            names = iter(("qr", "svd"))
            while (found := PRIMAL[solver := next(names)](p)) is None:
                pass  # the last one always answers
        refuse_overflow(found.coef)
        solution = Solution(found.coef[:, :q], found.rank, solver)
        return solution, found.coef[int(self.bias) :, q:]

    def _refuse_rounding(self, scale: Array) -> None:
        """Raise an error if rounding is felt in the coefficients of columns of these lengths."""
        _, errors = self._found
        size = sizes(scale[:, None] * controls(self.n)).max() or 1.0
        errors = sizes(scale[:, None] * errors) / size
        lost, inherent = errors[:N_CONTROLS].max(), errors[N_CONTROLS:].max()
        if not lost <= max(DIGITS, INHERENT * inherent):
            raise ValueError(
                f"rounding would reach {lost:.1e} of the coefficients, more than {DIGITS:.0e}: "
                "learn from the rows afresh, or take a larger ridge."
            )

    def _products(self) -> Callable[..., Gram]:
        return partial(Gram.of, bias=self.bias, careful=True)

    def _as_gram(self, gram: Gram) -> bool:
        if self.form == "gram":
            return True
        p = self._problem()
        found = condition(p, gram)
        return found <= LIMIT and ESTIMATE_FACTOR * p.rcond * found <= 1.0

    def _keeping(self, known: Known | None) -> Accumulator:
        kept = replace(self, statistic=known)
        if isinstance(known, Gram) and self.form == "triangle":
            triangle, least = kept._triangle()
            return replace(kept, statistic=triangle, least_alpha=least)
        mixed = self.form == "gram" and isinstance(known, Triangle)
        return replace(kept, form="auto") if mixed else kept

    def _triangle(self) -> tuple[Triangle, float]:
        """Return what is kept as a triangle, and the least ridge that its digits are enough for."""
        known = self.statistic
        if not isinstance(known, Gram):
            assert known is not None
            return known, self.least_alpha
        p = self._problem()
        self._refuse_condition(condition(p, known))
        bare = EPS * condition(replace(p, alpha=0.0), known) ** 2 <= DIGITS
        return as_triangle(known), self.least_alpha if bare else self.alpha

    def _refuse_condition(self, condition: float) -> None:
        if not EPS * condition**2 <= DIGITS:
            raise ValueError(
                f"from Gram products, a matrix of condition {condition:.1e} cannot be solved to "
                f"{DIGITS:.0e}: keep a triangle, or take a larger ridge."
            )

    def _problem(self, reduce: Reduce | None = None, m: int = 0) -> Problem:
        cut_off = EPS * (self.n + self.bias) if self.rcond is None else self.rcond
        return Problem(reduce or _no_rows, m, self.n, self.bias, self.alpha, cut_off)

    def _rows(self, A: ArrayLike, B: ArrayLike, sample_weight: ArrayLike | None) -> Rows:
        M, right = real("A", A, (2,)), real("B", B, (1, 2))
        right = right[:, None] if right.ndim == 1 else right
        if M.shape != (len(M), self.n) or right.shape != (len(M), self.q):
            raise ValueError(
                f"A and B must have {self.n} and {self.q} columns and as many rows, but their "
                f"shapes are {M.shape} and {right.shape}."
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


def _no_rows(statistic: Callable[..., Any], /, small_chunks: bool = False) -> Any:
    raise AssertionError("what is known is not read from rows.")
