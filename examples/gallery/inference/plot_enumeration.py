"""
Compare draws with the exact posterior
======================================

Five sites have 52 partitions, few enough to compute the probability of each. A correct sampler visits each as often
as that. The bars are exact, the dots are the shares of 20,000 draws of four chains; letters side by side share a
cluster.
"""

import itertools

import matplotlib.pyplot as plt
import numpy as np

import spinseg as ss

graph = ss.SiteGraph(5, [[0, 1], [1, 2], [2, 3], [3, 4]])
data = ss.PoissonGamma([2, 3, 3, 7, 9])
model = ss.Model(graph, data, ss.DirichletProcess(1.0), beta=0.3)

partitions = [
    z
    for z in itertools.product(range(5), repeat=5)
    if all(z[i] <= max((-1, *z[:i])) + 1 for i in range(5))
]
log_posterior = np.array([model.log_posterior(z) for z in partitions])
exact = np.exp(log_posterior - log_posterior.max())
exact /= exact.sum()

chains = ss.sample(model, sweeps=5000, chains=4, rng=0)
draws = [tuple(draw) for draw in chains.labels.reshape(-1, 5).tolist()]
share = np.array([draws.count(z) for z in partitions]) / len(draws)

order = np.argsort(-exact)[:16]
names = [
    " ".join(
        "".join("abcde"[i] for i in range(5) if z[i] == k)
        for k in range(max(z) + 1)
    )
    for z in partitions
]
fig, ax = plt.subplots(figsize=(7, 5.2), layout="constrained")
ax.barh(range(16), exact[order], color="0.8", label="exact")
ax.plot(share[order], range(16), "o", label="share of draws")
ax.set(
    yticks=range(16),
    yticklabels=[names[i] for i in order],
    xlabel="probability",
    title="the 16 likeliest of 52 partitions",
)
ax.invert_yaxis()
ax.legend(frameon=False, loc="lower right")
ax.spines[["top", "right"]].set_visible(False)
