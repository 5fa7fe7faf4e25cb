"""What can be afforded in a given time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from time import perf_counter

import numpy as np

__all__ = ["Budget"]

# The side of the matrix whose eigenvalues are timed, in units of whose cube costs are counted.
TIMED = 200
# Eigenvalue problems of a search; and the cost of a layer of h units and m rows, over m h^2 + h^3.
N_PROBLEMS, PER_LAYER = 60.0, 1.8
# Seconds that a distance takes for each input, in all passes over the rows.
PER_DISTANCE = 4e-9
# Shares of the time for the search if it sees all rows, and if layers are learned afterwards.
WHOLE, SAMPLE = 0.8, 0.3
# Fewest rows of a search, and units of a layer.
FEWEST = 20


@dataclass(frozen=True)
class Budget:
    """A time to be back in, and what fits into it.

    Attributes
    ----------
    seconds : float
        From `start` on; infinite if there is no hurry.
    start : float
        When the time began to run.
    """

    seconds: float
    start: float

    def left(self) -> float:
        """Return the seconds left."""
        return self.start + self.seconds - perf_counter()

    def searches(self, whole: bool) -> bool:
        """Return whether another step of the search may be begun."""
        spent = perf_counter() - self.start
        return spent < (WHOLE if whole else SAMPLE) * self.seconds

    @cached_property
    def _seconds_per_cube(self) -> float:
        """The time of an eigenvalue problem over the cube of its side, at least."""
        A = np.random.RandomState(0).standard_normal((TIMED, TIMED))
        A += A.T
        times = []
        for _ in range(3):
            before = perf_counter()
            np.linalg.eigh(A)
            times.append(perf_counter() - before)
        return min(times) / TIMED**3

    def rows_to_search(self, most: int) -> int:
        """Return how many rows a search may see."""
        if np.isinf(self.seconds):
            return most
        cube = SAMPLE * self.seconds / (N_PROBLEMS * self._seconds_per_cube)
        return int(np.clip(np.cbrt(cube), min(FEWEST, most), most))

    def units(self, shape: tuple[int, ...], most: int, n_members: int) -> int:
        """Return how many units each of some layers may have that are learned from a table."""
        if np.isinf(self.seconds):
            return most
        (m, d), left = shape, max(self.left(), 0.0) / n_members
        # Seconds of products, which grow as m h^2 (and h^3, for h below m), and of distances.
        square = PER_LAYER * self._seconds_per_cube * (m + np.sqrt(m))
        linear = PER_DISTANCE * m * d
        h = (np.sqrt(linear**2 + 4.0 * square * left) - linear) / (2.0 * square)
        return int(np.clip(h, min(FEWEST, most), most))
