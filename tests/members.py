"""Members of averages made by hand: a view, a kernel, and trees of a given leaf."""

from __future__ import annotations

import numpy as np

from karnet._network.infinite_width import DualSolution
from karnet._network.kernel_map import KernelMap
from karnet._network.local import LocalNetwork, Partition, grow_tree
from karnet._search.member import Member, Shape


def member_of(view, kernel, X, targets, leaf=1000, n_trees=1, alpha=1e-2, dtype=np.float32):
    """Return the member whose leaves have at most some rows, solved for one ridge.

    Rows are kept in single precision, and systems are solved in that of `dtype`.
    """
    Z, rng = view(X).astype(np.float32), np.random.RandomState(0)
    of_rows = KernelMap(kernel, 1.5, Z=Z)
    partitions = []
    for _ in range(n_trees):
        tree, leaves = grow_tree(Z, leaf, rng)
        shown = [Z[rows].astype(dtype) for rows in leaves]
        kernels = [of_rows.at(each)(each) for each in shown]
        found = [
            DualSolution.of(K, targets.of(rows), alpha)
            for K, rows in zip(kernels, leaves, strict=True)
        ]
        D, b = np.concatenate([each.D for each in found]), np.array([each.b for each in found])
        starts = np.cumsum([0, *map(len, leaves)])
        partitions.append(Partition(tree, np.concatenate(leaves), starts, D, b))
    network = LocalNetwork(view, of_rows, tuple(partitions))
    return Member(Shape("by hand", kernel), network, alpha, 0.0)
