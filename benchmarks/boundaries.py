"""Weights of the boundary cues, fitted to the training photographs of BSDS300, with their quality on those held out.

Each photograph is seen as it is and once more, at half size, with noise or as a poor JPEG in turn, which counts half as
much; and for the weights of grey pictures the same without colour. An edge between two sites counts with the length of
their boundary; its outcome is the share of annotators for whom the two sites lie mostly in different segments. First
log-odds are a logistic regression on the cues of the surroundings. Those that the cues of the whole picture start from
are always of photographs held out (five folds), so that they are as good as they will be on a new photograph. The last
log-odds are a network of one hidden layer. What is said of photographs held out is not strictly so: the regressions
that the other photographs' first log-odds are from have seen them, as have the means of the cues. The weights are
written to spinseg/image/data/boundary_weights.npz. Under ../shared/data or SPINSEG_DATA.
"""

from collections.abc import Callable, Collection
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

import spinseg
from benchmarks.data import data_root
from benchmarks.versions import Picture, compressed, grey, halved, noisy
from spinseg.evaluation.datasets import Example, bsds
from spinseg.image.adjacency import RegionAdjacency, region_adjacency
from spinseg.image.boundary.cues import SiteLooks, edge_cues
from spinseg.image.boundary.grouping import grouping_cues
from spinseg.image.boundary.log_odds import KINDS, BoundaryWeights, Cues
from spinseg.image.boundary.maps import boundary_maps
from spinseg.image.features import Codebook, site_histograms
from spinseg.image.picture import as_picture
from spinseg.image.superpixels import superpixels
from spinseg.parallel.atomic import atomic_write
from spinseg.segmentation.settings import PHOTO

N_FOLDS = 5
N_HIDDEN = 8
DECAY = 1e-4  # of the network's weights
ROUNDS = 150  # of its optimiser
CHROMA = ("C3", "C6", "C12", "dab")  # cues that a grey picture has by rounding alone
AS_IT_IS = "as it is"
WEIGHTS = Path(spinseg.__file__).parent / "image" / "data" / "boundary_weights.npz"

Array = NDArray[np.float64]


OTHERWISE: dict[str, Callable[[Picture, int], Picture]] = {
    "at half size": lambda image, i: halved(image),
    "with noise": noisy,
    "as JPEG": lambda image, i: compressed(image),
}
VERSIONS = (AS_IT_IS, *OTHERWISE)


@dataclass
class Edges:
    """The edges of one photograph, seen in one way; `fold` is that of the photograph."""

    version: str
    fold: int
    looks: SiteLooks
    adjacency: RegionAdjacency
    local: Cues
    outcome: Array

    @property
    def weight(self) -> Array:
        """What each counts for."""
        lengths = self.adjacency.boundary_length.astype(np.float64)
        return (1.0 if self.version == AS_IT_IS else 0.5) * lengths / lengths.mean()


def edges_of(i: int, example: Example, version: str, is_grey: bool) -> Edges:
    """Cues and outcomes of the edges of one photograph, the i-th."""
    image, annotations = example.image(), example.annotations()
    if is_grey:
        image = grey(image)
    if version != AS_IT_IS:
        image = OTHERWISE[version](image, i)
    if len(image) != len(annotations[0]):
        annotations = [drawn[::2, ::2][: image.shape[0], : image.shape[1]] for drawn in annotations]
    picture = as_picture(image)
    maps = boundary_maps(picture)
    each = PHOTO.pixels_per_site_of(int(np.prod(picture.shape)))
    sites = superpixels(picture, kind=PHOTO.sites, pixels_per_site=each, relief=maps.relief)
    adjacency = region_adjacency(sites)
    words = Codebook.general(PHOTO.n_words).words(picture)
    looks = SiteLooks.of(picture, sites, site_histograms(words, sites, PHOTO.n_words), maps)
    edges, apart = adjacency.graph.edges, []
    for annotation in annotations:
        votes = np.zeros((adjacency.graph.n_sites, int(annotation.max()) + 1))
        np.add.at(votes, (sites.ravel(), annotation.ravel()), 1)
        segment = votes.argmax(axis=1)
        apart.append(segment[edges[:, 0]] != segment[edges[:, 1]])
    cues = edge_cues(looks, sites, adjacency, maps)
    return Edges(version, i % N_FOLDS, looks, adjacency, cues, np.mean(apart, axis=0))


