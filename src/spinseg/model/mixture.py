"""A mixture of posteriors that differ in their couplings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinseg._validation import invalid
from spinseg.graph.site_graph import SiteGraph
from spinseg.model.likelihoods import Likelihood
from spinseg.model.posterior import Model
from spinseg.model.priors import PartitionPrior


class Mixture:
    """An equal mixture of posteriors over the partitions of the same sites, p(z | y) = mean over d of p_d(z | y).

    It says that one of several couplings is right, and not which: how fine a division is wanted, for example. Each
    p_d is normalized, and as many draws come from each, so that no normalizing constant is needed.

    Parameters
    ----------
    components : sequence of Model
        With one graph, likelihood, prior, power, `connected` and seeds; they may differ in their couplings.

    Examples
    --------
    >>> import spinseg as ss
    >>> first = ss.Model(ss.SiteGraph(3, [[0, 1], [1, 2]]), ss.PoissonGamma([1, 2, 9]), ss.DirichletProcess(1.0))
    >>> mixture = ss.Mixture([first, ss.Model(first.graph, first.likelihood, first.prior, beta=1.0)])
    >>> chains = ss.sample(mixture, sweeps=100, chains=2, rng=0)
    >>> chains.labels.shape, chains.component[:4]
    ((2, 200, 3), array([0, 1, 0, 1]))
    """

    def __init__(self, components: Sequence[Model]) -> None:
        self.components = tuple(components) if isinstance(components, Iterable) else ()
        if not self.components or not all(isinstance(model, Model) for model in self.components):
            invalid("components", "be a list of one or more Models", components)
        first = self.components[0]
        for model in self.components[1:]:
            for name in ("graph", "likelihood", "prior", "power", "connected"):
                if getattr(model, name) is not getattr(first, name) and getattr(model, name) != getattr(first, name):
                    invalid("components", f"have the same {name}", getattr(model, name))
            if not np.array_equal(model.seeds, first.seeds):  # type: ignore[arg-type]
                invalid("components", "have the same seeds", model.seeds)

    def __repr__(self) -> str:
        return f"Mixture of {len(self.components)} posteriors, of which the first is a\n{self.components[0]}"

    def with_prior(self, prior: PartitionPrior) -> Mixture:
        """The same mixture with another prior."""
        return Mixture([model.with_prior(prior) for model in self.components])

    def with_seeds(self, seeds: ArrayLike | None) -> Mixture:
        """The same mixture with other seeds."""
        return Mixture([model.with_seeds(seeds) for model in self.components])

    def allows(self, labels: ArrayLike) -> bool:
        """Whether the partition with equal labels together has a positive probability, as in every component."""
        return self.components[0].allows(labels)

    @property
    def graph(self) -> SiteGraph:
        """The graph of all components."""
        return self.components[0].graph

    @property
    def likelihood(self) -> Likelihood:
        """The likelihood of all components."""
        return self.components[0].likelihood

    @property
    def seeds(self) -> NDArray[np.int64] | None:
        """The seeds of all components."""
        return self.components[0].seeds

    @property
    def connected(self) -> bool:
        """Whether the clusters of all components are connected."""
        return self.components[0].connected

    @property
    def prior(self) -> PartitionPrior:
        """The prior of all components."""
        return self.components[0].prior
