"""Families of least-squares problems, from easy to singular, with their exact solutions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import hilbert

from trust.exact import exact_solution, low_rank_solution
from trust.matrices import with_ones, with_spectrum
from trust.nist import DATASETS, Dataset

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Instance:
    """A least-squares problem, its exact rank, and its solution to 50 digits, rounded to doubles.

    With a bias, solution and rank refer to [1, A].
    """

    A: Array
    b: Array
    exact: Array
    rank: int
    bias: bool = False

    @property
    def matrix(self) -> Array:
        """The matrix in double precision, including the column of ones."""
        A = self.A.astype(np.float64)
        return with_ones(A) if self.bias else A


Draw = Callable[[np.random.Generator], Array]
Family = Callable[[int], Instance]
SHAPES = {"tall": (30, 10), "wide": (10, 30), "square": (12, 12)}
CONDITIONS = [1e0, 1e2, 1e4, 1e5, 1e6, 1e8, 1e10, 1e12, 1e14, 1e15, 1e16]


def full_rank(draw: Draw) -> Family:
    """Return the family of a matrix that is drawn for each seed."""

    def instance(seed: int) -> Instance:
        rng = np.random.default_rng(seed)
        A = draw(rng)
        b = _right_hand_side(rng, A.astype(np.float64), seed)
        return Instance(A, b, exact_solution(A, b), min(A.shape))

    return instance


def _right_hand_side(rng: np.random.Generator, A: Array, seed: int) -> Array:
    """Return a right-hand side in the range of A for even seeds, else with a large residual."""
    return rng.standard_normal(len(A)) if seed % 2 else A @ rng.standard_normal(A.shape[1])


def graded(condition: float, m: int, n: int) -> Draw:
    """Return a draw whose singular values are evenly spaced in logarithm."""
    values = np.logspace(0, -np.log10(condition), min(m, n))
    return lambda rng: with_spectrum(rng, m, n, values)


def scaled_columns(draw: Draw) -> Draw:
    """Return the draw with columns scaled by factors from 1e-8 to 1e8."""

    def scaled(rng: np.random.Generator) -> Array:
        A = draw(rng)
        return A * 10.0 ** rng.uniform(-8, 8, A.shape[1])

    return scaled


def scaled_rows(draw: Draw) -> Family:
    """Return the draw with rows and right-hand sides scaled by factors from 1e-8 to 1e8."""

    def instance(seed: int) -> Instance:
        rng = np.random.default_rng(seed)
        A = draw(rng)
        b = _right_hand_side(rng, A, seed)
        roots = 10.0 ** rng.uniform(-8, 8, len(A))
        A, b = A * roots[:, None], b * roots
        return Instance(A, b, exact_solution(A, b), min(A.shape))

    return instance


def with_bias(draw: Draw, offset: float) -> Family:
    """Return the draw with a bias and with an offset added to all columns."""

    def instance(seed: int) -> Instance:
        rng = np.random.default_rng(seed)
        A = draw(rng) + offset
        matrix = with_ones(A)
        b = _right_hand_side(rng, matrix, seed)
        return Instance(A, b, exact_solution(matrix, b), min(matrix.shape), True)

    return instance


def shuffled(A: Array) -> Draw:
    """Return a matrix with rows and columns in random order, so that its rounding varies."""
    return lambda rng: A[rng.permutation(len(A))][:, rng.permutation(A.shape[1])]


def stored_in_single(draw: Draw) -> Draw:
    """Return the draw rounded to float32."""
    return lambda rng: draw(rng).astype(np.float32)


def low_rank(shape: tuple[int, int], rank: int, bits: int = 0, units: int = 0) -> Family:
    """Return products ``U V`` of integer matrices, whose rank and solution are known exactly.

    Columns of U are multiplied with powers of 2 down to ``2^-bits``, so that singular values differ
    by about that much, and columns of V with powers between ``2^-units`` and ``2^units``.
    """
    m, n = shape

    def instance(seed: int) -> Instance:
        rng = np.random.default_rng(seed)
        U, V = (rng.integers(-8, 9, size).astype(np.float64) for size in ((m, rank), (rank, n)))
        U *= 2.0 ** -np.round(np.linspace(0, bits, rank))
        V *= 2.0 ** rng.integers(-units, units + 1, n)
        A = U @ V  # of at most 53 bits, so exact
        b = A @ rng.standard_normal(n)
        # A right-hand side nearly orthogonal to all columns would dominate the error.
        b += seed % 2 * np.linalg.norm(b) * rng.standard_normal(m) / np.sqrt(m)
        return Instance(A, b, low_rank_solution(U, V, b), rank)

    return instance


def large(draw: Draw) -> Family:
    """Return problems with many rows, whose solution is known without computing it.

    Entries are multiples of a power of 2 and weights are integers, so ``b = A w`` is exact. Every
    row occurs twice. For odd seeds, d is added to b in one of them, and subtracted in the other.
    That change of b is orthogonal to all columns, so w is still the solution.
    """

    def instance(seed: int) -> Instance:
        rng = np.random.default_rng(seed)
        A = draw(rng)
        w = np.round(rng.standard_normal(A.shape[1]) * 8)
        d = np.round(rng.standard_normal(len(A)) * 2.0**10) / 2.0**10 * (seed % 2)
        b = np.concatenate([A @ w + d, A @ w - d])
        return Instance(np.vstack([A, A]), b, w, A.shape[1])

    return instance


def rounded(draw: Draw, bits: int = 40) -> Draw:
    """Return the draw, rounded to multiples of ``2^-bits``."""
    return lambda rng: np.round(draw(rng) * 2.0**bits) / 2.0**bits


def graded_rows(m: int, n: int) -> Draw:
    """Return a draw whose rows have lengths from 1e-8 to 1e8."""
    draw = rounded(graded(1e0, m, n), 20)
    return lambda rng: draw(rng) * 2.0 ** np.round(rng.uniform(-26, 26, (m, 1)))


def spikes(m: int, n: int) -> Draw:
    """Return a draw of small numbers, with one large number in every column."""

    def draw(rng: np.random.Generator) -> Array:
        A = np.round(rng.standard_normal((m, n)) * 2.0**20) / 2.0**40
        A[rng.choice(m, n, replace=False), np.arange(n)] += 2.0 ** np.round(rng.uniform(0, 20, n))
        return A

    return draw


def periodic(m: int, n: int) -> Draw:
    """Return a draw in which the same rows come again and again."""
    draw = rounded(graded(1e6, 2 * n, n))
    return lambda rng: np.resize(draw(rng), (m, n))


def over_zeros(m: int, n: int) -> Draw:
    """Return the identity above rows of zeros."""
    return lambda _: np.eye(m, n)


def disturbed(dataset: Dataset) -> Family:
    """Return a data set of NIST in random order, with 1 % noise on y."""

    def instance(seed: int) -> Instance:
        rng = np.random.default_rng(seed)
        rows = rng.permutation(len(dataset.b))
        A, y = dataset.A[rows][:, rng.permutation(dataset.A.shape[1])], dataset.b[rows]
        b = y * (1.0 + 0.01 * rng.standard_normal(len(y)))
        matrix = with_ones(A) if dataset.bias else A
        return Instance(A, b, exact_solution(matrix, b), matrix.shape[1], dataset.bias)

    return instance


def laeuchli(epsilon: float, n: int = 6) -> Array:
    """Return a row of ones above epsilon times the identity; epsilon is lost in ``A'A``."""
    return np.vstack([np.ones(n), epsilon * np.eye(n)])


