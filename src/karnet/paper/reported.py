"""Numbers that the paper reports, for comparison with the results here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

# Mean accuracy over the sets 1 to 39, in per cent; keys are those of `METHODS`.
REPORTED_ACCURACY: Mapping[str, float] = MappingProxyType(
    {"karnet": 79.39, "karnet, baseline's width": 80.03, "levenberg-marquardt": 66.99}
)
# Mean training time over the sets 1 to 39, in seconds.
REPORTED_CPU: Mapping[str, float] = MappingProxyType(
    {"karnet": 0.0211, "karnet, baseline's width": 0.8003, "levenberg-marquardt": 180.37}
)
# Outputs for the targets 0 0 1 1 and seconds of training, by number of layers and method.
REPORTED_XOR: Mapping[tuple[int, str], tuple[tuple[float, ...], float]] = MappingProxyType(
    {
        (2, "karnet"): ((0.0, 0.0, 1.0, 1.0), 0.0625),
        (2, "levenberg-marquardt"): ((-0.0758, 0.0665, 0.4302, 1.0988), 1.0781),
        (5, "karnet"): ((0.0, 0.0, 1.0, 1.0), 0.125),
        (5, "levenberg-marquardt"): ((-0.1527, 0.0331, -0.2331, 0.0296), 1.0938),
    }
)
