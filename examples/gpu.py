"""
Fitting on a GPU or another torch device
========================================

With ``device=``, karnet copies the rows to a device in blocks while the device computes. The
weights come back as NumPy arrays, and the network is the same as on the CPU up to rounding. This
example uses a GPU ("cuda") if there is one, and torch on the CPU otherwise.
"""

# %%
# Rows in host memory
# -------------------
# Only the parameter changes: inputs and predictions are NumPy arrays as before.

from importlib.util import find_spec

import matplotlib.pyplot as plt
import numpy as np

from karnet import KARClassifier

rng = np.random.default_rng(0)
X = rng.standard_normal((20_000, 20))
y = np.argmax(X[:, :5] + X[:, 5:10] ** 2, axis=1)


def network(device: str | None = None) -> KARClassifier:
    """Return the network, for the CPU or for a device."""
    return KARClassifier((200,), activation="tanh", hidden="random", random_state=0, device=device)


on_cpu = network().fit(X, y)
print(f"NumPy: accuracy {on_cpu.score(X, y):.3f}")
installed = find_spec("torch") is not None and find_spec("array_api_compat") is not None
if installed:
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    on_device = network(device).fit(X, y)
    difference = np.abs(on_device.coefs_[-1] - on_cpu.coefs_[-1]).max()
    accuracy = on_device.score(X, y)
    print(f"device {device!r}: accuracy {accuracy:.3f}, weights differ by {difference:.0e}")
    figure, axes = plt.subplots(figsize=(4.0, 3.6), layout="constrained")
    axes.plot(on_cpu.coefs_[-1], on_device.coefs_[-1], ".", color="#2a7fc4", markersize=3)
    axes.set(title="output weights", xlabel="NumPy", ylabel=f"device {device!r}")
    plt.show()
else:
    print("This page was built without torch: install it with pip install 'karnet[gpu]'.")

# %%
# Rows on the device
# ------------------
# Arrays of torch or CuPy on a GPU are fitted where they are:
#
# .. code-block:: python
#
#     import torch
#
#     X, y = torch.asarray(X, device="cuda"), torch.asarray(y, device="cuda")
#     net = network().fit(X, y)
#     net.predict(X)  # a tensor, on the same device