def logistic(x: Array, outcome: Array, weight: Array) -> Array:
    """Logistic regression by Newton's method: the constant, and a weight for each column."""
    x = np.column_stack([np.ones(len(x)), x])
    w = np.zeros(x.shape[1])
    small = 1e-6 * weight.sum() * np.eye(x.shape[1])  # so that a column of zeros gets none
    for _ in range(12):
        p = 1 / (1 + np.exp(-x @ w))
        w += np.linalg.solve((x * (weight * p * (1 - p))[:, None]).T @ x + small, x.T @ (weight * (outcome - p)))
    return w


def network(x: Array, outcome: Array, weight: Array) -> dict[str, Array]:
    """c + u.x + v.tanh(A x + a) of least cross-entropy, with a penalty on all weights but c."""
    n_cues = x.shape[1]
    rng = np.random.default_rng(0)
    start = {
        "hidden": rng.normal(0, n_cues**-0.5, (N_HIDDEN, n_cues)),
        "bias": np.zeros(N_HIDDEN),
        "output": rng.normal(0, 0.3, N_HIDDEN),
        "direct": np.zeros(n_cues),
        "constant": np.array([-3.0]),
    }
    ends = np.cumsum([part.size for part in start.values()])[:-1]
    inputs, share, aim = (values.astype(np.float32) for values in (x, weight / weight.sum(), outcome))

    def parts(flat: Array) -> dict[str, Array]:
        pieces = np.split(flat, ends)
        return {name: piece.reshape(start[name].shape) for name, piece in zip(start, pieces, strict=True)}

    def loss(flat: Array) -> tuple[float, Array]:
        net = {name: part.astype(np.float32) for name, part in parts(flat).items()}
        active = np.tanh(inputs @ net["hidden"].T + net["bias"])
        odds = active @ net["output"] + inputs @ net["direct"] + net["constant"]
        slope = share * (1 / (1 + np.exp(-odds)) - aim)
        back = np.outer(slope, net["output"]) * (1 - np.square(active))
        slopes = [back.T @ inputs, back.sum(axis=0), active.T @ slope, inputs.T @ slope, slope.sum(keepdims=True)]
        penalised = np.append(flat[:-1], 0.0)
        value = (share * (np.logaddexp(0, odds) - aim * odds)).sum(dtype=np.float64)
        gradient = np.concatenate([part.ravel() for part in slopes]).astype(np.float64)
        return float(value + DECAY * (penalised @ penalised)), gradient + 2 * DECAY * penalised

    flat = np.concatenate([part.ravel() for part in start.values()])
    found = minimize(loss, flat, jac=True, method="L-BFGS-B", options={"maxiter": ROUNDS, "maxcor": 20}).x
    return parts(found)


def average_precision(score: Array, outcome: Array, weight: Array) -> float:
    """Area under precision over recall of the edges that most annotators cut."""
    order = np.argsort(-score)
    hit = (weight * (outcome > 0.5))[order]
    precision = np.cumsum(hit) / np.cumsum(weight[order])
    return float((precision * hit).sum() / hit.sum())


@dataclass
class Fitted:
    """Weights from all photographs, and what weights from four fifths of them say of the others."""

    weights: BoundaryWeights
    by_fold: list[BoundaryWeights]
    first: list[Array]
    log_odds: list[Array]


def fit(photographs: list[Edges], without: Collection[str] = (), held_out: bool = True) -> Fitted:
    """Both stages, leaving out the cues named; if asked, also what is said of photographs held out."""
    outcomes, weights = [p.outcome for p in photographs], [p.weight for p in photographs]
    folds = np.array([p.fold for p in photographs])

    def fold_by_fold(
        tables: list[Array], learn: Callable[[Array, Array, Array], Any], say: Callable[[Any, Array], Array]
    ) -> tuple[list[Any], list[Array]]:
        """What is learnt from all but each fold and at last from all, and what it says of those left out."""
        learnt = []
        for fold in range(N_FOLDS + 1):
            used = np.flatnonzero(folds != fold)
            learnt.append(learn(*(np.concatenate([part[i] for i in used]) for part in (tables, outcomes, weights))))
        return learnt, [say(learnt[folds[i]], tables[i]) for i in range(len(tables))]

    tables = [np.stack(list(p.local.values()), axis=1) for p in photographs]
    kept = np.array([name not in without for name in photographs[0].local])
    tables, mean, deviation = standardised(tables, kept)
    firsts, first = fold_by_fold(tables, logistic, lambda w, x: w[0] + x @ w[1:])
    with ProcessPoolExecutor() as pool:
        looks, touching = [p.looks for p in photographs], [p.adjacency for p in photographs]
        found = list(pool.map(grouping_cues, first, looks, touching, chunksize=8))
    if unknown := set(without) - set(found[0]) - set(photographs[0].local):
        raise ValueError(f"no such cues: {unknown}")
    kept_too = np.array([name not in without for name in found[0]])
    more, mean_too, deviation_too = standardised([np.stack(list(cues.values()), axis=1) for cues in found], kept_too)
    tables = [np.hstack(pair) for pair in zip(tables, more, strict=True)]

    scale = {"mean": np.append(mean, mean_too), "deviation": np.append(deviation, deviation_too)}

    def say(net: dict[str, Array], x: Array) -> Array:
        return BoundaryWeights(first=firsts[-1], **scale, **net).of_standard(x)

    if not held_out:
        net = network(*(np.concatenate(parts) for parts in (tables, outcomes, weights)))
        return Fitted(BoundaryWeights(first=firsts[-1], **scale, **net), [], first, [])
    nets, log_odds = fold_by_fold(tables, network, say)
    by_fold = [BoundaryWeights(first=w, **scale, **net) for w, net in zip(firsts, nets, strict=True)]
    return Fitted(by_fold[-1], by_fold[:-1], first, log_odds)


