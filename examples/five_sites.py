"""
Five sites, one model
=====================

Five hospitals measure the same thing and may not share their patients. Each one learns a network
with the same hidden layers on its own rows. They exchange statistics, not rows, and get the
network that all rows in one place would have given, to the last digits.

That works because hidden layers that are drawn do not depend on data, and what the output layer
needs of the rows, the products A'A and A'B of what it sees and of its targets, is a sum over rows.
"""

# %%
# The data
# --------
# Five parts of a data set, of very different size. Inputs must be scaled alike everywhere, so the
# range of each feature is agreed upon beforehand, like the seed that hidden weights are drawn with.

import pickle

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from karnet import KARClassifier

X, y = load_breast_cancer(return_X_y=True)
X = (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0))
rows = np.random.default_rng(0).permutation(len(X))
sites = np.split(rows, [250, 400, 480, 530])
print("rows per site:", [len(site) for site in sites])


def network() -> KARClassifier:
    """Return the network that all sites agreed upon."""
    return KARClassifier((40,), hidden="random", activation="tanh", alpha=1e-3, random_state=0)


# %%
# Every site learns alone
# -----------------------
# A site that has not met a class yet names it, or leaves it to the others: a class that is first
# seen later is added.

messages, alone = [], []
for site in sites:
    net = network().partial_fit(X[site], y[site])
    messages.append(pickle.dumps(net))
    alone.append(net.score(X, y))
    print(f"alone: {alone[-1]:.3f} of all rows right, a message of {len(messages[-1])} bytes")

# %%
# The messages are merged
# -----------------------
# In any order, by any of them or by a third party. A fingerprint of the hidden layers refuses
# networks that do not belong together.

merged = pickle.loads(messages[0])
for message in messages[1:]:
    merged.merge(pickle.loads(message))
pooled = network().fit(X, y)
difference = np.abs(merged.coefs_[-1] - pooled.coefs_[-1]).max() / np.abs(pooled.coefs_[-1]).max()
print(f"merged: {merged.score(X, y):.3f} of all rows right")
print(f"largest difference from the pooled network: {difference:.1e} of its largest weight")

names = [*(f"{len(site)} rows" for site in sites), "merged", "pooled"]
figure, axes = plt.subplots(figsize=(7.0, 3.2), layout="constrained")
axes.bar(names[:5], alone, color="#2a7fc4")
axes.bar(names[5:], [net.score(X, y) for net in (merged, pooled)], color="#d9640f")
axes.set(ylim=(0.8, 1.0), ylabel="share of all rows right")
plt.show()

# %%
# A patient withdraws
# -------------------
# The site that has the rows forgets them, and the network is the one that never saw them.

gone, left = sites[0][:25], np.concatenate([sites[0][25:], *sites[1:]])
merged.forget(X[gone], y[gone])
never = network().fit(X[left], y[left])
forgotten = np.abs(merged.coefs_[-1] - never.coefs_[-1]).max() / np.abs(never.coefs_[-1]).max()
print(f"largest difference from the network that never saw them: {forgotten:.1e}")

# %%
# What the messages reveal
# ------------------------
# A message holds sums over the rows of a site: how many there are, the means of what the output
# layer sees and of the classes, and their products. No row is in it, and of many rows none stands
# out. But sums are aggregates, not encrypted. The numbers of rows of each class are there in the
# clear. Of two messages between which one row was added, the difference is that row's own. Of a
# site with fewer rows than hidden units, the products tell the space that its rows span. So
# send sums over many rows only; where that is not enough, they are plain arrays that secure
# aggregation can add up, or that noise can be added to.
#
# A message here is a pickle, for brevity: open such only from those you trust.
