"""What the paper leaves open: one reading of it at a time, then several together, on 100 photographs of each dataset.

For each reading the count weight is chosen anew, on other photographs of LabelMe, so that the model finds the paper's
nine clusters there: at equal numbers of clusters, Rand indices can be compared. Only where T_min is 9, which lowers
the number of clusters, the weight is that without T_min. Rand, clusters and connected pieces are medians over
photographs, after SWEEPS sweeps of the paper's sampler; differences of Rand from the first reading are means, with
standard errors. The data are in ../shared/data or SPINSEG_DATA. The whole takes more than an hour of processor time;
with SPINSEG_PHOTOGRAPHS=24 it is the same on 24 photographs of each dataset, and with SPINSEG_KEEP=FILE it keeps what
is finished there, and goes on from it.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray
from scipy.sparse.linalg import eigsh
from scipy.spatial import cKDTree
from skimage.measure import label as connected_pieces
from skimage.segmentation import slic

import spinseg as ss
from benchmarks.data import data_root
from benchmarks.kept import Kept
from spinseg.evaluation.benchmark import seed_for
from spinseg.evaluation.datasets import Example, bsds, labelme
from spinseg.evaluation.metrics import rand_index
from spinseg.image.adjacency import region_adjacency
from spinseg.image.features import Codebook, pixel_positions, site_histograms, site_means
from spinseg.image.picture import Picture, as_picture
from spinseg.image.superpixels import PIXELS_PER_SITE, superpixels
from spinseg.model.graph import SiteGraph
from spinseg.model.likelihoods import DirichletMultinomial
from spinseg.segmentation.image_model import mean_with_neighbors

SWEEPS = 300
N_WORDS = 120
CLUSTERS = 9  # of LabelMe in the paper's table
FIRST_WEIGHT, MAX_STEPS, TOLERANCE = 0.09, 6, 0.5  # of the search for the count weight; the latter in clusters
STEP_POWER, MAX_FACTOR = 1.3, 4.0  # the number of clusters grows somewhat more slowly than the weight
NORMALIZED_TOTAL = 600  # counts of a site where all have the same; the count weight sets what they count for
N_EIGENVECTORS = 20  # of normalized cuts
FINE_PIXELS_PER_SITE = 12  # of the pieces that normalized cuts join


@dataclass(frozen=True)
class Reading:
    """One way to read the paper; the defaults are what the `paper` preset was before this study."""

    sites: str = "slic"  # or "watershed", "felzenszwalb", "grid", "cuts"
    compactness: float | None = None
    n_sites: int | None = None  # by default one for 60 pixels
    codebook: str = "general"  # or "image", "dataset"
    smoothing: int = 0  # how many times the mean of a histogram and those of touching sites is taken
    normalized: bool = False  # whether all sites have equally many counts
    phi: float = 50.0
    uniform: bool = False  # whether the base measure is uniform instead of the mean histogram
    neighbors: str = "touching"  # or "radius", "nearest", "length"
    beta: float = 0.02
    lam: float = 10.0
    moves: str = "gsw"
    init: str = "one"
    estimate: str = "best"  # or "last", "mean"
    min_size: int = 1
    sweeps: int = SWEEPS


READINGS = {
    "as it was": Reading(),
    "compact sites": Reading(compactness=40.0),
    "loose sites": Reading(compactness=4.0),
    "sites by watershed": Reading(sites="watershed"),
    "sites by normalized cuts": Reading(sites="cuts"),
    "1,000 sites in every picture": Reading(n_sites=1000),
    "a codebook for each picture": Reading(codebook="image"),
    "a codebook for each dataset": Reading(codebook="dataset"),
    "mean histograms of touching sites": Reading(smoothing=1),
    "mean taken twice": Reading(smoothing=2),
    "mean taken three times": Reading(smoothing=3),
    "equal counts": Reading(normalized=True),
    "equal counts, phi 5": Reading(normalized=True, phi=5.0),
    "equal counts, phi .5": Reading(normalized=True, phi=0.5),
    "phi 5": Reading(phi=5.0),
    "phi 500": Reading(phi=500.0),
    "uniform base measure": Reading(uniform=True),
    "ordered pairs, beta twice": Reading(beta=0.04),
    "beta .2": Reading(beta=0.2),
    "beta .2, lambda 1": Reading(beta=0.2, lam=1.0),
    "beta .2, splits and merges": Reading(beta=0.2, moves="auto"),
    "sites within a radius": Reading(neighbors="radius"),
    "20 nearest sites": Reading(neighbors="nearest"),
    "beta by boundary length": Reading(neighbors="length"),
    "the last draw": Reading(estimate="last"),
    "the estimate over draws": Reading(estimate="mean"),
    "from singletons": Reading(init="singletons"),
    "splits and merges": Reading(moves="auto"),
    "mean, a codebook for each picture": Reading(smoothing=1, codebook="image"),
    "mean, compact sites": Reading(smoothing=1, compactness=40.0),
    "mean, normalized cuts": Reading(smoothing=1, sites="cuts"),
    "mean, uniform base measure": Reading(smoothing=1, uniform=True),
    "mean, beta .2, lambda 1": Reading(smoothing=1, beta=0.2, lam=1.0),
    "mean, phi 500": Reading(smoothing=1, phi=500.0),
    "mean taken twice, phi 500": Reading(smoothing=2, phi=500.0),
    "mean taken twice, beta .2, lambda 1": Reading(smoothing=2, beta=0.2, lam=1.0),
    "mean taken twice, 1,000 sites": Reading(smoothing=2, n_sites=1000),
    "mean taken twice, a codebook for each dataset": Reading(smoothing=2, codebook="dataset"),
    "mean taken twice, T_min 9": Reading(smoothing=2, min_size=9),
    "mean taken twice, T_min 9, from the most": Reading(smoothing=2, min_size=9, init="singletons"),
    "mean taken twice, T_min 9, from a greedy start": Reading(smoothing=2, min_size=9, init="greedy"),
}


class Score(NamedTuple):
    """Rand index (mean over annotators, and that of the nearest), clusters, and connected pieces of an answer."""

    rand: float
    nearest_rand: float
    clusters: float
    pieces: float


class Photograph:
    """A photograph whose sites and words are computed once."""

    def __init__(self, example: Example, dataset: str) -> None:
        self.example, self.dataset = example, dataset
        self.picture = as_picture(example.image())
        self.truths = example.annotations()
        self.sites = cache(self._sites)
        self.words = cache(self._words)

    def _sites(self, kind: str, compactness: float | None, n_sites: int | None) -> NDArray[np.int32]:
        if kind == "cuts":
            return normalized_cuts(self.picture)
        return superpixels(self.picture, kind=kind, n_sites=n_sites, compactness=compactness)

    def _words(self, codebook: str) -> NDArray[np.integer]:
        if codebook == "dataset":
            return dataset_codebook(self.dataset).words(self.picture)
        book = Codebook.fit(self.picture, N_WORDS, rng=0) if codebook == "image" else Codebook.general(N_WORDS)
        return book.words(self.picture)

    def model(self, reading: Reading, weight: float) -> tuple[ss.Model, NDArray[np.int32]]:
        """Return the posterior under a reading at a count weight, and the sites."""
        sites = self.sites(reading.sites, reading.compactness, reading.n_sites)
        counts = site_histograms(self.words(reading.codebook), sites, N_WORDS)
        adjacency = region_adjacency(sites)
        counts, n_parts = mean_with_neighbors(counts, adjacency.graph, reading.smoothing)
        if reading.normalized:
            shares = counts.multiply(NORMALIZED_TOTAL / counts.sum(axis=1)[:, None]).tocsr()
            counts = sparse.csr_array((np.rint(shares.data), shares.indices, shares.indptr), shape=shares.shape)
        used = np.asarray(counts.sum(axis=0)).ravel() > 0
        base = used.astype(float) if reading.uniform else None
        graph, beta = adjacency.graph, reading.beta * np.ones(adjacency.graph.n_edges)
        if reading.neighbors == "length":
            beta *= adjacency.boundary_length / adjacency.boundary_length.mean()
        elif reading.neighbors != "touching":
            centers = site_means(pixel_positions(sites.shape), sites) * max(sites.shape) / 100  # in pixels
            graph = nearest_neighbors(centers) if reading.neighbors == "nearest" else neighbors_within(centers)
            beta = reading.beta * np.ones(graph.n_edges)
        prior = ss.DirichletProcess(3.0, min_size=reading.min_size)
        return ss.Model(graph, DirichletMultinomial(counts, reading.phi, weight / n_parts, base), prior, beta), sites

    def labels(self, reading: Reading, weight: float) -> NDArray[np.int32]:
        """Return the label image under a reading at a count weight."""
        model, sites = self.model(reading, weight)
        half, rng = reading.sweeps // 2, seed_for(self.example.name, 0)
        lam = reading.lam if reading.moves == "gsw" else None
        drawn = ss.sample(
            model, reading.sweeps, 1, reading.moves, lam, reading.init, half, max(half // 25, 1), rng, workers=1
        )
        if reading.estimate == "best":
            return drawn.best_labels[sites]
        return (drawn.labels[0, -1] if reading.estimate == "last" else ss.minimize_vi(drawn, rng=0).labels)[sites]

    def score(self, reading: Reading, weight: float) -> Score:
        """Return the score of the label image."""
        return score_of(self.labels(reading, weight), self.truths)


def score_of(labels: NDArray[np.int32], truths: Sequence[NDArray[np.int32]]) -> Score:
    """Return the score of a label image."""
    pieces = int(connected_pieces(labels, background=-1, connectivity=1).max())
    rands = [rand_index(labels, truth) for truth in truths]
    return Score(float(np.mean(rands)), max(rands), np.unique(labels).size, pieces)


def neighbors_within(centers: NDArray[np.float64], radius: float = 2.5 * PIXELS_PER_SITE**0.5) -> SiteGraph:
    """Return the graph whose edges join sites with centers that are at most `radius` pixels apart."""
    return SiteGraph(len(centers), cKDTree(centers).query_pairs(radius, output_type="ndarray"))


def nearest_neighbors(centers: NDArray[np.float64], n_nearest: int = 20) -> SiteGraph:
    """Return the graph whose edges join each site to those with the nearest centers."""
    near = cKDTree(centers).query(centers, n_nearest + 1)[1][:, 1:]
    pairs = np.stack([np.repeat(np.arange(len(centers)), n_nearest), near.ravel()], axis=1)
    return SiteGraph(len(centers), np.unique(np.sort(pairs, axis=1), axis=0))


def normalized_cuts(picture: Picture) -> NDArray[np.int32]:
    """Return sites that are compact in the eigenvectors of normalized cuts: regular, and following strong edges.

    As in Mori's program, but for the pieces that are joined: here they are small SLIC sites instead of pixels.
    """
    fine = superpixels(picture, pixels_per_site=FINE_PIXELS_PER_SITE)
    graph, colors = region_adjacency(fine).graph, site_means(picture.colors, fine)
    apart = np.linalg.norm(colors[graph.edges[:, 0]] - colors[graph.edges[:, 1]], axis=1)
    similarity = np.exp(-apart / 10.0) + 1e-4
    affinity = sparse.coo_array((similarity, tuple(graph.edges.T)), shape=(graph.n_sites, graph.n_sites))
    affinity = (affinity + affinity.T).tocsr()
    root = np.sqrt(affinity.sum(axis=1))
    scaled = sparse.diags_array(1 / root) @ affinity @ sparse.diags_array(1 / root)
    laplacian = sparse.eye_array(graph.n_sites) - scaled
    start = np.random.default_rng(0).random(graph.n_sites)
    values, vectors = eigsh(laplacian.tocsc(), N_EIGENVECTORS + 1, sigma=-1e-3, v0=start)
    order = np.argsort(values)[1:]
    embedded = vectors[:, order] / root[:, None] / np.sqrt(values[order])
    embedded *= 20.0 / embedded.std(axis=0).max()
    lab_like = np.concatenate([embedded, 0.5 * colors], axis=1).astype(np.float32)[fine]
    scale = float(np.ptp(lab_like))
    n_sites = round(fine.size / PIXELS_PER_SITE)
    settings = {"compactness": 10.0 / scale, "convert2lab": False, "enforce_connectivity": True, "channel_axis": -1}
    return superpixels(picture, kind=slic(lab_like, n_segments=n_sites, start_label=0, **settings))


def calibration() -> list[tuple[Example, str]]:
    """Return photographs of LabelMe for the choice of the count weight."""
    return [(example, "LabelMe") for example in labelme(data_root())[::48]]


def scored() -> dict[str, list[tuple[Example, str]]]:
    """Return photographs of each dataset that no count weight was chosen on, by default 100 of each."""
    n_photographs = int(os.environ.get("SPINSEG_PHOTOGRAPHS", "100"))
    found = {"LabelMe": labelme(data_root())[2::4], "Berkeley": bsds(data_root(), "train", edition="bsds300")[1::2]}
    return {
        name: [(examples[i], name) for i in spread_order(len(examples))[:n_photographs]]
        for name, examples in found.items()
    }


def spread_order(n_items: int) -> list[int]:
    """Return 0..n-1 in the order of their reversed binary digits, of which every beginning is spread over the whole.

    Examples
    --------
    >>> spread_order(6)
    [0, 4, 2, 1, 5, 3]
    """
    n_digits = (n_items - 1).bit_length()
    return sorted(range(n_items), key=lambda i: f"{i:0{n_digits}b}"[::-1])


@cache
def dataset_codebook(dataset: str) -> Codebook:
    """Return a codebook of one dataset, learned on photographs that are not scored."""
    examples = {"LabelMe": labelme(data_root())[::16], "Berkeley": bsds(data_root(), "train", edition="bsds300")[::8]}
    return Codebook.fit((example.image() for example in examples[dataset]), N_WORDS, rng=0)


@cache
def opened(task: tuple[Example, str]) -> Photograph:
    """Return a photograph with what was computed of it before."""
    return Photograph(*task)


def calibrated(reading: Reading) -> float:
    """Return the count weight at which the mean number of clusters on LabelMe comes nearest to the paper's."""
    if reading.min_size > 1:
        reading = replace(reading, min_size=1, init="one")
    photographs = [opened(task) for task in calibration()]
    weight, found = FIRST_WEIGHT, dict[float, float]()
    for _ in range(MAX_STEPS):
        found[weight] = float(np.mean([photograph.score(reading, weight).clusters for photograph in photographs]))
        if abs(found[weight] - CLUSTERS) < TOLERANCE:
            break
        weight *= float(np.clip((CLUSTERS / found[weight]) ** STEP_POWER, 1 / MAX_FACTOR, MAX_FACTOR))
    return min(found, key=lambda weight: abs(found[weight] - CLUSTERS))


