"""What kinds of regions are worth: `Objects` beside `Measured`, `Photo` with kinds beside `Photo`, and how chains mix.

Every third training nuclei image, every third training photograph of BSDS300, both with networks that have not seen
them (`held_out.py`), and rendered scenes. Kinds of photographs have no position; a third row leaves it out without
kinds. F1 without the background is that where regions of the kind of the largest one are no objects. Chains start from
one region and from singletons, at the middle level of detail, on ten nuclei images. The data are in ../shared/data or
SPINSEG_DATA.
"""

import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

import numpy as np
import skimage.data

import spinseg as ss
from spinseg.sampler.diagnostics import diagnose
from spinseg.segmentation.presets.photo import FeatureWeights
from spinseg.segmentation.problem import prepare
from studies import scenes
from studies.evaluation.datasets import Example, bsds, data_root, get_dataset
from studies.evaluation.metrics import Scores, adjusted_rand_index
from studies.evaluation.objects import object_scores
from studies.questions.held_out import held_out_evidence
from studies.questions.variants import Scored, score, text_of

EVERY = 3  # of the training images
N_SCENES, SHAPE, SEED = 3, (160, 160), 60  # for each renderer
GAINS = [
    Scores._fields.index(name)
    for name in ("probabilistic_rand_index", "variation_of_information", "segmentation_covering")
]
SAMPLES = ("brick", "gravel", "coins")
N_MIXED, SWEEPS, BURN_IN = 10, 400, 100
PRESETS: dict[str, ss.Measured] = {"measured": ss.Measured(), "objects": ss.Objects()}


class PhotoOfKinds(ss.Photo, listed=False):
    """`Photo` whose regions have kinds."""

    def prior_of_kinds(self) -> ss.PartitionPrior:
        """The prior of the kinds of regions."""
        return ss.DirichletProcess(0.1)


NO_POSITION = FeatureWeights(position=1e-9)
PHOTOGRAPHS: dict[str, ss.Photo] = {
    "photo": ss.Photo(),
    "photo without position": ss.Photo(feature_weights=NO_POSITION),
    "photo with kinds": PhotoOfKinds(feature_weights=NO_POSITION),
}


def of_nuclei(task: tuple[int, Example]) -> list[list[float]]:
    """Return, for each preset, F1 at both overlaps, F1 without the background, kinds, regions and processor seconds."""
    number, example = task
    truth, rows = example.annotations()[0], []
    for preset in PRESETS.values():
        own, began = replace(preset, evidence=held_out_evidence(number, preset.evidence)), time.process_time()
        found = ss.segment(example.image(), own, rng=0, workers=1, progress=False)
        spent = time.process_time() - began
        labels, n_kinds = found.labels, 0
        if found.kinds is not None:
            n_kinds, index = int(found.kinds.max()) + 1, labels - found.start_label
            labels = np.where(found.kinds[index] == found.kinds[0], found.start_label, labels)
        scores = object_scores(found.labels, truth)
        rows.append([*scores, object_scores(labels, truth).f_50, n_kinds, found.n_clusters, spent])
    return rows


def of_photograph(task: tuple[int, Example]) -> list[Scored]:
    """Return the scores of each variant of `Photo`."""
    number, example = task
    return [score(replace(preset, evidence=held_out_evidence(number)), example) for preset in PHOTOGRAPHS.values()]


def of_scene(task: tuple[int, str, int]) -> list[float]:
    """Return the adjusted Rand index of each preset on a rendered scene."""
    number, renderer, seed = task
    scene = scenes.render(renderer, SHAPE, np.random.default_rng([SEED, number, seed]))
    picture = ss.as_picture(scene.image, channel_axis=-1)
    found = [ss.segment(picture, preset, rng=0, workers=1, progress=False) for preset in PRESETS.values()]
    return [adjusted_rand_index(each.labels, scene.labels) for each in found]


def of_sample(name: str) -> str:
    """Return regions and kinds of an image of scikit-image."""
    found = ss.segment(getattr(skimage.data, name)(), ss.Objects(), rng=0, workers=1, progress=False)
    assert found.kinds is not None
    return f"{found.n_clusters} regions; of each kind {np.bincount(found.kinds).tolist()}"


