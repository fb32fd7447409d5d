"""The methods that can be compared, by name, each with its settings."""

import hashlib
import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from skimage.measure import label as connected_pieces

import spinseg as ss
from spinseg._validation import check_choice, invalid
from spinseg.graph.adjacency import region_adjacency
from spinseg.graph.merging import merge_heights
from spinseg.image.picture import as_picture
from spinseg.image.working import working_copy
from spinseg.model.priors import DirichletProcess, FiniteDirichlet, PartitionPrior, PitmanYor, Potts
from spinseg.partition.pairs import separation_probability
from spinseg.sampler.plan import UnreachableWarning
from spinseg.segmentation.presets.paper import Paper
from spinseg.segmentation.presets.photo import Photo
from spinseg.segmentation.presets.preset import Preset
from spinseg.segmentation.problem import prepare
from spinseg.segmentation.result import Hierarchy
from studies.evaluation.answers import Answer, EdgeProbabilities, answer_and_segmentation
from studies.evaluation.baselines import library, objects
from studies.evaluation.baselines.ddcrp import sample_ddcrp
from studies.evaluation.baselines.mean_shift import mean_shift

# Of nested regions, chosen on training photographs of BSDS300 with evidence learned without them, by the rule of the
# other methods: `python -m studies baselines`.
EVIDENCE_LEVEL = 0.45


class Method(NamedTuple):
    """A segmentation method: `run(image, seed)` returns a label image, or an `Answer` with probabilities and draws.

    A method that `reads` is given the path of the image in place of its array.
    """

    name: str
    about: str
    run: Callable[[Any, int], NDArray[np.int32] | Answer]
    settings: str
    reads: bool = False

    def answer(self, image: NDArray[Any] | Path, seed: int) -> Answer:
        """Return the answer of the method."""
        found = self.run(image, seed)
        return found if isinstance(found, Answer) else Answer(found)

    @property
    def settings_hash(self) -> str:
        """Return a short hash of the settings, by which results of other settings are recognized."""
        return hashlib.sha256(self.settings.encode()).hexdigest()[:8]


def get_methods(names: Iterable[str], known: Mapping[str, Method] | None = None) -> list[Method]:
    """Return the methods of these names, each once, by default of METHODS."""
    known = METHODS if known is None else known
    found = list(names)
    for name in found:
        check_choice("methods", name, list(known))
    if len(set(found)) != len(found) or not found:
        invalid("methods", "name at least one method, each once", found)
    return [known[name] for name in found]


def _spinseg(image: NDArray[Any], seed: int, *, preset: Preset) -> Answer:
    """Return the answer of `segment` with this preset."""
    with warnings.catch_warnings():  # the paper's sampler with size limits is what is compared
        warnings.simplefilter("ignore", UnreachableWarning)
        return answer_and_segmentation(image, preset, seed)[0]


def evidence_of(image: NDArray[Any], preset: Photo = Photo()) -> tuple[EdgeProbabilities, Hierarchy]:  # noqa: B008
    """Return the probabilities of boundaries that the evidence of each edge gives alone, and their nested regions."""
    picture = as_picture(image)
    working_image = working_copy(picture, picture.inside, preset.max_pixels)
    maps = preset.maps(working_image)
    sites = preset.make_sites(working_image, maps)
    graph = preset.graph(sites, working_image)
    separation = expit(preset.log_odds(working_image.picture, sites, graph, maps))
    sites = working_image.completed(working_image.to_original(sites, outside=-1))
    nested = Hierarchy(sites, graph, merge_heights(graph, separation), start_label=0)
    return EdgeProbabilities(sites, graph.edges, graph.length, separation), nested


def _evidence(image: NDArray[Any], seed: int, *, level: float = EVIDENCE_LEVEL) -> Answer:
    """Return the answer of the evidence alone: its probabilities, and the labels of its nested regions at a level."""
    probabilities, nested = evidence_of(image)
    return Answer(nested.labels(level), probabilities)


def _spinseg_method(name: str, about: str, preset: Preset) -> Method:
    return Method(name, about, partial(_spinseg, preset=preset), repr(preset))


def _ddcrp(
    image: NDArray[Any],
    seed: int,
    *,
    count_weight: float | None = Paper().count_weight,
    sweeps: int = 100,
    **keywords: Any,
) -> NDArray[np.int32]:
    """Return labels of the distance-dependent Chinese restaurant process, on the sites and words of the paper."""
    problem = prepare(image, Paper(count_weight=count_weight))
    model = problem.model
    found = sample_ddcrp(model.graph, model.likelihood, sweeps, rng=seed, **keywords).best_labels
    return np.append(found, np.int32(-1))[problem.sites]  # -1 where there is no site


def _call(
    image: NDArray[Any], seed: int, *, method: Callable[..., NDArray[np.int32] | Answer], seeded: bool
) -> NDArray[np.int32] | Answer:
    """Return the result of a method that takes a seed as a keyword, or that is deterministic."""
    return method(image, seed=seed) if seeded else method(image)