def standardised(tables: list[Array], kept: NDArray[np.bool_]) -> tuple[list[Array], Array, Array]:
    """Columns less their mean over their standard deviation, with both; infinitely small where they are not kept."""
    joined = np.concatenate(tables)
    mean, deviation = joined.mean(axis=0), np.where(kept, joined.std(axis=0), np.inf)
    return [(table - mean) / deviation for table in tables], mean, deviation


def training_edges(is_grey: bool = False) -> list[Edges]:
    """Of all training photographs of BSDS300, as they are and otherwise."""
    tasks = []
    for i, example in enumerate(bsds(data_root(), "train")):
        tasks += [(i, example, version, is_grey) for version in (AS_IT_IS, list(OTHERWISE)[i % len(OTHERWISE)])]
    with ProcessPoolExecutor() as pool:
        return list(pool.map(edges_of, *zip(*tasks, strict=True)))


def quality(photographs: list[Edges], said: list[Array], version: str = AS_IT_IS) -> str:
    """Average precision of log-odds, the mean over folds, and their cross-entropy in nats."""
    rows = [
        (p.fold, said, p.outcome, p.weight) for p, said in zip(photographs, said, strict=True) if p.version == version
    ]
    found = []
    for fold in range(N_FOLDS):
        columns = zip(*(row[1:] for row in rows if row[0] == fold), strict=True)
        found.append(average_precision(*(np.concatenate(column) for column in columns)))
    odds, outcome, weight = (np.concatenate(column) for column in zip(*(row[1:] for row in rows), strict=True))
    entropy = (weight * (np.logaddexp(0, odds) - outcome * odds)).sum() / weight.sum()
    return f"average precision {np.mean(found):.3f} ({min(found):.3f} to {max(found):.3f}), cross-entropy {entropy:.4f}"


def study() -> dict[str, object]:
    """Fit, write, and say how good each stage is on photographs held out."""
    figures: dict[str, object] = {}
    stored: dict[str, Array] = {}
    for kind in KINDS:
        photographs = training_edges(is_grey=kind == "grey")
        fitted = fit(photographs, without=CHROMA if kind == "grey" else ())
        stored |= {f"{kind} {name}": values for name, values in vars(fitted.weights).items()}
        figures[f"{kind}, surroundings alone"] = quality(photographs, fitted.first)
        figures |= {f"{kind}, {version}": quality(photographs, fitted.log_odds, version) for version in VERSIONS}
        figures[f"{kind}, single cues"] = ", ".join(
            f"{name} {precision:.3f}" for name, precision in single_cues(photographs).items()
        )
    atomic_write(WEIGHTS, lambda file: np.savez_compressed(file, **stored))  # type: ignore[arg-type]
    return figures | {"written to": str(WEIGHTS)}


def single_cues(photographs: list[Edges]) -> dict[str, float]:
    """Average precision of each cue of the surroundings alone."""
    seen = [p for p in photographs if p.version == AS_IT_IS]
    outcome, weight = (np.concatenate([getattr(p, name) for p in seen]) for name in ("outcome", "weight"))
    cues = {name: np.concatenate([p.local[name] for p in seen]) for name in seen[0].local}
    return {name: average_precision(values, outcome, weight) for name, values in cues.items()}
