"""Forward and backward errors, and ranks, of karnet's solvers beside LAPACK's drivers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgWarning
from scipy.linalg import lstsq as lapack_lstsq

from karnet import lstsq
from karnet._lstsq import SOLVERS

from ..reference import EPS
from .families import Family, Instance

Array = NDArray[np.float64]
OURS = ("auto", *SOLVERS)
DRIVERS = ("gelsd", "gelsy", "gelss")
# The bars: digits behind the best driver, and backward errors in n eps.
BEHIND, BACKWARD = 0.5, 10.0
# No singular value this near to the cut-off, as a factor: there is a gap.
GAP = 10.0
