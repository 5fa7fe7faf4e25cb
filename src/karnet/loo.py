r"""The whole ridge path, and exact leave-one-out and k-fold predictions, from one factorisation.

For features A (m x n), targets B (m x q) and weights w of the rows, the ridge solution minimises ::

    sum_i w_i ||b + a_i W - B_i||^2 + alpha ||W||^2

with a bias b that is free of the penalty, or without one. Rows less their weighted means, times the
roots of their weights, are ``U S V'``; t is the vector of the roots of the weights at length one
(zero without bias), and U is orthogonal to it. With Y the targets so treated and lam the squares of
S, the residual of the fit is G Y, in units of the roots of the weights::

    G = N + U diag(alpha / (lam + alpha)) U'        N = I - t t' - U U'

A refit without the rows S misses them by ``G_SS^-1 (G Y)_S``; for a single row that is a quotient.
As written, both parts of G shrink together when alpha does, in numerator and denominator alike, and
nothing cancels: the usual ``1 - leverage`` has no digits left where the leverage is 1. The limit
alpha = 0 exists for every shape and rank.

Only N is known by cancellation, ``1 - t_i^2 - sum u_i^2``. Where too little is left of it, its rows
are formed one by one, and those that are rounding are set to zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax

from ._lstsq.lapack import EPS, back_substitute, column_norms, sorted_qr
from ._lstsq.problem import SUMMATION
from ._lstsq.ridge_factor import (
    LEFT,
    check_left_out,
    checked_rows,
    checked_split,
    constant,
    factorised,
    left_out_errors,
    less_than_one,
    lifted,
    reflected,
)
from ._lstsq.statistics import centred
from ._rows.memory import read_only
from ._util.checks import check_non_negative

__all__ = ["RidgePath", "accuracy", "alphas", "choose_alpha", "log_loss", "squared_error"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# alpha = 0 is taken at this share of the largest eigenvalue: far below any that differs from zero,
# far above underflow.
LIMIT = 1e-60
# Length up to which what is left of a vector of length 1 is rounding.
ROUNDING = 1e-8


@dataclass(frozen=True)
class RidgePath:
    """All ridge solutions of one problem; made by `of` or `of_kernel`.

    Attributes
    ----------
    B : ndarray of shape (m, q)
        The targets.
    weight : ndarray of shape (m,)
        The weights of the rows.
    bias : bool
        Whether there is a bias.
    eigenvalues : ndarray of shape (r,)
        The eigenvalues of the centred, weighted Gram matrix that differ from zero.
    U : ndarray of shape (m, r)
        Its eigenvectors.
    V : ndarray of shape (n, r), or None for a kernel
        The right singular vectors of the centred, weighted features.
    mean : ndarray of shape (n,), or (m,) for a kernel
        The weighted mean of the rows of A, or of K; zeros without bias.
    target_mean : ndarray of shape (q,)
        The weighted mean of the rows of B; zeros without bias.
    Y : ndarray of shape (m, q)
        The centred, weighted targets.
    factorisation : {"svd", "eigh"}
        What was used: singular values, or eigenvalues of a Gram matrix.
    """

    B: Array
    weight: Array
    bias: bool
    eigenvalues: Array
    U: Array
    V: Array | None
    mean: Array
    target_mean: Array
    Y: Array
    factorisation: str

    @classmethod
    def of(
        cls, A: ArrayLike, B: ArrayLike, weight: ArrayLike | None = None, bias: bool = True
    ) -> RidgePath:
        """Factorise features for all ridge solutions.

        Parameters
        ----------
        A : array-like of shape (m, n)
            The features. Any shape and any rank will do.
        B : array-like of shape (m, q)
            The targets.
        weight : array-like of shape (m,), optional
            Positive weights of the rows; integers mean repeats.
        bias : bool
            Whether there is a bias, free of the penalty.

        Returns
        -------
        RidgePath
        """
        M, right, weights = checked_rows("A", A, B, weight)
        centre, X, Y = centred(read_only(M), read_only(right), weights, bias)
        if bias:
            scale = np.sqrt(centre.weight) * np.abs(centre.A)
            X[:, column_norms(X) <= EPS * (len(scale) + SUMMATION) * scale] = 0.0
        t = constant(weights, bias)
        Q, eigenvalues, V, how = factorised(reflected(t, X) if bias else X)
        U = lifted(t, Q) if bias else Q
        return cls(right, weights, bias, eigenvalues, U, V, centre.A, centre.B, Y, how)

    @classmethod
    def of_kernel(
        cls, K: ArrayLike, B: ArrayLike, weight: ArrayLike | None = None, bias: bool = True
    ) -> RidgePath:
        """Factorise a kernel matrix for all ridge solutions: K = A A' gives those of A.

        What is lost is machine precision times the largest eigenvalue over alpha plus the least
        one, as K holds the squares of the singular values of A.

        Parameters
        ----------
        K : array-like of shape (m, m)
            The kernel between the rows, symmetric and positive semidefinite; with bias, only for
            combinations of rows whose coefficients sum to zero.
        B, weight, bias
            As in `of`.

        Returns
        -------
        RidgePath
        """
        M, right, weights = checked_rows("K", K, B, weight)
        if len(M) != M.shape[1] or np.abs(M - M.T).max() > np.sqrt(EPS) * np.abs(M).max():
            raise ValueError(f"K must be square and symmetric, but of shape {M.shape} it is not.")
        centre, _, Y = centred(np.empty((len(M), 0)), right.copy(), weights, bias)
        mean = weights @ M / centre.weight if bias else np.zeros(len(M))
        t, root = constant(weights, bias), np.sqrt(weights)
        M = M * np.outer(root, root)
        eigenvalues, Q = np.linalg.eigh(reflected(t, reflected(t, M).T) if bias else M)
        size = max(np.abs(eigenvalues).max(initial=0.0), np.abs(np.diag(M)).max())
        if eigenvalues.min(initial=0.0) < -np.sqrt(EPS) * size:
            raise ValueError(
                "K must be positive semidefinite, but centred and weighted it has the eigenvalue "
                f"{eigenvalues.min():.3g}."
            )
        felt = eigenvalues > 2.0 * EPS * np.sqrt(len(M)) * size
        U = lifted(t, Q[:, felt]) if bias else Q[:, felt]
        return cls(right, weights, bias, eigenvalues[felt], U, None, mean, centre.B, Y, "eigh")

    @cached_property
    def _root(self) -> Array:
        return np.sqrt(self.weight)[:, None]

    @cached_property
    def _t(self) -> Array:
        return constant(self.weight, self.bias)

    @cached_property
    def _Z(self) -> Array:
        return np.asarray(self.U.T @ self.Y)

    def coef(self, alpha: float) -> Array:
        """Return the solution for features: [b; W] with bias, W without.

        It equals that of `karnet.lstsq`. For alpha = 0 it is the limit, in which the bias does not
        count in the norm, while there it does: below full column rank the two differ.
        """
        if self.V is None:
            raise ValueError("a kernel has no coefficients of features: use dual_coef(alpha).")
        s = np.sqrt(self.eigenvalues)
        W = self.V @ (self._filtered(alpha) * s[:, None])
        return np.vstack([self.target_mean - self.mean @ W, W]) if self.bias else W

    def dual_coef(self, alpha: float) -> tuple[Array, Array]:
        """Return b and D with which ``b + K_new D`` predicts, K_new the kernel of new and old rows.

        K_new is not to be centred: with bias the columns of D sum to zero, which takes the mean of
        K_new's rows out, and b holds what the mean of K's rows adds.
        """
        if self.V is not None:
            raise ValueError("features have no dual coefficients: use coef(alpha).")
        D = self._root * (self.U @ self._filtered(alpha))
        return np.asarray(self.target_mean - self.mean @ D), np.asarray(D)

    def _filtered(self, alpha: float) -> Array:
        """Return ``(lam + alpha)^-1 U'Y``."""
        return self._Z / (self.eigenvalues + check_non_negative("alpha", alpha))[:, None]

    def fitted(self, alpha: float) -> Array:
        """Return the predictions of the fit for its own rows."""
        return np.asarray(self.B - self._residual(self._shares([alpha])[0]) / self._root)

    def leverage(self, alpha: float) -> Array:
        """Return by how much the fit of each row moves with its target, all copies together.

        The sum is the number of effective degrees of freedom, the bias included.
        """
        return np.asarray(self._t**2 + self.U**2 @ (1.0 - self._shares([alpha])[0]))

    def loo(self, alpha: float) -> Array:
        """Return what a refit without row i, its means too, predicts for row i: m x q.

        Integer weights mean repeats, and one copy is left out: of a row of weight 3 two stay. So a
        weight above 1 is reduced by 1, and a row of weight 1 or less, of which there is no second
        copy, is left out whole.
        """
        return next(self.loo_path([alpha]))

    def loo_path(self, alphas: Sequence[float] | Array) -> Iterator[Array]:
        """Yield `loo` for one alpha after the other."""
        check_left_out(self.weight)
        shares = self._shares(alphas)
        remaining = self._beside[0] + shares @ (self.U**2).T
        return (
            self.B - left_out_errors(self._residual(share), diagonal, self.weight)
            for share, diagonal in zip(shares, remaining, strict=True)
        )

    def kfold(self, alpha: float, splits: Iterable[ArrayLike]) -> list[Array]:
        """Return, for every split, what a refit without its rows, all copies, predicts for them.

        Parameters
        ----------
        alpha : float
            The ridge.
        splits : iterable of array-like of int
            The numbers of the rows left out together; splits may overlap and need not cover all.

        Returns
        -------
        list of ndarray of shape (rows of the split, q)
        """
        return [predictions[0] for predictions in self.kfold_path([alpha], splits)]

    def kfold_path(
        self, alphas: Sequence[float] | Array, splits: Iterable[ArrayLike]
    ) -> Iterator[Array]:
        """Yield for every split the predictions of `kfold` for all alphas: alphas x rows x q."""
        shares = self._shares(alphas)
        for split in splits:
            rows = checked_split(split, self.weight)
            block = _Block(self, rows)
            errors = np.array([block.errors(share) for share in shares])
            yield self.B[rows] - errors / self._root[rows]

    def _shares(self, alphas: Sequence[float] | Array) -> Array:
        """Return ``alpha / (lam + alpha)``, a row for each alpha."""
        ridges = np.array([check_non_negative("alpha", alpha) for alpha in alphas])[:, None]
        ridges = np.maximum(ridges, LIMIT * self.eigenvalues.max(initial=0.0))
        return np.asarray(ridges / (self.eigenvalues + ridges))

    def _residual(self, share: Array, rows: Indices | slice = slice(None)) -> Array:
        """Return rows of G Y."""
        return np.asarray(self._beside[1][rows] + self.U[rows] @ (share[:, None] * self._Z))

    @property
    def _full(self) -> bool:
        """Whether N is zero."""
        return len(self.eigenvalues) + self.bias == len(self.B)

    @cached_property
    def _beside(self) -> tuple[Array, Array]:
        """The diagonal of N, and N Y."""
        if self._full:
            return np.zeros(len(self.B)), np.zeros_like(self.Y)
        fit = self.Y - self.U @ self._Z
        fit -= np.outer(self._t, self._t @ fit) + self.U @ (self.U.T @ fit)
        squares = 1.0 - self._t**2 - np.einsum("ij,ij->i", self.U, self.U)
        # Hardly more than the columns of [t, U]: their number is what the leverages sum to.
        few = np.flatnonzero(squares < LEFT)
        N = self._columns_beside(few, np.eye(len(few)), self._span(few))
        squares[few] = np.einsum("ij,ij->j", N, N)
        fit[few] = N.T @ fit
        nothing = few[squares[few] <= ROUNDING**2]
        squares[nothing], fit[nothing] = 0.0, 0.0
        return squares, fit

    def _span(self, rows: Indices) -> Array:
        """Return rows of [t, U]; without bias, of U."""
        return np.hstack([self._t[rows, None][:, : int(self.bias)], self.U[rows]])

    def _columns_beside(self, rows: Indices, P: Array, R: Array) -> Array:
        """Return N E P, where E are columns of the identity, and R is P'E'[t, U]."""
        t = int(self.bias)
        N = -(self.U @ R[:, t:].T)
        N -= self._t[:, None] * R[:, :t].sum(axis=1)
        N[rows] += P
        return N


