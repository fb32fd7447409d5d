"""
Check convergence
=================

The verdict says in words whether chains have converged, and the figure shows the R-hat of four quantities that do not
depend on how clusters are numbered. After 20 sweeps the chains still show from which of two opposite starts they
came; after 1,000 they do not.
"""

from textwrap import fill

import matplotlib.pyplot as plt
import numpy as np

import spinseg as ss

rng = np.random.default_rng(0)
truth = np.repeat(np.repeat([[0, 1], [2, 1]], 8, axis=0), 8, axis=1)
values = truth.ravel() + rng.normal(0, 0.6, truth.size)
grid = ss.SiteGraph.grid(truth.shape)
price = ss.TemperedProcess(1 / truth.size, power=0)
model = ss.Model(
    grid, ss.DiagonalGaussian(values), price, beta=1.5, connected=True
)

fig, axes = plt.subplots(2, 1, figsize=(7, 5), layout="constrained")
for ax, sweeps in zip(axes, [20, 1000], strict=True):
    chains = ss.sample(
        model,
        sweeps,
        chains=4,
        init="opposite",
        burn_in=sweeps // 4,
        rng=0,
    )
    diagnostics = ss.diagnose(chains, grid)
    diagnostics.plot(ax)
    ax.set_title(f"{sweeps} sweeps")
    print(fill(f"{sweeps} sweeps: {diagnostics.verdict}", 90))