def _other_method(name: str, about: str, run: Callable[..., NDArray[np.int32] | Answer], **keywords: Any) -> Method:
    defaults = {key: value.default for key, value in inspect.signature(run).parameters.items()}
    settings = {key: value for key, value in {**defaults, **keywords}.items() if value is not inspect.Parameter.empty}
    run_seeded = partial(_call, method=partial(run, **keywords), seeded="seed" in defaults)
    return Method(name, about, run_seeded, f"{run.__name__} {settings!r}")


def _all_methods() -> Iterable[Method]:
    """Yield all methods, those of spinseg first."""
    yield _spinseg_method("spinseg", "the preset for photographs", Photo())
    yield _other_method("evidence", "the evidence of each boundary alone, without a posterior", _evidence)
    for moves, suffix, remark in (("gsw", "", ""), ("auto", "-auto", ", with splits and merges")):
        yield _spinseg_method(f"potts-dp{suffix}", f"the paper's model{remark}", Paper(moves=moves))
        for size in (3, 6, 9):
            about, prior = f"the paper's model with T_min = {size}{remark}", DirichletProcess(3.0, min_size=size)
            yield _spinseg_method(f"potts-dp{suffix}-min{size}", about, Paper(moves=moves, prior=prior))
    yield _spinseg_method(
        "gibbs", "the paper's model by single-site Gibbs sampling, Orbanz & Buhmann 2008", Paper(lam=0.0)
    )
    yield _spinseg_method("swendsen-wang", "the paper's model by the classical Swendsen-Wang algorithm", Paper(lam=1.0))
    priors: dict[str, tuple[str, PartitionPrior]] = {
        "potts": ("Potts model of 10 labels", Potts(10)),
        "finite-dirichlet": ("Potts-Dirichlet model of 10 labels", FiniteDirichlet(10, 1.0)),
        "pitman-yor": ("Potts-Pitman-Yor model, discount 1/4", PitmanYor(3.0, 0.25)),
    }
    for name, (about, other_prior) in priors.items():
        yield _spinseg_method(name, about, Paper(prior=other_prior))
    yield _other_method("mean-shift", "mean shift as the paper ran it", mean_shift)
    tuned = {"spatial_bandwidth": 10.0, "range_bandwidth": 8.0, "colors": "luv"}
    yield _other_method("mean-shift-tuned", "mean shift tuned on training photographs of BSDS300", mean_shift, **tuned)
    rdd_crp, dd_crp = {"alpha": 1e-10, "gamma": 1e-2}, {"alpha": 1e-10, "gamma": None}  # settings of the paper
    yield _other_method("rdd-crp", "region distance-dependent CRP, Ghosh et al. 2011", _ddcrp, **rdd_crp)
    about = "the same with a smaller count weight, at which it finds fewer clusters"
    yield _other_method("rdd-crp-light", about, _ddcrp, **rdd_crp, count_weight=0.02)
    yield _other_method("dd-crp", "distance-dependent CRP, Ghosh et al. 2011", _ddcrp, **dd_crp)
    yield _other_method("felzenszwalb", "Felzenszwalb & Huttenlocher 2004, scikit-image", library.felzenszwalb)
    yield _other_method("quickshift", "quickshift, scikit-image", library.quickshift)
    yield _other_method("slic-rag", "SLIC and merging of its regions, scikit-image", library.slic_merged)
    yield _other_method(
        "gaussian-mixture", "Dirichlet-process Gaussian mixture, scikit-learn", library.gaussian_mixture
    )


def _default_call(image: NDArray[Any] | Path, seed: int) -> Answer:
    """Return the answer of `segment` as it is called by default, on one thread, with the outlines that it refines."""
    found = ss.segment(image, rng=seed, workers=1, start_label=0)
    graph, draws = region_adjacency(found.sites), found.chains.labels
    separation = separation_probability(draws, graph.edges)
    return Answer(found.labels, EdgeProbabilities(found.sites, graph.edges, graph.length, separation))


def _pieces_of_classes(image: NDArray[Any], *, seed: int) -> NDArray[np.int32]:
    """Return the connected pieces of the classes that `Classes` finds."""
    classes = ss.segment(image, "classes", rng=seed, workers=1).labels
    return connected_pieces(classes, connectivity=1).astype(np.int32) - 1  # those outside, 0, are -1


def _object_methods() -> Iterable[Method]:
    """Yield methods that find objects on a background."""
    settings = f"segment {inspect.signature(ss.segment).parameters['preset'].default!r}"
    yield Method("spinseg", "the default call, `ss.segment(path)`", _default_call, settings, reads=True)
    yield _other_method("classes", "connected pieces of the preset for classes", _pieces_of_classes)
    about = "h-minima watershed of the boundary network's own map, without a posterior"
    yield _other_method("network-watershed", about, objects.network_watershed)
    about = "Otsu's threshold and a watershed of distances, scikit-image"
    yield _other_method("otsu-watershed", about, objects.otsu_watershed)
    about = "a local threshold and a watershed of distances, scikit-image"
    yield _other_method("local-watershed", about, objects.local_watershed)
    tuned = {"scale": 800.0, "sigma": 0.8, "min_size": 60}
    about = "Felzenszwalb & Huttenlocher 2004, scikit-image, tuned on training nuclei"
    yield _other_method("felzenszwalb", about, library.felzenszwalb, **tuned)


METHODS = {method.name: method for method in _all_methods()}
OBJECT_METHODS = {method.name: method for method in _object_methods()}
