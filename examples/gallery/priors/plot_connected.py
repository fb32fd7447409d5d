"""
Connected clusters
==================

Two discs of the same brightness are one cluster, if a cluster may lie in several places, and two, if every cluster
must be connected. Which one you want depends on your question: classes of tissue, or objects. One option of the
model decides.
"""

import matplotlib.pyplot as plt
import numpy as np

import spinseg as ss

rng = np.random.default_rng(0)
rows, columns = np.indices((24, 36))
discs = ((rows - 12) ** 2 + (columns - 9) ** 2 < 36) | (
    (rows - 12) ** 2 + (columns - 27) ** 2 < 36
)
values = discs + rng.normal(0, 0.35, discs.shape)
grid, data = (
    ss.SiteGraph.grid(discs.shape),
    ss.DiagonalGaussian(values.ravel()),
)
# each cluster costs log n nats, whatever its size
price = ss.TemperedProcess(1 / values.size, power=0)

fig, axes = plt.subplots(1, 3, figsize=(8, 2.3), layout="constrained")
axes[0].imshow(values, cmap="gray")
axes[0].set_title("two noisy discs")
for ax, connected in zip(axes[1:], [False, True], strict=True):
    model = ss.Model(grid, data, price, beta=2.0, connected=connected)
    chains = ss.sample(
        model, sweeps=300, chains=2, burn_in=100, init="opposite", rng=0
    )
    found = ss.minimize_vi(
        chains.labels, graph=grid if connected else None, rng=0
    ).labels
    ax.imshow(
        found.reshape(discs.shape),
        cmap="tab10",
        vmin=0,
        vmax=9,
        interpolation="nearest",
    )
    ax.set_title(
        f"connected={connected}: {found.max() + 1} clusters", size=11
    )
for ax in axes:
    ax.set_axis_off()
