"""Fit of the weights of the boundary cues to the training photographs of BSDS300, with cross-validation.

The network's cues of a photograph are those of a network that was trained without it (`held_out.py`). Each
photograph is used twice: unchanged, and at half size, with noise, as a JPEG of low quality or with shapes painted on
it, with half the weight. The weights for gray pictures are fitted to the same photographs in gray. An edge between two
sites has the length of their boundary as weight; its outcome is the fraction of annotators for whom the two sites lie
mostly in different segments. The first log-odds are a logistic regression on local cues. The cues of the whole picture
are computed from first log-odds that were fitted to other photographs (five folds), so that they have the quality that
they will have on a new photograph. The final log-odds are a network of one hidden layer. The cross-validation is not
strict: the first log-odds of the other photographs, and the means of the cues, were fitted with the photographs left
out. The weights are written to spinseg/image/data/boundary_weights.npz, and those of each fold beside its network. The
data are in ../shared/data or SPINSEG_DATA.
"""

import io
import os
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy.optimize import minimize

import spinseg
from spinseg._run.atomic import atomic_write
from spinseg.graph.site_graph import SiteGraph
from spinseg.image.boundary.cues import Cues, SiteStatistics, edge_cues
from spinseg.image.boundary.grouping import grouping_cues
from spinseg.image.boundary.log_odds import BoundaryEvidence, CueWeights, log_odds_of_standardized
from spinseg.image.features import Codebook, site_histograms
from spinseg.image.picture import as_picture
from spinseg.image.working import working_copy
from spinseg.partition.numbering import in_order
from spinseg.segmentation.presets.photo import N_WORDS, Photo
from studies.evaluation.datasets import Example, bsds, data_root
from studies.questions.held_out import FOLDER, N_FOLDS, network_of, weights_path

N_HIDDEN = 8
WEIGHT_DECAY = 1e-4  # of the network's weights
MAX_ITERATIONS = 150  # of its optimizer
CHROMA_CUES = ("C3", "C6", "C12", "dab")  # which are rounding errors in a gray picture
ORIGINAL, PAINTED = "unchanged", "with shapes painted on it"
WEIGHTS_PATH = Path(spinseg.__file__).parent / "image" / "data" / "boundary_weights.npz"

Array = NDArray[np.float64]
Pixels = NDArray[np.uint8]
FitModel = Callable[[Array, Array, Array], Any]  # of cues, outcomes and weights


