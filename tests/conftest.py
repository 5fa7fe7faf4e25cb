"""What must be set before SciPy is imported."""

from __future__ import annotations

import os

# scikit-learn computes with arrays of other libraries only if SciPy was told that it may.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
