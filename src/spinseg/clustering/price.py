"""The default prior of clusterings: a price for each cluster, in proportion to what clusters explain."""

import math

import numpy as np

from spinseg.clustering.starts import starting_partitions
from spinseg.model.posterior import Model
from spinseg.model.priors import PartitionPrior, Table


class ClusterPrice(PartitionPrior):
    """Each cluster costs `price` nats, whatever its size: log_v[k] = -k price, log_w = 0.

    It is `TemperedProcess(exp(-price), power=0)`, also where that number would be too small for a computer.
    """

    def __init__(self, price: float, *, min_size: int = 1, max_size: int | None = None) -> None:
        super().__init__(min_size=min_size, max_size=max_size)
        self.price = price

    def _tables(self, n_sites: int) -> tuple[Table, Table]:
        return -self.price * np.arange(n_sites + 1.0), np.zeros(n_sites + 1)


def with_price(model: Model, share: float) -> Model:
    """The model with a price for each cluster: log n_sites, and `share` of what clusters explain.

    What they explain is how much more probable than one cluster the better start is, in nats, at log n_sites a cluster.
    A cluster thus has to explain a share of what all do together. Features vary within clusters in ways that no
    likelihood knows, which the evidence for the clusters grows with, too; a price that does not would pay for each.
    """
    n_sites = model.graph.n_sites
    model = model.with_prior(ClusterPrice(math.log(n_sites)))
    one = model.graph.pieces(np.zeros(n_sites, np.int32)) if model.connected else np.zeros(n_sites, np.int32)
    best = starting_partitions(model, np.random.default_rng(0))[0]
    explained = max(model.log_posterior(best) - model.log_posterior(one), 0.0)
    return model.with_prior(ClusterPrice(math.log(n_sites) + share * explained))
