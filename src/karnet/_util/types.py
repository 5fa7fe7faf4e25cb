"""Types of arrays that many modules name."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
# Row numbers or codes of classes.
Indices = NDArray[np.intp]
AnyArray = NDArray[Any]
# One boolean per row.
Mask = NDArray[np.bool_]