def halved(image: Pixels) -> Pixels:
    """Return the image at half the size."""
    return np.asarray(Image.fromarray(image).resize((image.shape[1] // 2, image.shape[0] // 2), Image.Resampling.BOX))


def noisy(image: Pixels, seed: int) -> Pixels:
    """Return the image with Gaussian noise of standard deviation 10."""
    noise = np.random.default_rng(seed).normal(0, 10, image.shape)
    return np.clip(np.rint(image + noise), 0, 255).astype(np.uint8)


def compressed(image: Pixels) -> Pixels:
    """Return the image after JPEG compression of quality 30."""
    file = io.BytesIO()
    Image.fromarray(image).save(file, "JPEG", quality=30)
    with Image.open(file) as opened:
        return np.asarray(opened)


def painted(image: Pixels, annotations: list[NDArray], seed: int) -> tuple[Pixels, list[NDArray]]:
    """Return a part of a photograph with rectangles and ellipses painted on it, which all annotators have drawn.

    Half of them are painted on a ground of one color, which nobody divides. The part has random sides.
    """
    rng = np.random.default_rng(seed)
    rows, columns = (int(rng.integers(60, length + 1)) for length in image.shape[:2])
    image, annotations = image[:rows, :columns].copy(), [drawn[:rows, :columns].copy() for drawn in annotations]
    if seed % 2:
        image[:] = _color(rng, image.shape[2:])
        annotations = [np.zeros_like(drawn) for drawn in annotations]
    y, x = np.mgrid[:rows, :columns]
    for shape in range(rng.integers(1, 4)):
        angle = rng.uniform(0, np.pi) * rng.integers(0, 2)
        dy, dx = y - rng.uniform(0, rows), x - rng.uniform(0, columns)
        least, most = 0.1 * min(rows, columns), 0.4 * min(rows, columns)
        u = np.abs(np.cos(angle) * dx - np.sin(angle) * dy) / rng.uniform(least, most)
        v = np.abs(np.sin(angle) * dx + np.cos(angle) * dy) / rng.uniform(least, most)
        within = (np.maximum(u, v) if rng.integers(0, 2) else np.hypot(u, v)) < 1
        image[within] = _color(rng, image.shape[2:])
        for drawn in annotations:
            drawn[within] = 1_000 + shape
    return image, [in_order(drawn) for drawn in annotations]


def _color(rng: np.random.Generator, shape: tuple[int, ...]) -> Pixels:
    """Return any color, or one whose channels are 0 or 255."""
    return (255 * rng.integers(0, 2, shape) if rng.integers(0, 2) else rng.integers(0, 256, shape)).astype(np.uint8)


CHANGES: dict[str, Callable[[Pixels, int], Pixels]] = {
    "at half size": lambda image, i: halved(image),
    "with noise": noisy,
    "as JPEG": lambda image, i: compressed(image),
}
VERSIONS = (ORIGINAL, *CHANGES, PAINTED)


@dataclass
class Outcomes:
    """Local cues and outcomes of the edges of one version of an image; `fold` is that of a training image."""

    version: str
    fold: int | None
    adjacency: SiteGraph
    local: Cues
    outcome: Array

    @property
    def weight(self) -> Array:
        """Return the weight of each edge."""
        lengths = self.adjacency.length
        return (1.0 if self.version == ORIGINAL else 0.5) * lengths / lengths.mean()


@dataclass
class Edges(Outcomes):
    """The same with the statistics of the sites."""

    statistics: SiteStatistics


def edges_of(i: int, example: Example, fold: int | None, version: str, is_gray: bool) -> Edges:
    """Return cues and outcomes of the edges of the i-th photograph, with the network of a fold or of the package."""
    image, annotations = example.image(), example.annotations()
    if is_gray:
        image = np.asarray(Image.fromarray(image).convert("L"))
    if version == PAINTED:
        image, annotations = painted(image, annotations, i // 4)
    elif version != ORIGINAL:
        image = CHANGES[version](image, i)
    if len(image) != len(annotations[0]):
        annotations = [drawn[::2, ::2][: image.shape[0], : image.shape[1]] for drawn in annotations]
    preset = Photo(evidence=BoundaryEvidence(network_of(fold)))
    return edges_with(preset, as_picture(image), annotations, version, fold)


def edges_with(
    preset: Photo, image: spinseg.Picture, annotations: Sequence[NDArray[np.integer]], version: str, fold: int | None
) -> Edges:
    """Return cues and outcomes of the edges of an image, with the sites and the network of a preset."""
    working_image = preset.analyzed(working_copy(image, None, None))
    picture, maps = working_image.picture, preset.maps(working_image)
    assert maps is not None
    sites = preset.make_sites(working_image, maps)
    adjacency = preset.graph(sites, working_image)
    words = Codebook.general(N_WORDS).words(picture)
    statistics = SiteStatistics.of(picture, sites, site_histograms(words, sites, N_WORDS), maps)
    apart = [lie_apart(sites, adjacency, annotation) for annotation in annotations]
    cues = edge_cues(statistics, sites, adjacency, maps)
    return Edges(version, fold, adjacency, cues, np.mean(apart, axis=0), statistics)


def lie_apart(sites: NDArray[np.integer], adjacency: SiteGraph, annotation: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Return whether the two sites of each edge lie mostly in different segments."""
    votes = np.zeros((adjacency.n_sites, int(annotation.max()) + 1))
    np.add.at(votes, (sites.ravel(), annotation.ravel()), 1)
    segment = votes.argmax(axis=1)[adjacency.edges]
    return segment[:, 0] != segment[:, 1]


def logistic(x: Array, outcome: Array, weight: Array) -> Array:
    """Fit a logistic regression by Newton's method; return the constant, and a weight for each column."""
    x = np.column_stack([np.ones(len(x)), x])
    w = np.zeros(x.shape[1])
    ridge = 1e-6 * weight.sum() * np.eye(x.shape[1])  # gives a column of zeros the weight 0
    for _ in range(12):
        p = 1 / (1 + np.exp(-x @ w))
        w += np.linalg.solve((x * (weight * p * (1 - p))[:, None]).T @ x + ridge, x.T @ (weight * (outcome - p)))
    return w


def network(x: Array, outcome: Array, weight: Array) -> dict[str, Array]:
    """Fit c + u.x + v.tanh(A x + a) by cross-entropy, with weight decay of all weights but c."""
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
    inputs, share, labels = (values.astype(np.float32) for values in (x, weight / weight.sum(), outcome))

    def parts(flat: Array) -> dict[str, Array]:
        pieces = np.split(flat, ends)
        return {name: piece.reshape(start[name].shape) for name, piece in zip(start, pieces, strict=True)}

    def loss(flat: Array) -> tuple[float, Array]:
        net = {name: part.astype(np.float32) for name, part in parts(flat).items()}
        active = np.tanh(inputs @ net["hidden"].T + net["bias"])
        odds = active @ net["output"] + inputs @ net["direct"] + net["constant"]
        residual = share * (1 / (1 + np.exp(-odds)) - labels)
        back = np.outer(residual, net["output"]) * (1 - np.square(active))
        gradients = [
            back.T @ inputs,
            back.sum(axis=0),
            active.T @ residual,
            inputs.T @ residual,
            residual.sum(keepdims=True),
        ]
        penalised = np.append(flat[:-1], 0.0)
        value = (share * (np.logaddexp(0, odds) - labels * odds)).sum(dtype=np.float64)
        gradient = np.concatenate([part.ravel() for part in gradients]).astype(np.float64)
        return float(value + WEIGHT_DECAY * (penalised @ penalised)), gradient + 2 * WEIGHT_DECAY * penalised

    flat = np.concatenate([part.ravel() for part in start.values()])
    found = minimize(loss, flat, jac=True, method="L-BFGS-B", options={"maxiter": MAX_ITERATIONS, "maxcor": 20}).x
    return parts(found)


def average_precision(score: Array, outcome: Array, weight: Array) -> float:
    """Return the average precision of the edges that most annotators separate."""
    order = np.argsort(-score)
    hit = (weight * (outcome > 0.5))[order]
    precision = np.cumsum(hit) / np.cumsum(weight[order])
    return float((precision * hit).sum() / hit.sum())


@dataclass
class Fitted:
    """Weights fitted to all photographs; weights and log-odds of cross-validation."""

    weights: CueWeights
    by_fold: list[CueWeights]
    first: list[Array]
    log_odds: list[Array]


def fit(photographs: list[Edges], without: Collection[str] = ()) -> Fitted:
    """Fit both stages without the named cues, with cross-validation."""
    tables = [np.stack(list(p.local.values()), axis=1) for p in photographs]
    kept = np.array([name not in without for name in photographs[0].local])
    tables, mean, deviation = standardize(tables, kept)
    firsts, first = cross_validate(photographs, tables, logistic, lambda w, x: w[0] + x @ w[1:])
    group = partial(grouping_cues, spectral="apart" not in without)
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:  # a fork may hang: there were threads
        statistics, touching = [p.statistics for p in photographs], [p.adjacency for p in photographs]
        found = list(pool.map(group, first, statistics, touching, chunksize=8))
    if unknown := set(without) - set(found[0]) - set(photographs[0].local):
        raise ValueError(f"no such cues: {unknown}")
    kept_more = np.array([name not in without for name in found[0]])
    more, mean_more, deviation_more = standardize([np.stack(list(cues.values()), axis=1) for cues in found], kept_more)
    tables = [np.hstack(pair) for pair in zip(tables, more, strict=True)]

    scale = {"mean": np.append(mean, mean_more), "deviation": np.append(deviation, deviation_more)}

    def predict(net: dict[str, Array], x: Array) -> Array:
        return log_odds_of_standardized(net, x)

    nets, log_odds = cross_validate(photographs, tables, network, predict)
    by_fold: list[CueWeights] = [{"first": w, **scale, **net} for w, net in zip(firsts, nets, strict=True)]
    return Fitted(by_fold[-1], by_fold[:-1], first, log_odds)


def cross_validate(
    photographs: Sequence[Outcomes], tables: list[Array], fit_model: FitModel, predict: Callable[[Any, Array], Array]
) -> tuple[list[Any], list[Array]]:
    """Return fits to all folds but each, and at last to all; and the predictions for the photographs left out."""
    folds: list[int | None] = [*range(N_FOLDS), None]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda fold: fit_to(photographs, tables, fit_model, without=fold), folds)
        fitted = dict(zip(folds, found, strict=True))
    return list(fitted.values()), [predict(fitted[p.fold], x) for p, x in zip(photographs, tables, strict=True)]


def fit_to(
    photographs: Sequence[Outcomes], tables: list[Array], fit_model: FitModel, without: int | None = None
) -> Any:
    """Return the fit to the edges of all photographs but those of a fold, or of all where it is None."""
    rows = [(x, p.outcome, p.weight) for p, x in zip(photographs, tables, strict=True) if p.fold != without]
    return fit_model(*map(np.concatenate, zip(*rows, strict=True)))


def standardize(tables: list[Array], kept: NDArray[np.bool_]) -> tuple[list[Array], Array, Array]:
    """Return standardized columns, their means and standard deviations; columns that are not kept are 0."""
    joined = np.concatenate(tables)
    mean, deviation = joined.mean(axis=0), np.where(kept, joined.std(axis=0), np.inf)
    return [(table - mean) / deviation for table in tables], mean, deviation


def training_edges(is_gray: bool = False) -> list[Edges]:
    """Return the edges of all training photographs of BSDS300, unchanged and changed."""
    tasks = []
    for i, example in enumerate(bsds(data_root(), "train")):
        versions = (ORIGINAL, VERSIONS[1 + i % 4])
        tasks += [(i, example, i % N_FOLDS, version, is_gray) for version in versions]
    with ProcessPoolExecutor() as pool:
        return list(pool.map(edges_of, *zip(*tasks, strict=True)))


def quality(photographs: Sequence[Outcomes], log_odds: list[Array], version: str = ORIGINAL) -> str:
    """Return the average precision of log-odds, mean over folds, and their cross-entropy in nats, as text."""
    rows = [
        (p.fold, odds, p.outcome, p.weight)
        for p, odds in zip(photographs, log_odds, strict=True)
        if p.version == version
    ]
    found = []
    for fold in sorted({row[0] for row in rows}, key=str):
        columns = zip(*(row[1:] for row in rows if row[0] == fold), strict=True)
        found.append(average_precision(*(np.concatenate(column) for column in columns)))
    odds, outcome, weight = (np.concatenate(column) for column in zip(*(row[1:] for row in rows), strict=True))
    entropy = (weight * (np.logaddexp(0, odds) - outcome * odds)).sum() / weight.sum()
    brier = (weight * np.square(1 / (1 + np.exp(-odds)) - outcome)).sum() / weight.sum()
    precision = f"average precision {np.mean(found):.3f} ({min(found):.3f} to {max(found):.3f})"
    return f"{precision}, Brier {brier:.4f}, cross-entropy {entropy:.4f}"


def study() -> dict[str, object]:
    """Fit and write the weights; return the quality of each stage in cross-validation."""
    figures: dict[str, object] = {}
    stored: dict[str, Array] = {}
    by_fold: list[dict[str, Array]] = [{} for _ in range(N_FOLDS)]
    for kind in ("color", "gray"):
        photographs = training_edges(is_gray=kind == "gray")
        fitted = fit(photographs, without=CHROMA_CUES if kind == "gray" else ())
        for arrays, weights in zip((stored, *by_fold), (fitted.weights, *fitted.by_fold), strict=True):
            arrays |= {f"{kind} {name}": values for name, values in weights.items()}
        figures[f"{kind}, local cues alone"] = quality(photographs, fitted.first)
        figures |= {f"{kind}, {version}": quality(photographs, fitted.log_odds, version) for version in VERSIONS}
        figures[f"{kind}, single cues"] = ", ".join(
            f"{name} {precision:.3f}" for name, precision in single_cues(photographs).items()
        )
    write_weights(stored, by_fold)
    return figures | {"written to": f"{WEIGHTS_PATH}, {FOLDER}"}


def write_weights(stored: dict[str, Array], by_fold: Sequence[dict[str, Array]]) -> None:
    """Write weights to the package and to the files of the folds, which keep those of other kinds of images."""
    for path, arrays in ((WEIGHTS_PATH, stored), *((weights_path(k), found) for k, found in enumerate(by_fold))):
        with np.load(path) if path.exists() else nullcontext({}) as before:
            kept = dict(before) | arrays
        atomic_write(path, lambda file, kept=kept: np.savez_compressed(file, **kept))  # type: ignore[misc]


def single_cues(photographs: list[Edges]) -> dict[str, float]:
    """Return the average precision of each local cue alone."""
    originals = [p for p in photographs if p.version == ORIGINAL]
    outcome, weight = (np.concatenate([getattr(p, name) for p in originals]) for name in ("outcome", "weight"))
    cues = {name: np.concatenate([p.local[name] for p in originals]) for name in originals[0].local}
    return {name: average_precision(values, outcome, weight) for name, values in cues.items()}
