"""NIST's statistical reference data sets (StRD) for linear regression, with certified values.

The data are stored as text, because the certified values belong to the decimal numbers and not to
the nearest doubles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext

import mpmath
import numpy as np
from numpy.typing import NDArray

from trust.exact import DIGITS, solve_positive

Array = NDArray[np.float64]
# Digits of decimal arithmetic: more than any product of powers has.
DECIMALS = 400


@dataclass(frozen=True)
class Dataset:
    """Columns of A without the column of ones, y, and the certified coefficients, bias first."""

    name: str
    columns: tuple[tuple[Decimal, ...], ...]
    y: tuple[Decimal, ...]
    certified: tuple[str, ...]

    @property
    def bias(self) -> bool:
        """Whether the model has a constant."""
        return len(self.certified) > len(self.columns)

    @property
    def A(self) -> Array:
        """The matrix without the column of ones, with each entry rounded once."""
        return np.array(self.columns, dtype=np.float64).T

    @property
    def b(self) -> Array:
        """The right-hand side, rounded."""
        return np.array(self.y, dtype=np.float64)

    @property
    def coef(self) -> Array:
        """The certified coefficients, rounded."""
        return np.array([float(value) for value in self.certified])

    def solution(self) -> list[mpmath.mpf]:
        """Return the solution for the decimal numbers, to at least 50 digits."""
        ones = (Decimal(1),) * len(self.y)
        columns = (ones, *self.columns) if self.bias else self.columns
        with localcontext(prec=DECIMALS), mpmath.workdps(DIGITS):
            products = [[_product(a, c) for c in (*columns, self.y)] for a in columns]
            K = np.array([[mpmath.mpf(str(value)) for value in row] for row in products])
            return list(solve_positive(K[:, :-1], K[:, -1]))


def _product(a: Sequence[Decimal], b: Sequence[Decimal]) -> Decimal:
    return sum((s * t for s, t in zip(a, b, strict=True)), Decimal(0))


def _powers(x: Sequence[Decimal], degree: int) -> tuple[tuple[Decimal, ...], ...]:
    with localcontext(prec=DECIMALS):
        return tuple(tuple(value**k for value in x) for k in range(1, degree + 1))


def _from_text(name: str, degree: int, text: str, certified: str) -> Dataset:
    """Return the data set of a polynomial in x from a text of pairs y x."""
    numbers = [Decimal(word) for word in text.split()]
    return Dataset(
        name, _powers(numbers[1::2], degree), tuple(numbers[::2]), tuple(certified.split())
    )


def _wampler(name: str, f: Callable[[Decimal, Decimal], Decimal], certified: str) -> Dataset:
    """Return one of Wampler's polynomials of degree 5, f(x, disturbance) at 0 ... 20."""
    x = [Decimal(k) for k in range(21)]
    y = tuple(f(value, Decimal(d)) for value, d in zip(x, DISTURBANCE, strict=True))
    return Dataset(name, _powers(x, 5), y, tuple(certified.split()))


def _sum_of_powers(x: Decimal) -> Decimal:
    return sum((x**k for k in range(1, 6)), Decimal(1))


# Added to y in the third to fifth set; orthogonal to all powers up to the fifth.
DISTURBANCE = (759, -2048, 2048, -2048, 2523, -2048, 2048, -2048, 1838, -2048, 2048)
DISTURBANCE = (*DISTURBANCE, *DISTURBANCE[9::-1])

