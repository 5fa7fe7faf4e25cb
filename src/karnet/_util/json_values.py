"""Values as JSON has them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def json_value(value: Any) -> Any:
    """Return a value with JSON's types only; NaN and infinite numbers become null."""
    if isinstance(value, dict):
        return {str(key): json_value(each) for key, each in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [json_value(each) for each in value]
    if isinstance(value, np.generic):
        return json_value(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)
