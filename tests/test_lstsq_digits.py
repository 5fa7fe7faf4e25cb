"""How many digits of a least-squares solution are right, beside LAPACK's gelsd."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import hilbert
from scipy.linalg import lstsq as lapack_lstsq

from karnet import lstsq
from karnet._lstsq import SOLVERS

from .reference import EPS, backward_error, exact_solution, forward_error, with_ones, with_spectrum

pytestmark = pytest.mark.filterwarnings("ignore::scipy.linalg.LinAlgWarning")

N_SEEDS = 30


def graded(condition, m=30, n=10):
    values = np.logspace(0, -np.log10(condition), min(m, n))
    return lambda rng: with_spectrum(rng, m, n, values)


def badly_scaled(condition):
    return lambda rng: graded(condition)(rng) * 10.0 ** rng.uniform(-8, 8, 10)


def shuffled(A):
    """Vary the roundings of one famous matrix: its rows and columns in random order."""
    return lambda rng: A[rng.permutation(len(A))][:, rng.permutation(A.shape[1])]


def laeuchli(epsilon):
    return shuffled(np.vstack([np.ones(6), epsilon * np.eye(6)]))


def vandermonde(n):
    return shuffled(np.vander(np.linspace(0, 1, 25), n))


CONDITIONS = [1e0, 1e2, 1e4, 1e5, 1e6, 1e8, 1e10, 1e12, 1e14]
FAMILIES = (
    {f"tall {c:.0e}": graded(c) for c in CONDITIONS}
    | {f"wide {c:.0e}": graded(c, 10, 30) for c in CONDITIONS}
    | {f"badly scaled {c:.0e}": badly_scaled(c) for c in CONDITIONS[:6]}
    | {f"Hilbert {n}": shuffled(hilbert(n)) for n in (3, 5, 8, 10, 11)}
    | {f"Vandermonde {n}": vandermonde(n) for n in (4, 8, 12)}
    | {f"Laeuchli {e:.0e}": laeuchli(e) for e in (1e-3, 1e-5, 1e-7, 1e-9)}
)


@pytest.mark.parametrize("family", FAMILIES)
def test_forward_error_as_gelsd_and_backward_error_of_every_instance(family):
    errors: dict[str, list[float]] = {solver: [] for solver in ("gelsd", "auto", *SOLVERS)}
    for seed in range(N_SEEDS):
        rng = np.random.default_rng(seed)
        A = FAMILIES[family](rng)
        m, n = A.shape
        # Half of the right-hand sides can be fitted, half leave a large residual.
        b = rng.standard_normal(m) if seed % 2 else A @ rng.standard_normal(n)
        exact = exact_solution(A, b)
        errors["gelsd"].append(forward_error(lapack_lstsq(A, b, lapack_driver="gelsd")[0], exact))
        for solver in ("auto", *SOLVERS):
            solution = lstsq(A, b, solver=solver)
            errors[solver].append(forward_error(solution.coef, exact))
            assert backward_error(A, b, solution.coef) <= 10 * n * EPS
            assert solution.rank == min(m, n)
    medians = {solver: np.median(values) for solver, values in errors.items()}
    assert all(medians[solver] <= medians["gelsd"] + 0.5 for solver in medians), medians


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("shape", [(40, 12), (12, 40), (20, 20)])
def test_rank_is_right_wherever_there_is_a_gap(shape, bias, solver):
    for seed in range(N_SEEDS):
        rng = np.random.default_rng(seed)
        rank = int(rng.integers(1, 12))
        # From the largest singular value to the smallest a factor of 1e8; then rounding, 1e-16.
        A = with_spectrum(rng, *shape, 10.0 ** -rng.uniform(0, 8, rank))
        A *= 10.0 ** rng.uniform(-6, 6, shape[1])
        assert lstsq(A, np.ones(shape[0]), bias=bias, solver=solver).rank == rank + bias


# J. W. Longley (1967): price deflator, gross national product, unemployed, armed forces,
# population, year; employed. Certified coefficients: NIST's statistical reference data sets.
LONGLEY = np.array(
    [
        [83.0, 234289, 2356, 1590, 107608, 1947, 60323],
        [88.5, 259426, 2325, 1456, 108632, 1948, 61122],
        [88.2, 258054, 3682, 1616, 109773, 1949, 60171],
        [89.5, 284599, 3351, 1650, 110929, 1950, 61187],
        [96.2, 328975, 2099, 3099, 112075, 1951, 63221],
        [98.1, 346999, 1932, 3594, 113270, 1952, 63639],
        [99.0, 365385, 1870, 3547, 115094, 1953, 64989],
        [100.0, 363112, 3578, 3350, 116219, 1954, 63761],
        [101.2, 397469, 2904, 3048, 117388, 1955, 66019],
        [104.6, 419180, 2822, 2857, 118734, 1956, 67857],
        [108.4, 442769, 2936, 2798, 120445, 1957, 68169],
        [110.8, 444546, 4681, 2637, 121950, 1958, 66513],
        [112.6, 482704, 3813, 2552, 123366, 1959, 68655],
        [114.2, 502601, 3931, 2514, 125368, 1960, 69564],
        [115.7, 518173, 4806, 2572, 127852, 1961, 69331],
        [116.9, 554894, 4007, 2827, 130081, 1962, 70551],
    ]
)
LONGLEY_CERTIFIED = np.array(
    [
        -3482258.63459582,
        15.0618722713733,
        -0.358191792925910e-01,
        -2.02022980381683,
        -1.03322686717359,
        -0.511041056535807e-01,
        1829.15146461355,
    ]
)


@pytest.mark.parametrize("solver", ["auto", *SOLVERS])
def test_longley(solver):
    A, y = LONGLEY[:, :-1], LONGLEY[:, -1]
    ones = with_ones(A)
    np.testing.assert_allclose(
        lstsq(A, y, bias=True, solver=solver).coef, LONGLEY_CERTIFIED, rtol=1e-10
    )
    np.testing.assert_allclose(exact_solution(ones, y), LONGLEY_CERTIFIED, rtol=1e-13)
    ours, gelsd = [], []
    for seed in range(N_SEEDS):
        b = y * (1.0 + 0.01 * np.random.default_rng(seed).standard_normal(len(y)))
        exact = exact_solution(ones, b)
        solution = lstsq(A, b, bias=True, solver=solver)
        assert backward_error(ones, b, solution.coef) <= 10 * 7 * EPS
        ours.append(forward_error(solution.coef, exact))
        gelsd.append(forward_error(lapack_lstsq(ones, b, lapack_driver="gelsd")[0], exact))
    assert np.median(ours) <= np.median(gelsd) + 0.5


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("condition", [1e2, 1e5, 1e6, 1e9])
def test_large_problems_keep_their_digits_in_blocks(monkeypatch, condition, bias):
    monkeypatch.setattr("karnet._rows.BLOCK_SIZE", 2**14)
    ours, gelsd = [], []
    for seed in range(N_SEEDS):
        rng = np.random.default_rng(seed)
        A = with_spectrum(rng, 1200, 40, np.logspace(0, -np.log10(condition), 40))
        w = rng.standard_normal(40)
        # Entries that are multiples of 2^-40 and whole weights make A w exact.
        A, w = np.round(A * 2.0**40) / 2.0**40, np.round(w * 8)
        b = A @ w + bias
        exact = np.concatenate([[1.0], w]) if bias else w
        solution = lstsq(A, b, bias=bias, solver="cholesky")
        ours.append(forward_error(solution.coef, exact))
        M = with_ones(A) if bias else A
        assert np.linalg.norm(b - M @ solution.coef) <= 10 * 40 * EPS * np.linalg.norm(
            M
        ) * np.linalg.norm(solution.coef)
        gelsd.append(forward_error(lapack_lstsq(M, b, lapack_driver="gelsd")[0], exact))
    assert np.median(ours) <= np.median(gelsd) + 0.5


@pytest.mark.parametrize(("m", "n"), [(3000, 2), (20_000, 6)])
@pytest.mark.parametrize("bias", [False, True])
def test_normal_equations_are_given_up_before_they_lose_digits(m, n, bias):
    """Nearly parallel columns: the condition estimate alone would still trust the Gram matrix."""
    ours, gelsd = [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        common = 1.0 + 0.1 * rng.standard_normal((m, 1))
        # Multiples of 2^-40 and whole weights make the right-hand side exact.
        A = np.round((common + rng.standard_normal((m, n)) / 6e5) * 2.0**40) / 2.0**40
        w = np.arange(1.0, n + 1)
        b = A @ w + bias
        exact = np.concatenate([[1.0], w]) if bias else w
        ours.append(forward_error(lstsq(A, b, bias=bias, solver="cholesky").coef, exact))
        M = with_ones(A) if bias else A
        gelsd.append(forward_error(lapack_lstsq(M, b, lapack_driver="gelsd")[0], exact))
    assert np.median(ours) <= np.median(gelsd) + 0.5