# J. Norris, NIST: calibration of ozone monitors.
NORRIS = """
    0.1 0.2  338.8 337.4  118.1 118.2  888.0 884.6  9.2 10.1  228.1 226.5
    668.5 666.3  998.5 996.3  449.1 448.6  778.9 777.0  559.2 558.2  0.3 0.4
    0.1 0.6  778.1 775.5  668.8 666.9  339.3 338.0  448.9 447.5  10.8 11.6
    557.7 556.0  228.3 228.1  998.0 995.8  888.8 887.6  119.6 120.2  0.3 0.3
    0.6 0.3  557.6 556.8  339.3 339.1  888.0 887.2  998.5 999.0  778.9 779.0
    10.2 11.1  117.6 118.3  228.9 229.2  668.4 669.1  449.2 448.9  0.2 0.5
"""
# P. Pontius, NIST: calibration of load cells.
PONTIUS = """
    .11019 150000  .21956 300000  .32949 450000  .43899 600000  .54803 750000
    .65694 900000  .76562 1050000  .87487 1200000  .98292 1350000  1.09146 1500000
    1.20001 1650000  1.30822 1800000  1.41599 1950000  1.52399 2100000  1.63194 2250000
    1.73947 2400000  1.84646 2550000  1.95392 2700000  2.06128 2850000  2.16844 3000000
    .11052 150000  .22018 300000  .32939 450000  .43886 600000  .54798 750000
    .65739 900000  .76596 1050000  .87474 1200000  .98300 1350000  1.09150 1500000
    1.20004 1650000  1.30818 1800000  1.41613 1950000  1.52408 2100000  1.63159 2250000
    1.73965 2400000  1.84696 2550000  1.95445 2700000  2.06177 2850000  2.16829 3000000
"""
# A. Filippelli, NIST: a polynomial of degree 10.
FILIP = """
    0.8116 -6.860120914  0.9072 -4.324130045  0.9052 -4.358625055  0.9039 -4.358426747
    0.8053 -6.955852379  0.8377 -6.661145254  0.8667 -6.355462942  0.8809 -6.118102026
    0.7975 -7.115148017  0.8162 -6.815308569  0.8515 -6.519993057  0.8766 -6.204119983
    0.8885 -5.853871964  0.8859 -6.109523091  0.8959 -5.79832982  0.8913 -5.482672118
    0.8959 -5.171791386  0.8971 -4.851705903  0.9021 -4.517126416  0.909 -4.143573228
    0.9139 -3.709075441  0.9199 -3.499489089  0.8692 -6.300769497  0.8872 -5.953504836
    0.89 -5.642065153  0.891 -5.031376979  0.8977 -4.680685696  0.9035 -4.329846955
    0.9078 -3.928486195  0.7675 -8.56735134  0.7705 -8.363211311  0.7713 -8.107682739
    0.7736 -7.823908741  0.7775 -7.522878745  0.7841 -7.218819279  0.7971 -6.920818754
    0.8329 -6.628932138  0.8641 -6.323946875  0.8804 -5.991399828  0.7668 -8.781464495
    0.7633 -8.663140179  0.7678 -8.473531488  0.7697 -8.247337057  0.77 -7.971428747
    0.7749 -7.676129393  0.7796 -7.352812702  0.7897 -7.072065318  0.8131 -6.774174009
    0.8498 -6.478861916  0.8741 -6.159517513  0.8061 -6.835647144  0.846 -6.53165267
    0.8751 -6.224098421  0.8856 -5.910094889  0.8919 -5.598599459  0.8934 -5.290645224
    0.894 -4.974284616  0.8957 -4.64454848  0.9047 -4.290560426  0.9129 -3.885055584
    0.9209 -3.408378962  0.9219 -3.13200249  0.7739 -8.726767166  0.7681 -8.66695597
    0.7665 -8.511026475  0.7703 -8.165388579  0.7702 -7.886056648  0.7761 -7.588043762
    0.7809 -7.283412422  0.7961 -6.995678626  0.8253 -6.691862621  0.8602 -6.392544977
    0.8809 -6.067374056  0.8301 -6.684029655  0.8664 -6.378719832  0.8834 -6.065855188
    0.8898 -5.752272167  0.8964 -5.132414673  0.8963 -4.811352704  0.9074 -4.098269308
    0.9119 -3.66174277  0.9228 -3.2644011
"""
# J. W. Longley (1967): employed; price deflator, gross national product, unemployed, armed forces,
# population, year.
LONGLEY = """
    60323  83.0  234289  2356  1590  107608  1947
    61122  88.5  259426  2325  1456  108632  1948
    60171  88.2  258054  3682  1616  109773  1949
    61187  89.5  284599  3351  1650  110929  1950
    63221  96.2  328975  2099  3099  112075  1951
    63639  98.1  346999  1932  3594  113270  1952
    64989  99.0  365385  1870  3547  115094  1953
    63761  100.0  363112  3578  3350  116219  1954
    66019  101.2  397469  2904  3048  117388  1955
    67857  104.6  419180  2822  2857  118734  1956
    68169  108.4  442769  2936  2798  120445  1957
    66513  110.8  444546  4681  2637  121950  1958
    68655  112.6  482704  3813  2552  123366  1959
    69564  114.2  502601  3931  2514  125368  1960
    69331  115.7  518173  4806  2572  127852  1961
    70551  116.9  554894  4007  2827  130081  1962
"""


def _longley() -> Dataset:
    numbers = [Decimal(word) for word in LONGLEY.split()]
    y, *columns = (tuple(numbers[k::7]) for k in range(7))
    certified = (
        "-3482258.63459582",
        "15.0618722713733",
        "-0.358191792925910E-01",
        "-2.02022980381683",
        "-1.03322686717359",
        "-0.511041056535807E-01",
        "1829.15146461355",
    )
    return Dataset("Longley", tuple(columns), y, certified)


SIX_ONES = "1.00000000000000 " * 6
DATASETS = (
    _from_text("Norris", 1, NORRIS, "-0.262323073774029 1.00211681802045"),
    _from_text(
        "Pontius",
        2,
        PONTIUS,
        "0.673565789473684E-03 0.732059160401003E-06 -0.316081871345029E-14",
    ),
    # K. Eberhardt, NIST: lines through the origin.
    _from_text("NoInt1", 1, " ".join(f"{x + 70}  {x}" for x in range(60, 71)), "2.07438016528926"),
    _from_text("NoInt2", 1, "3 4  4 5  4 6", "0.727272727272727"),
    _from_text(
        "Filip",
        10,
        FILIP,
        """-1467.48961422980 -2772.17959193342 -2316.37108160893 -1127.97394098372
        -354.478233703349 -75.1242017393757 -10.8753180355343 -1.06221498588947
        -0.670191154593408E-01 -0.246781078275479E-02 -0.402962525080404E-04""",
    ),
    _longley(),
    # R. H. Wampler (1970): polynomials of degree 5 at 0 ... 20.
    _wampler("Wampler1", lambda x, _: _sum_of_powers(x), SIX_ONES),
    _wampler(
        "Wampler2",
        lambda x, _: _sum_of_powers(x / 10),
        """1.00000000000000 0.100000000000000 0.100000000000000E-01 0.100000000000000E-02
        0.100000000000000E-03 0.100000000000000E-04""",
    ),
    _wampler("Wampler3", lambda x, d: _sum_of_powers(x) + d, SIX_ONES),
    _wampler("Wampler4", lambda x, d: _sum_of_powers(x) + 100 * d, SIX_ONES),
    _wampler("Wampler5", lambda x, d: _sum_of_powers(x) + 10_000 * d, SIX_ONES),
)