def of_chains(example: Example) -> list[list[float]]:
    """Return, for each preset, R-hat and ESS of chains from opposite starts, and milliseconds of a sweep."""
    rows = []
    for preset in PRESETS.values():
        model = prepare(example.image(), preset).model
        model, began = model.component(model.n_components // 2), time.process_time()
        chains = ss.sample(model, SWEEPS, 4, init="opposite", burn_in=BURN_IN, rng=0, workers=1, progress=False)
        spent, found = time.process_time() - began, diagnose(chains, model.graph)
        row = [found.r_hat or np.nan, found.ess or np.nan, 1000 * spent / (4 * SWEEPS)]
        if "n_kinds" in found.table:
            row.append(found.table["n_kinds"].r_hat or np.nan)
        rows.append(row)
    return rows


def study() -> dict[str, object]:
    """Return the scores of both presets, and of photographs with and without kinds."""
    warnings.simplefilter("ignore")
    nuclei = list(enumerate(get_dataset("nuclei", data_root(), "train")))[::EVERY]
    rendered = [(n, kind, seed) for n, kind in enumerate(scenes.RENDERERS) for seed in range(N_SCENES)]
    figures: dict[str, object] = {}
    with ProcessPoolExecutor() as pool:
        scored = np.array(list(pool.map(of_nuclei, nuclei)))
        of_scenes = np.array(list(pool.map(of_scene, rendered)))
        figures |= zip(SAMPLES, pool.map(of_sample, SAMPLES), strict=True)
        mixed = list(
            pool.map(of_chains, [example for _, example in nuclei[:: max(1, len(nuclei) // N_MIXED)]][:N_MIXED])
        )
    for p, name in enumerate(PRESETS):
        f_50, f_75, f_objects, n_kinds, n_regions, _ = scored[:, p].mean(axis=0)
        figures[f"{name}, {len(nuclei)} nuclei images"] = (
            f"F1 {f_50:.3f} / {f_75:.3f}, {f_objects:.3f} without the background; {n_regions:.1f} regions, "
            f"{n_kinds:.1f} kinds ({np.bincount(scored[:, p, 3].astype(int)).tolist()} images by number)"
        )
        by_kind = of_scenes[:, p].reshape(-1, N_SCENES).mean(axis=1)
        parts = ", ".join(f"{kind} {score:.2f}" for kind, score in zip(scenes.RENDERERS, by_kind, strict=True))
        figures[f"{name}, {len(rendered)} scenes"] = f"ARI {of_scenes[:, p].mean():.3f}: {parts}"
        r_hat, ess, spent = np.array([row[p][:3] for row in mixed]).T
        text = f"R-hat {np.median(r_hat):.3f} (worst {r_hat.max():.3f}), ESS {np.median(ess):.0f}"
        text += f", {np.median(spent):.2f} ms"
        kinds = [row[p][3] for row in mixed if len(row[p]) > 3]
        figures[f"{name}, {len(mixed)} nuclei images, a sweep"] = text + (
            f"; R-hat of the number of kinds {np.median(kinds):.3f} (worst {max(kinds):.3f})" if kinds else ""
        )
    return figures | of_photographs()


def of_photographs() -> dict[str, object]:
    """Return the scores of the variants of `Photo`, and by how much they differ from the first, with standard error."""
    photographs = list(enumerate(bsds(data_root(), "train")))[::EVERY]
    with ProcessPoolExecutor() as pool:
        rows = list(zip(*pool.map(of_photograph, photographs), strict=True))
    figures: dict[str, object] = {}
    for name, own in zip(PHOTOGRAPHS, rows, strict=True):
        regions, usual = (np.array([each.scores.regions for each in some]) for some in (own, rows[0]))
        better = (regions - usual)[:, GAINS]
        errors = better.std(axis=0, ddof=1) / np.sqrt(len(own))
        gains = ", ".join(f"{mean:+.4f} ({error:.4f})" for mean, error in zip(better.mean(axis=0), errors, strict=True))
        figures[f"{name}, {len(own)} photographs"] = f"{text_of(own)}; PRI, VoI, covering beside photo: {gains}"
    return figures
