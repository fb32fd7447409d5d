"""One preset for every kind of image: a network's basins as sites, nine cues, and no likelihood of appearance.

The network was trained without the photographs of a fold (`held_out.py`), on which everything here is fitted and
judged: the weights of the cues on one half of them, for the other half.
"""

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from scipy.special import expit

import spinseg as ss
from spinseg.graph.adjacency import edge_means
from spinseg.graph.merging import merge_heights
from spinseg.graph.site_graph import SiteGraph
from spinseg.image.boundary.cues import Cues, edge_distance
from spinseg.image.boundary.maps import BoundaryMaps
from spinseg.image.boundary.network import BoundaryNetwork
from spinseg.image.features import site_means, site_sizes
from spinseg.image.layout import Ints
from spinseg.image.picture import Picture
from spinseg.image.superpixels import basins
from spinseg.model.priors import TemperedProcess
from spinseg.segmentation.presets.option import option
from spinseg.segmentation.presets.photo import Photo
from studies.evaluation import metrics
from studies.evaluation.datasets import Example, bsds, data_root
from studies.questions.boundaries import lie_apart, logistic
from studies.questions.held_out import N_FOLDS, network_of

FOLD = 0
DEPTHS = (0.1, 0.3)  # least depths of basins
SIZES = (1.0, 1.4)
RELIEF = 20.0  # height of a boundary that the network is sure of
SMOOTHNESS = 0.7  # pixels, of the relief
Array = NDArray[np.float64]


def maps_of(picture: Picture, network: BoundaryNetwork, sizes: Sequence[float] = SIZES) -> BoundaryMaps:
    """Return the relief and the log-odds of an image of three channels."""
    log_odds = network.mean_log_odds(picture.values, sizes)
    relief = ndimage.gaussian_filter(RELIEF * expit(log_odds[0]), SMOOTHNESS)
    return BoundaryMaps({}, {}, relief, log_odds, np.empty(0, np.int32), np.empty(0, np.float32))


def first_cues(sites: Ints, graph: SiteGraph, maps: BoundaryMaps) -> Cues:
    """Return the cues of each edge from its own two sites.

    They are the mean log-odds along the common boundary, within 1 and 3 pixels; the larger mean of those inside the two
    sites; the log of the smaller size, and of the distance of the centers, relative to the average site.
    """
    edges, sizes, cues = graph.edges, site_sizes(sites), Cues()
    for radius, log_odds in zip((1, 3), maps.network, strict=True):
        cues[f"along {radius}"] = edge_means(sites, edges, log_odds)
        cues[f"within {radius}"] = site_means(log_odds, sites)[:, 0][edges].max(axis=1)
    centers = site_means(np.moveaxis(np.indices(sites.shape, dtype=np.float32), 0, -1), sites)
    cues["size"] = np.log(sizes[edges].min(axis=1) / sizes.mean())
    cues["reach"] = np.log(np.maximum(edge_distance(centers, edges), 1.0)) - np.log(sizes.mean()) / sites.ndim
    return cues


def more_cues(log_odds: Array, graph: SiteGraph) -> Cues:
    """Return the cues of each edge that follow from the first log-odds of all.

    They are the mean log-odds along the boundary at which the two sites merge, and the lower and the higher of the two
    sites' mean log-odds along their other boundaries.
    """
    edges, length, n_sites = graph.edges, graph.length, graph.n_sites
    weighted = log_odds * length
    totals = np.bincount(edges.ravel(), weighted.repeat(2), n_sites)[edges] - weighted[:, None]
    lengths = np.bincount(edges.ravel(), length.repeat(2), n_sites)[edges] - length[:, None]
    around = np.where(lengths > 0, totals / np.maximum(lengths, 1), log_odds[:, None])
    return {"merged": merge_heights(graph, log_odds), "calm": around.min(axis=1), "busy": around.max(axis=1)}


@dataclass(frozen=True)
class Weights:
    """Constants and weights of the first and of the final log-odds."""

    first: Array
    final: Array

    def log_odds(self, cues: Cues, graph: SiteGraph) -> tuple[Array, Cues]:
        """Return the final log-odds of each edge, and all cues."""
        x = np.stack(list(cues.values()), axis=1)
        cues = cues | more_cues(self.first[0] + x @ self.first[1:], graph)
        x = np.stack(list(cues.values()), axis=1)
        return self.final[0] + x @ self.final[1:], cues


