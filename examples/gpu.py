"""
On a GPU, or on any device that torch knows
===========================================

``device=`` sends rows to a device in blocks, copied while it computes; weights come back as NumPy
arrays, and the network is the one that this machine would have learned. Here the device is "cuda"
if there is one, and this machine's own processor in torch's hands if there is not.
"""

# %%
# Rows in host memory, work on the device
# ---------------------------------------
# Nothing else changes: same arrays in, same arrays out.

from importlib.util import find_spec

import matplotlib.pyplot as plt
import numpy as np

from karnet import KARClassifier

rng = np.random.default_rng(0)
X = rng.standard_normal((20_000, 20))
y = np.argmax(X[:, :5] + X[:, 5:10] ** 2, axis=1)


def network(device: str | None = None) -> KARClassifier:
    """Return the network that is learned, here or there."""
    return KARClassifier((200,), activation="tanh", hidden="random", random_state=0, device=device)


at_home = network().fit(X, y)
print(f"this machine: {at_home.score(X, y):.3f} of the rows right")
installed = find_spec("torch") is not None and find_spec("array_api_compat") is not None
if installed:
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    there = network(device).fit(X, y)
    difference = np.abs(there.coefs_[-1] - at_home.coefs_[-1]).max()
    print(f"device {device!r}: {there.score(X, y):.3f} right, weights differ by {difference:.0e}")
    figure, axes = plt.subplots(figsize=(4.0, 3.6), layout="constrained")
    axes.plot(at_home.coefs_[-1], there.coefs_[-1], ".", color="#2a7fc4", markersize=3)
    axes.set(title="output weights", xlabel="this machine", ylabel=f"device {device!r}")
    plt.show()
else:
    print("This page was built without torch; pip install 'karnet[gpu]' brings it.")

# %%
# Rows that are on the device already
# -----------------------------------
# Arrays of torch or CuPy are learned from where they are, with scikit-learn's switch for arrays of
# other libraries on and ``SCIPY_ARRAY_API=1`` set before SciPy is first imported:
#
# .. code-block:: python
#
#     import os
#
#     os.environ["SCIPY_ARRAY_API"] = "1"
#     import sklearn, torch
#
#     X, y = torch.asarray(X, device="cuda"), torch.asarray(y, device="cuda")
#     with sklearn.config_context(array_api_dispatch=True):
#         net = network().fit(X, y)
#         net.predict(X)  # a tensor, on the same device
