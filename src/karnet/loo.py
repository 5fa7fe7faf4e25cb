r"""The whole ridge path, and exact leave-one-out and k-fold predictions, from one factorisation.

For features A (m x n), targets B (m x q) and weights w of the rows, the ridge solution minimises ::

    sum_i w_i ||b + a_i W - B_i||^2 + alpha ||W||^2

with a bias b that is not penalised, or without a bias. The centred rows, times the roots of their
weights, have the singular value decomposition ``U S V'``; t is the unit vector of the roots of the
weights (zero without bias), and U is orthogonal to it. With Y the targets, centred and weighted in
the same way, and lam the squares of S, the residual of the fit, times the roots of the weights, is
G Y::

    G = N + U diag(alpha / (lam + alpha)) U'        N = I - t t' - U U'

The prediction errors of a refit without the rows S are ``G_SS^-1 (G Y)_S``, a quotient for a single
row. In this form both parts of G shrink with alpha, in the numerator and the denominator alike, and
nothing cancels, while the usual ``1 - leverage`` has no digits left where the leverage is 1. The
limit alpha = 0 exists for every shape and rank.

Only the diagonal of N is computed by subtraction, ``1 - t_i^2 - sum u_i^2``. Where too few of its
digits remain, its rows are formed one by one, and rows that are rounding are set to zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax

from ._arrays import linalg as algebra
from ._lstsq import ridge_factor
from ._lstsq.lapack import EPS, column_norms, significant, sorted_qr
from ._lstsq.problem import MEAN_ULPS
from ._lstsq.ridge_factor import constant, lifted, reflected
from ._lstsq.statistics import centred
from ._rows.memory import read_only
from ._util.checks import check_non_negative
from ._util.types import Array, Indices

__all__ = ["RidgePath", "accuracy", "alphas", "choose_alpha", "log_loss", "squared_error"]

# Ridge that stands for alpha = 0, as a share of the largest eigenvalue: far below all eigenvalues
# above the cut-off, and far above underflow.
LEAST_RIDGE = 1e-60
# Length up to which the remainder of a unit vector is rounding.
ROUNDING_LENGTH = 1e-8


@dataclass(frozen=True)
class RidgePath:
    """All ridge solutions of one problem, constructed by `of` or `of_kernel`.

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
        The eigenvectors.
    V : ndarray of shape (n, r), or None for a kernel
        The right singular vectors of the centred, weighted features.
    mean : ndarray of shape (n,), or (m,) for a kernel
        The weighted mean of the rows of A, or of K; zeros without bias.
    target_mean : ndarray of shape (q,)
        The weighted mean of the rows of B; zeros without bias.
    Y : ndarray of shape (m, q)
        The centred, weighted targets.
    factorisation : {"svd", "eigh"}
        The factorisation that was used: singular values, or eigenvalues of a Gram matrix.
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
            The features, of any shape and rank.
        B : array-like of shape (m, q)
            The targets.
        weight : array-like of shape (m,), optional
            Positive weights of the rows; integers mean repeats.
        bias : bool
            Whether to fit a bias, which is not penalised.

        Returns
        -------
        RidgePath
        """
        M, right, weights = ridge_factor.checked_rows("A", A, B, weight)
        centre, X, Y = centred(read_only(M), read_only(right), weights, bias)
        if bias:
            scale = np.sqrt(centre.weight) * np.abs(centre.A)
            X[:, column_norms(X) <= EPS * (len(scale) + MEAN_ULPS) * scale] = 0.0
        t = constant(weights, bias)
        Q, eigenvalues, V, method = ridge_factor.factorised(reflected(t, X) if bias else X)
        U = lifted(t, Q) if bias else Q
        return cls(right, weights, bias, eigenvalues, U, V, centre.A, centre.B, Y, method)

    @classmethod
    def of_kernel(
        cls, K: ArrayLike, B: ArrayLike, weight: ArrayLike | None = None, bias: bool = True
    ) -> RidgePath:
        """Factorise a kernel matrix for all ridge solutions: K = A A' gives those of A.

        The relative error is machine precision times the largest eigenvalue over the sum of alpha
        and the least eigenvalue, because K holds the squares of the singular values of A.

        Parameters
        ----------
        K : array-like of shape (m, m)
            The kernel between the rows, symmetric and positive semidefinite; with bias,
            conditionally positive semidefinite: for coefficients that sum to zero.
        B, weight, bias
            As in `of`.

        Returns
        -------
        RidgePath
        """
        M, right, weights = ridge_factor.checked_rows("K", K, B, weight)
        if len(M) != M.shape[1] or np.abs(M - M.T).max() > np.sqrt(EPS) * np.abs(M).max():
            raise ValueError(f"K must be square and symmetric; K of shape {M.shape} is not.")
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
        kept = significant(eigenvalues, 2.0 * EPS * np.sqrt(len(M)), size)
        U = lifted(t, Q[:, kept]) if bias else Q[:, kept]
        return cls(right, weights, bias, eigenvalues[kept], U, None, mean, centre.B, Y, "eigh")

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
        """Return the coefficients of the features: [b; W] with bias, W without.

        They equal those of `karnet.lstsq`. For alpha = 0 they are the limit, in which the bias does
        not count in the norm, while in `karnet.lstsq` it does: below full column rank they differ.
        """
        if self.V is None:
            raise ValueError("a kernel has no coefficients of features: use dual_coef(alpha).")
        W = self.V @ (self._filtered(alpha) * np.sqrt(self.eigenvalues)[:, None])
        return np.vstack([self.target_mean - self.mean @ W, W]) if self.bias else W

    def dual_coef(self, alpha: float) -> tuple[Array, Array]:
        """Return b and D of the predictions ``b + K_new D``, K_new the kernel of new and old rows.

        K_new must not be centred: with bias the columns of D sum to zero, which removes the mean of
        each row of K_new, and b includes the mean of the rows of K.
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
        """Return the derivative of each row's fit by its target, all copies together.

        The sum is the effective number of degrees of freedom, the bias included.
        """
        return np.asarray(self._t**2 + self.U**2 @ (1.0 - self._shares([alpha])[0]))

    def loo(self, alpha: float) -> Array:
        """Return the leave-one-out predictions: row i predicted by a fit to all other rows, m x q.

        Integer weights mean repeats, and one copy is left out: a weight above 1 is reduced by 1,
        and a row of weight 1 or less is left out as a whole.
        """
        return next(self.loo_path([alpha]))

    def loo_path(self, alphas: Sequence[float] | Array) -> Iterator[Array]:
        """Yield the leave-one-out predictions for each alpha."""
        ridge_factor.check_left_out(self.weight)
        shares = self._shares(alphas)
        remaining = self._complement[0] + shares @ (self.U**2).T
        divisors = ridge_factor.left_out_divisor(remaining, self.weight)[:, :, None]
        return (
            self.B - self._residual(share) / divisor
            for share, divisor in zip(shares, divisors, strict=True)
        )

    def kfold(self, alpha: float, splits: Iterable[ArrayLike]) -> list[Array]:
        """Return, for every split, the predictions for its rows by a fit to all other rows.

        Parameters
        ----------
        alpha : float
            The ridge.
        splits : iterable of array-like of int
            The numbers of the rows left out together, with all their copies; splits may overlap
            and need not cover all rows.

        Returns
        -------
        list of ndarray of shape (rows of the split, q)
        """
        return [predictions[0] for predictions in self.kfold_path([alpha], splits)]

    def kfold_path(
        self, alphas: Sequence[float] | Array, splits: Iterable[ArrayLike]
    ) -> Iterator[Array]:
        """Yield, for every split, the predictions of `kfold` for all alphas: alphas x rows x q."""
        shares = self._shares(alphas)
        for split in splits:
            rows = ridge_factor.checked_split(split, self.weight)
            errors = np.array(list(self._errors_without(rows, shares)))
            yield self.B[rows] - errors / self._root[rows]

    def _shares(self, alphas: Sequence[float] | Array) -> Array:
        """Return ``alpha / (lam + alpha)``, a row for each alpha."""
        ridges = np.array([check_non_negative("alpha", alpha) for alpha in alphas])[:, None]
        ridges = np.maximum(ridges, LEAST_RIDGE * self.eigenvalues.max(initial=0.0))
        return np.asarray(ridges / (self.eigenvalues + ridges))

    def _residual(self, share: Array, rows: Indices | slice = slice(None)) -> Array:
        """Return rows of G Y."""
        return np.asarray(self._complement[1][rows] + self.U[rows] @ (share[:, None] * self._Z))

    @property
    def _full(self) -> bool:
        """Whether N is zero."""
        return len(self.eigenvalues) + self.bias == len(self.B)

    @cached_property
    def _complement(self) -> tuple[Array, Array]:
        """The diagonal of N, and N Y."""
        if self._full:
            return np.zeros(len(self.B)), np.zeros_like(self.Y)
        rest = self.Y - self.U @ self._Z
        rest -= np.outer(self._t, self._t @ rest) + self.U @ (self.U.T @ rest)
        diagonal = 1.0 - self._t**2 - np.einsum("ij,ij->i", self.U, self.U)
        # Hardly more rows than [t, U] has columns, the number that the leverages sum to.
        rows = np.flatnonzero(diagonal < ridge_factor.LEAST_DIFFERENCE)
        N = self._complement_columns(rows, np.eye(len(rows)), self._span(rows))
        diagonal[rows] = np.einsum("ij,ij->j", N, N)
        rest[rows] = N.T @ rest
        rounding = rows[diagonal[rows] <= ROUNDING_LENGTH**2]
        diagonal[rounding], rest[rounding] = 0.0, 0.0
        return diagonal, rest

    def _span(self, rows: Indices) -> Array:
        """Return rows of [t, U]; without bias, of U."""
        return np.hstack([self._t[rows, None][:, : int(self.bias)], self.U[rows]])

    def _complement_columns(self, rows: Indices, P: Array, R: Array) -> Array:
        """Return N E P, where E are columns of the identity, and R is P'E'[t, U]."""
        t = int(self.bias)
        N = -(self.U @ R[:, t:].T)
        N -= self._t[:, None] * R[:, :t].sum(axis=1)
        N[rows] += P
        return N

    def _errors_without(self, rows: Indices, shares: Array) -> Iterator[Array]:
        """Yield ``G_SS^-1 (G Y)_S`` for rows S that are left out together, for each alpha.

        Outside the span of P, which has at most as many columns as [t, U], G_SS is the identity.
        """
        P, R, t = np.eye(len(rows)), self._span(rows), int(self.bias)
        if len(rows) > R.shape[1]:
            P, R = np.linalg.qr(R)
        complement = None
        for share in shares:
            residual = self._residual(share, rows)
            inside = P.T @ residual
            shrunk = np.hstack([R[:, :t], R[:, t:] * np.sqrt(1.0 - share)])
            solved = ridge_factor.solve_identity_minus(shrunk, inside)
            if solved is None:
                # Least squares on a factor F of P'G_SS P = F'F, which has rows of very different
                # sizes: those of N and, times the roots of the shares, those of U. In the singular
                # basis T of N the rows of U do not mix with the rounding of N.
                complement = complement or self._complement_basis(rows, P, R)
                sigma, T, z = complement
                root = np.sqrt(share)[:, None]
                Q, F = sorted_qr(np.vstack([np.diag(sigma), root * (R[:, t:].T @ T)]))
                solved = T @ algebra.solve_triangle(F, Q.T @ np.vstack([z, root * self._Z]))
            yield np.asarray(residual + P @ (solved - inside))

    def _complement_basis(self, rows: Indices, P: Array, R: Array) -> tuple[Array, Array, Array]:
        """Return sigma (0 for rounding), T and Q'N Y of the decomposition N E P = Q sigma T'."""
        if self._full:
            k = P.shape[1]
            return np.zeros(k), np.eye(k), np.zeros((k, self.Y.shape[1]))
        Q, sigma, Tt = np.linalg.svd(self._complement_columns(rows, P, R), full_matrices=False)
        sigma[sigma <= ROUNDING_LENGTH] = 0.0
        return sigma, Tt.T, Q.T @ self._complement[1]