@dataclass(frozen=True)
class NineCues:
    """Evidence in place of `BoundaryEvidence`."""

    network: BoundaryNetwork
    weights: Weights

    def maps(self, picture: Picture, inside: NDArray[np.bool_] | None = None) -> BoundaryMaps:
        """Return the maps of an image."""
        return maps_of(picture, self.network)

    def log_odds(self, picture: Picture, sites: Ints, graph: SiteGraph, counts: Any, maps: BoundaryMaps) -> Array:
        """Return the log-odds of each edge."""
        return self.weights.log_odds(first_cues(sites, graph, maps), graph)[0]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Flat(Photo, listed=False):
    """`Photo` with the evidence of boundaries alone."""

    count_weight: float = option(0.0, "No pixel counts.", least=0)
    power: float = 0.2
    depth: float = 0.3
    max_sites: int = 2_000

    def make_sites(self, image: Any, maps: BoundaryMaps | None) -> Ints:
        """Return the basins of the relief, or the sites of `Photo` where there is no depth."""
        if maps is None or self.depth == 0:
            return super().make_sites(image, maps)
        return basins(maps.relief, self.depth, self.max_sites, image.inside)


@dataclass
class Edges:
    """Cues and outcomes of the edges of a photograph."""

    graph: SiteGraph
    cues: Cues
    outcome: Array

    @property
    def weight(self) -> Array:
        """Return the weight of each edge: its length."""
        return self.graph.length / self.graph.length.mean()


def edges_of(example: Example, network: BoundaryNetwork, depth: float) -> Edges:
    """Return the first cues and the outcomes of the edges of a photograph."""
    picture = ss.as_picture(example.image())
    maps = maps_of(picture, network)
    sites = basins(maps.relief, depth, 2_000)
    graph = ss.region_adjacency(sites)
    apart = [lie_apart(sites, graph, drawn) for drawn in example.annotations()]
    return Edges(graph, first_cues(sites, graph, maps), np.mean(apart, axis=0))


def fitted(images: Sequence[Edges]) -> Weights:
    """Return weights that are fitted to the edges of some photographs."""
    outcome, weight = (np.concatenate([getattr(e, name) for e in images]) for name in ("outcome", "weight"))
    first = logistic(np.concatenate([np.stack(list(e.cues.values()), axis=1) for e in images]), outcome, weight)
    alone = Weights(first, np.zeros(1 + len(images[0].cues) + 3))
    every = [alone.log_odds(e.cues, e.graph)[1] for e in images]
    final = logistic(np.concatenate([np.stack(list(cues.values()), axis=1) for cues in every]), outcome, weight)
    return Weights(first, final)


def brier(weights: Weights, images: Sequence[Edges]) -> float:
    """Return the mean squared difference of probabilities and shares of annotators, weighted by length."""
    odds = np.concatenate([weights.log_odds(e.cues, e.graph)[0] for e in images])
    outcome, weight = (np.concatenate([getattr(e, name) for e in images]) for name in ("outcome", "weight"))
    return float((weight * np.square(expit(odds) - outcome)).sum() / weight.sum())


def scores(example: Example, weights: Weights, network: BoundaryNetwork, options: dict[str, Any]) -> list[float]:
    """Return the scores of a segmentation: the Rand index, the variation of information, covering, and regions."""
    seg = ss.segment(example.image(), Flat(evidence=NineCues(network, weights), **options), rng=0, workers=1)  # type: ignore[arg-type]
    found = metrics.scores(seg.labels, example.annotations())
    numbers = [found.probabilistic_rand_index, found.variation_of_information, found.segmentation_covering]
    return [*numbers, seg.n_clusters]


VARIANTS: dict[str, dict[str, Any]] = {
    "power .2": {},
    "power .1": {"power": 0.1},
    "constants of measured": {
        "power": 1.0,
        "strength": 1.0,
        "saturation": 4.0,
        "prior": TemperedProcess(1.0, power=0.0),
    },
}


def study() -> dict[str, object]:
    """Return the quality of evidence and of segmentations with a network that was trained without a fold."""
    examples = [e for i, e in enumerate(bsds(data_root(), "train")) if i % N_FOLDS == FOLD]
    net, figures = network_of(FOLD), dict[str, object]()
    assert net is not None
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        for depth in DEPTHS:
            images = list(pool.map(partial(edges_of, network=net, depth=depth), examples))
            halves = [fitted(images[1::2]), fitted(images[::2])]  # each for the other half
            score = np.mean([brier(halves[h], images[h::2]) for h in (0, 1)])
            n_sites = np.mean([e.graph.n_sites for e in images])
            figures[f"depth {depth}"] = f"{n_sites:.0f} sites, Brier score of the evidence {score:.4f}"
            for name, options in VARIANTS.items():
                run = partial(scores, network=net, options={"depth": depth, **options})
                rows = list(pool.map(run, examples, [halves[i % 2] for i in range(len(examples))]))
                pri, voi, covering, regions = np.mean(rows, axis=0)
                line = f"PRI {pri:.4f}, VoI {voi:.3f}, covering {covering:.4f}, regions {regions:.1f}"
                figures[f"depth {depth}, {name}"] = line
    return figures