class _Block:
    """Rows that are left out together, seen in a basis P of at most as many columns as [t, U]."""

    def __init__(self, path: RidgePath, rows: Indices) -> None:
        self.path, self.rows = path, rows
        self.P, self.R = np.eye(len(rows)), path._span(rows)
        if len(rows) > self.R.shape[1]:
            self.P, self.R = np.linalg.qr(self.R)

    def errors(self, share: Array) -> Array:
        """Return ``G_SS^-1 (G Y)_S``; outside the span of P, G_SS is the identity."""
        residual = self.path._residual(share, self.rows)
        inside = self.P.T @ residual
        t = int(self.path.bias)
        R = np.hstack([self.R[:, :t], self.R[:, t:] * np.sqrt(1.0 - share)])
        solved = less_than_one(R, inside)
        if solved is None:
            solved = self._carefully(share)
        return np.asarray(residual + self.P @ (solved - inside))

    @cached_property
    def _beside(self) -> tuple[Array, Array, Array]:
        """Singular values of N E P (rounding at zero), its right vectors, its left ones by N Y."""
        k, path = self.P.shape[1], self.path
        if path._full:
            return np.zeros(k), np.eye(k), np.zeros((k, path.Y.shape[1]))
        N = path._columns_beside(self.rows, self.P, self.R)
        Q, sigma, Tt = np.linalg.svd(N, full_matrices=False)
        sigma[sigma <= ROUNDING] = 0.0
        return sigma, Tt.T, Q.T @ path._beside[1]

    def _carefully(self, share: Array) -> Array:
        """Return the solution by least squares on a factor F of ``P'G_SS P = F'F``.

        F has rows of very different size, those of N and, times the roots of the shares, those
        of U. In the singular basis of the first the second are not mixed with their rounding.
        """
        sigma, T, z = self._beside
        root = np.sqrt(share)[:, None]
        F = np.vstack([np.diag(sigma), root * (self.R[:, int(self.path.bias) :].T @ T)])
        Q, R = sorted_qr(F)
        return np.asarray(T @ back_substitute(R, Q.T @ np.vstack([z, root * self.path._Z])))