def squared_error(B: Array, predictions: Array, weight: Array | None = None) -> float:
    """Return the squared distance between targets and predictions, averaged over all copies."""
    return float(np.average(np.sum((B - predictions) ** 2, axis=1), weights=weight))


def accuracy(codes: NDArray[np.integer], predictions: Array, weight: Array | None = None) -> float:
    """Return the share of all copies whose largest prediction is that of their class."""
    return float(np.average(np.argmax(predictions, axis=1) == codes, weights=weight))


def log_loss(
    codes: NDArray[np.integer],
    predictions: Array,
    temperature: float = 1.0,
    weight: Array | None = None,
    doubt: float = 0.0,
) -> float:
    """Return minus the logarithm of the probability of each row's class, averaged over all copies.

    Probabilities are the softmax of the predictions over the temperature, mixed with a share
    `doubt` of the uniform distribution over the classes.
    """
    logarithms = log_softmax(predictions / temperature, axis=1)
    if doubt:
        certain = np.log1p(-doubt) + logarithms
        logarithms = np.logaddexp(certain, np.log(doubt / predictions.shape[1]))
    return float(-np.average(logarithms[np.arange(len(codes)), codes], weights=weight))


def alphas(path: RidgePath, n: int = 37) -> Array:
    """Return n ridges from 1e-10 to 1e2 times the mean eigenvalue, on a logarithmic scale."""
    mean = path.eigenvalues.mean() if len(path.eigenvalues) else 1.0
    return np.asarray(mean * np.logspace(-10, 2, n))


def choose_alpha(path: RidgePath, candidates: Sequence[float] | Array | None = None) -> float:
    """Return the ridge with the least leave-one-out squared error, of `alphas` by default.

    Of equal errors, the largest ridge is taken.
    """
    ridges = np.sort(alphas(path) if candidates is None else np.asarray(candidates))[::-1]
    errors = [squared_error(path.B, loo, path.weight) for loo in path.loo_path(ridges)]
    return float(ridges[np.argmin(errors)])
