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
N_PROBLEMS, PER_LAYER = 60.0, 1.5
# Shares of the time for the search if it sees all rows, and if layers are learned afterwards.
WHOLE, SAMPLE = 0.8, 0.35
# Fewest rows of a search, and units of a layer.
FEWEST = 50


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

    def units(self, m: int, most: int, n_members: int) -> int:
        """Return how many units each of some layers may have that are learned from m rows."""
        if np.isinf(self.seconds):
            return most
        cost = max(self.left(), 0.0) / (PER_LAYER * self._seconds_per_cube * n_members)
        # Largest h with m h^2 + h^3 <= cost, from below.
        h = np.sqrt(cost / m)
        h = np.sqrt(cost / (m + h))
        return int(np.clip(h, min(FEWEST, most), most))