def kahan(n: int, angle: float) -> Array:
    """Return Kahan's triangle, whose small singular value is not visible in a pivoted QR."""
    s, c = np.sin(angle), np.cos(angle)
    return s ** np.arange(n)[:, None] * (np.eye(n) - c * np.triu(np.ones((n, n)), 1))


def golub_klema_stewart(n: int) -> Array:
    """Return the triangle of Golub, Klema and Stewart: singular to ``2^-n``, no small entry."""
    return (np.eye(n) - np.triu(np.ones((n, n)), 1)) / np.sqrt(np.arange(1, n + 1))


def hilbert_section(m: int, n: int) -> Array:
    """Return the first m rows and n columns of Hilbert's matrix."""
    return 1.0 / (np.arange(m)[:, None] + np.arange(n) + 1.0)


def vandermonde(m: int, n: int) -> Array:
    """Return the powers below n of m points between 0 and 1."""
    return np.vander(np.linspace(0, 1, m), n)


def _famous() -> dict[str, Array]:
    tall = {f"Vandermonde 25 x {n}": vandermonde(25, n) for n in (4, 8, 12)}
    tall |= {f"Hilbert {n + 10} x {n}": hilbert_section(n + 10, n) for n in (5, 8, 10)}
    tall |= {f"Laeuchli {e:.0e}": laeuchli(e) for e in (1e-3, 1e-5, 1e-7, 1e-9, 1e-12)}
    return (
        {f"Hilbert {n}": hilbert(n) for n in range(2, 16)}
        | {f"Vandermonde {n}": vandermonde(n, n) for n in (6, 10)}
        | tall
        | {f"{name}, transposed": A.T for name, A in tall.items()}
        | {f"Kahan {n}, angle {t}": kahan(n, t) for n, t in ((15, 1.2), (30, 1.2), (12, 0.5))}
        | {f"Golub-Klema-Stewart {n}": golub_klema_stewart(n) for n in (10, 20, 30, 40)}
    )


def _families() -> dict[str, Family]:
    families: dict[str, Family] = {}
    for name, shape in SHAPES.items():
        for c in CONDITIONS:
            families[f"{name}, condition {c:.0e}"] = full_rank(graded(c, *shape))
        for c in CONDITIONS[:6]:
            draw = graded(c, *shape)
            families[f"{name}, columns scaled, {c:.0e}"] = full_rank(scaled_columns(draw))
            families[f"{name}, rows scaled, {c:.0e}"] = scaled_rows(draw)
        for offset in (0.0, 1e3, 1e6):
            draw = graded(1e3, *shape)
            families[f"{name}, bias, offset {offset:.0e}"] = with_bias(draw, offset)
        for c in (1e0, 1e3, 1e6, 1e9):
            draw = stored_in_single(graded(c, *shape))
            families[f"{name}, float32, {c:.0e}"] = full_rank(draw)
        for rank in (1, 4, 8):
            families[f"{name}, rank {rank}"] = low_rank(shape, rank)
        families[f"{name}, rank 6, graded"] = low_rank(shape, 6, bits=26)
        families[f"{name}, rank 6, columns scaled"] = low_rank(shape, 6, units=26)
    families |= {name: full_rank(shuffled(A)) for name, A in _famous().items()}
    families |= {f"{each.name}, disturbed": disturbed(each) for each in DATASETS[:7]}
    half = 1500, 120
    families |= {
        f"3000 x 120, {c:.0e}": large(rounded(graded(c, *half))) for c in (1e0, 1e2, 1e5, 1e6, 1e9)
    }
    families |= {
        "3000 x 120, rows graded": large(graded_rows(*half)),
        "3000 x 120, spikes": large(spikes(*half)),
        "3000 x 120, periodic rows": large(periodic(*half)),
        "3000 x 120, identity over zeros": large(over_zeros(*half)),
    }
    return families


FAMILIES = _families()
