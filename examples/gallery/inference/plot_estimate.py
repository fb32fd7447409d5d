"""
A point estimate and its credible ball
======================================

The estimate is the partition that is nearest to all draws, by expected variation of information. The credible ball
around it holds 95 % of the draws, and its coarsest, finest and farthest partitions show what is uncertain: here whether
the series has a step at 90.
"""

import matplotlib.pyplot as plt
import numpy as np

import spinseg as ss

rng = np.random.default_rng(3)
values = np.repeat([0.0, 2.0, 0.8, 1.3], [40, 20, 30, 30]) + rng.normal(
    0, 0.5, 120
)
row = ss.SiteGraph.grid((120,))
# each cluster costs log n nats, whatever its size
price = ss.TemperedProcess(1 / 120, power=0)
model = ss.Model(
    row, ss.DiagonalGaussian(values), price, connected=True
)
chains = ss.sample(
    model, sweeps=1000, chains=4, burn_in=200, init="opposite", rng=0
)

estimate = ss.minimize_vi(chains.labels, graph=row, rng=0).labels
ball = ss.credible_ball(chains.labels, estimate)
shown = {
    "the estimate": estimate,
    "the most probable": ss.find_map(model, rng=0).labels,
    "coarsest in the ball": ball.upper[0],
    "finest in the ball": ball.lower[0],
    "farthest in the ball": ball.horizontal[0],
}

fig, (top, bottom) = plt.subplots(
    2, 1, figsize=(7, 5.6), sharex=True, layout="constrained"
)
top.plot(values, ".", color="0.3")
for k in range(estimate.max() + 1):
    sites = np.flatnonzero(estimate == k)
    top.plot(
        sites,
        np.full(sites.size, values[sites].mean()),
        color=f"C{k}",
        linewidth=3,
    )
top.set_ylabel("value")
bottom.imshow(
    np.array(list(shown.values())),
    cmap="tab10",
    vmin=0,
    vmax=9,
    aspect="auto",
    interpolation="nearest",
)
bottom.set(
    yticks=range(5),
    yticklabels=shown,
    xlabel="site",
    title=f"a ball of {ball.radius:.2f} bits",
)
bottom.hlines(
    np.arange(4) + 0.5, -0.5, 119.5, color="white", linewidth=6
)