Task = tuple[Example, str, Mapping[str, float]]  # a photograph, its dataset, and the count weights of readings


def scores_of(task: Task) -> dict[str, Score]:
    """Return the score of each reading on one photograph, by key."""
    example, dataset, weights = task
    photograph = Photograph(example, dataset)
    return {
        key_of(example, dataset, name, weight): photograph.score(READINGS[name], weight)
        for name, weight in weights.items()
    }


def key_of(example: Example, dataset: str, name: str, weight: float) -> str:
    """Return all that the score of a reading on a photograph depends on."""
    return f"{dataset}, {example.name}, {READINGS[name]}, {weight!r}"


def text_of(rows: Sequence[Score], first: Sequence[Score]) -> str:
    """Return medians over photographs, and the mean difference of Rand from the first reading, as text."""
    rand, nearest, clusters, pieces = np.median(rows, axis=0)
    difference = np.array([row.rand - other.rand for row, other in zip(rows, first, strict=True)])
    error = difference.std() / len(rows) ** 0.5
    return (
        f"Rand {rand:.3f} ({difference.mean():+.3f}, standard error {error:.3f}; nearest annotator {nearest:.3f}), "
        f"{clusters:g} clusters in {pieces:g} pieces"
    )


def study() -> dict[str, object]:
    """Return the count weight of each reading, and its scores on each dataset."""
    figures: dict[str, object] = {}
    kept = Kept()
    with ProcessPoolExecutor() as pool:
        missing = [name for name, reading in READINGS.items() if repr(reading) not in kept]
        for name, weight in zip(missing, pool.map(calibrated, [READINGS[name] for name in missing]), strict=True):
            kept.put({repr(READINGS[name]): weight})
            print(f"{name}: count weight {weight:.3g}", file=sys.stderr)
        weights = {name: float(kept[repr(reading)]) for name, reading in READINGS.items()}
        for dataset, photographs in scored().items():
            tasks: list[Task] = []
            for example, _ in photographs:
                todo = {name: w for name, w in weights.items() if key_of(example, dataset, name, w) not in kept}
                tasks += [(example, dataset, todo)] if todo else []
            for done, found in enumerate(pool.map(scores_of, tasks), start=1 + len(photographs) - len(tasks)):
                kept.put(found)
                print(f"{dataset}: {done} of {len(photographs)} photographs", file=sys.stderr)
            of_reading = {
                name: [Score(*kept[key_of(example, dataset, name, weight)]) for example, _ in photographs]
                for name, weight in weights.items()
            }
            for name, scores in of_reading.items():
                told = text_of(scores, of_reading["as it was"])
                figures[f"{name}, {dataset}"] = f"count weight {weights[name]:.3g}: {told}"
    return figures