def squared_error(B: Array, predictions: Array, weight: Array | None = None) -> float:
    """Return the squared distance between rows of targets and predictions, mean over all copies."""
    return float(np.average(np.sum((B - predictions) ** 2, axis=1), weights=weight))


def accuracy(codes: NDArray[np.integer], predictions: Array, weight: Array | None = None) -> float:
    """Return the share of rows, of all copies, whose largest prediction is that of their class."""
    return float(np.average(np.argmax(predictions, axis=1) == codes, weights=weight))


def log_loss(
    codes: NDArray[np.integer],
    predictions: Array,
    temperature: float = 1.0,
    weight: Array | None = None,
    doubt: float = 0.0,
) -> float:
    """Return minus the logarithm of the probability of each row's class, mean over all copies.

    Probabilities are the softmax of the predictions over the temperature, all but a share of
    doubt, which all classes have equally.
    """
    logarithms = log_softmax(predictions / temperature, axis=1)
    if doubt:
        certain = np.log1p(-doubt) + logarithms
        logarithms = np.logaddexp(certain, np.log(doubt / predictions.shape[1]))
    return float(-np.average(logarithms[np.arange(len(codes)), codes], weights=weight))


def alphas(path: RidgePath, n: int = 37) -> Array:
    """Return n ridges from 1e-10 to 1e2 of the mean eigenvalue, at equal ratios."""
    mean = path.eigenvalues.mean() if len(path.eigenvalues) else 1.0
    return np.asarray(mean * np.logspace(-10, 2, n))


def choose_alpha(path: RidgePath, candidates: Sequence[float] | Array | None = None) -> float:
    """Return the ridge with the least leave-one-out squared error; of `alphas`, if none are given.

    Of equals, the largest is taken.
    """
    ridges = np.sort(alphas(path) if candidates is None else np.asarray(candidates))[::-1]
    errors = [squared_error(path.B, loo, path.weight) for loo in path.loo_path(ridges)]
    return float(ridges[np.argmin(errors)])
