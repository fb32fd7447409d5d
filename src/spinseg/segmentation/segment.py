"""`segment`: from a picture to its segmentation."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinseg._run.progress import Report
from spinseg._validation import check_int, seed_of
from spinseg.image.features import Codebook, site_sizes
from spinseg.image.layout import ChannelAxis, IntensityRange
from spinseg.image.picture import Picture
from spinseg.image.seeds import Seeds
from spinseg.model.posterior import Model
from spinseg.model.priors import PartitionPrior
from spinseg.sampler.chains import Chains, SamplingInterrupted
from spinseg.sampler.convergence import may_stop
from spinseg.sampler.plan import Lam
from spinseg.sampler.sampler import MAX_LABELS, sample, thin_to_fit
from spinseg.segmentation.presets import changed_settings, settings_of
from spinseg.segmentation.problem import Problem, prepare
from spinseg.segmentation.result import Segmentation, SegmentationInterrupted
from spinseg.segmentation.settings import Settings, Start, given_settings
from spinseg.segmentation.verdict import partitions_of_chains

# Where the number of sweeps is left to the program: those discarded, those between two looks, and the most.
BURN_IN, ROUND_SWEEPS, MAX_SWEEPS = 40, 40, 400
TIMED_SWEEPS = 10  # between two looks at the clock, and the fewest
SINGLE_SITE_SWEEPS = 3  # from the coarse segmentation to the start of the chains


def segment(
    image: Picture | ArrayLike | str | os.PathLike[str],
    preset: str = "photo",
    *,
    sites: str | ArrayLike | None = None,
    n_sites: int | None = None,
    connectivity: int | None = None,
    codebook: str | Codebook | None = None,
    n_words: int | None = None,
    count_weight: float | None = None,
    phi: float | None = None,
    kappa: float | None = None,
    prior: PartitionPrior | None = None,
    beta: float | None = None,
    regions: bool | None = None,
    detail: float | None = None,
    estimate: str | None = None,
    moves: str | None = None,
    lam: Lam = None,
    init: Start | None = None,
    sweeps: int | None = None,
    seconds: float | None = None,
    chains: int | None = None,
    start_label: int | None = None,
    mask: ArrayLike | str | os.PathLike[str] | None = None,
    seeds: Seeds | None = None,
    channel_axis: ChannelAxis = "auto",
    intensity_range: IntensityRange | None = None,
    rng: int | np.random.Generator | None = None,
    workers: int | None = None,
    progress: bool | Report | None = None,
) -> Segmentation:
    """Divide a picture into clusters, and say how sure that is.

    Which pixels of a picture belong together? The answer is a label for every pixel, with the probability of a boundary
    at every pixel and the posterior that both come from. The number of clusters is inferred. Every parameter but
    `image` may be left out: the preset then decides.

    Parameters
    ----------
    image : array, Picture or path
        An array of shape (H, W), (H, W, C) or a volume, of any number type, or a file that holds one: PNG, JPEG, GIF,
        WebP, BMP, JPEG 2000, TIFF, NPY, a folder of Zarr, and with an extra NIfTI. It is never changed.
        Pixels that are masked in a NumPy masked array, and pixels of opacity 0, are outside. `found.read_as` says how
        it was read.
    preset : {"photo", "classes", "paper"}
        "photo" is the best that is known for photographs: sites that follow edges, couplings that carry the evidence of
        a boundary, and a tempered likelihood of color and position. "classes" finds kinds of tissue or material, in
        pictures and volumes of any channels: a kind may lie in many places, and outlines follow the pixels. "paper" has
        the settings of Xu, Caron & Doucet: superpixels of 60 pixels, histograms of 120 color words, a Dirichlet process
        of concentration 3, equal couplings of 0.02, and their sampler.
    sites : {"slic", "watershed", "felzenszwalb", "grid", "pixels"} or label image, optional
        How sites are made, or the sites themselves (-1 outside). Where every pixel is a site, "photo" starts from a
        segmentation with larger sites, describes pixels by their color word, and couples them by contrast.
    n_sites : int, optional
        About how many sites there are, to 10 percent. By default "classes" and "paper" have one for 30 and 60
        pixels. "photo" starts from one for 190 pixels, from 800 in an image of fewer than 152,000 pixels, and from one
        for 40 pixels in one of fewer than 32,000; small ones then join a neighbor, so that about three quarters are
        left. "photo" decides what belongs together in a picture reduced to 300,000 pixels, if it has more, and then
        draws the outlines at full size; those of a volume stay as coarse.
    connectivity : int, optional
        Along how many axes two neighboring pixels may differ, where sites are pixels. It is 1 by default, for 4
        neighbors or 6 in a volume, and up to 2 or 3, for 8 or 26.
    codebook : {"general", "image"} or Codebook, optional
        The color words of "paper" and "classes": those that come with the package, words fitted to this image, or your
        own.
    n_words : int, optional
        How many words the first two have.
    count_weight : float, optional
        How many observations a pixel counts for. Neighboring pixels are far from independent.
    phi : float, optional
        The mass of the Dirichlet prior on the color words of a cluster, in observations ("paper", "classes").
    kappa : float, optional
        How many observations the prior mean of a cluster's Gaussians counts for ("photo").
    prior : PartitionPrior, optional
        The prior on the partition of the sites.
    beta : float, optional
        One coupling for all pairs of touching sites, instead of the preset's couplings.
    regions : bool, optional
        Whether every cluster is one connected region. In "photo" the posterior sees to that. In "classes", where every
        pixel is a site, or where `beta` is given, regions are estimated from the connected pieces of every draw, or
        are those of the best partition (`estimate="best"`), and small ones join a neighbor.
    detail : float, optional
        How finely a picture is divided, from 0 to 1. In "photo" the draws are of every detail, and the labels are an
        estimate from those near this one, by default 0.65; `Segmentation.at` gives another from the same draws. Where
        pieces are made regions afterwards, it sets how small they may be, by default 0.5: 0.45 % of the image in
        "photo", and one site in other presets; 4 times as much at 0, and a quarter at 1. It is refused where it has no
        effect, as in "paper" without regions.
    estimate : {"vi", "binder", "best"}, optional
        Which partition the labels come from: the one of least expected variation of information over the draws
        (`minimize_vi`), the one of least expected loss of Binder (`minimize_binder`), or the best that was visited, in
        "photo" at the nearest of its details. Where the prior forbids the one of least loss, as `Potts(3)` does four
        clusters, it is the one of least loss with at most as many clusters as a draw, or else the best draw.
    moves, lam, sweeps, chains, workers, progress
        As in `sample`. The first half of the sweeps is burn-in. "photo" by default discards 40, and goes on until the
        chains have converged, to 400 at most; it runs `chains` chains for each of twelve levels of detail.
    seconds : float, optional
        How long to sample, in place of `sweeps`: about so long, or until 256 MB are filled with draws. The number of
        sweeps then depends on the machine; `found.python_code` has it, and gives the same segmentation again.
    init : "opposite", "dispersed", or "one", "singletons", "greedy", labels, or one of the latter for each, optional
        Where chains start, as in `sample`. `found.chains.last_labels` is where the chains of a segmentation `found`
        with the same sites ended.
    start_label : {0, 1}, optional
        The label of the largest cluster, 1 by default; pixels outside have one less. `found.partition` and
        `found.sites` always count from 0.
    mask : array of bool or path, optional
        Where to segment, in the image's shape. Pixels that are masked or transparent in the image stay outside.
    seeds : array of int, mapping or path, optional
        Pixels with the same positive number lie in one region, and pixels with different ones in different regions:
        in every draw, and in `labels` at every detail. Other pixels, with 0 or less, are free. It is a label image in
        the image's shape, a file that holds one, or the pixels of each seed, {1: [(row, column), ..], 2: ..}. Only
        where the posterior has connected clusters.
    channel_axis : int, None or "auto"
        The axis of the channels, in the order of the array or of the file; None for an image without. "auto" believes
        a file that names its axes, and otherwise judges by their lengths, as `as_picture` explains.
    intensity_range : (float, float), optional
        The numbers of no and of full intensity. By default they are 0 and 255 for uint8, and for any other type 0 and
        1, 255 or 65535 where the numbers show it, or else the smallest and the largest number; `as_picture` has the
        whole rule.
    rng : int, Generator or None
        The seed. The same seed gives the same segmentation on one machine with the same versions. If it is None, a seed
        is drawn and kept in `seed`.

    Raises
    ------
    SegmentationInterrupted
        On Ctrl-C while sampling. Its `segmentation` is what the finished sweeps give; where pixels are sites, that may
        be the segmentation with larger sites that the chains would have started from.

    Examples
    --------
    >>> import spinseg as ss
    >>> image = np.zeros((60, 90)); image[10:50, 20:60] = 1
    >>> ss.segment(image, rng=0).n_clusters
    2
    """
    settings = settings_of(preset, given_settings(locals()))
    if workers is not None:
        check_int("workers", workers, at_least=1)
    seed = seed_of(rng)
    problem = prepare(image, settings, mask, channel_axis, intensity_range, seeds)
    start = settings.init
    if isinstance(start, str) and start == "coarse":
        try:
            start = _coarse_start(problem, seed, workers, progress)
        except SegmentationInterrupted as stop:
            raise SegmentationInterrupted(replace(stop.segmentation, **problem.provenance)) from None
    try:
        how: dict[str, Any] = {"area": site_sizes(problem.sites), "workers": workers, "progress": progress}
        sampled = sample_posterior(problem.model, settings, start, seed, **how)
    except SamplingInterrupted as stop:
        raise SegmentationInterrupted(problem.segmentation(stop.chains, seed, interrupted=True)) from None
    return problem.segmentation(sampled, seed)


def _coarse_start(
    problem: Problem, seed: int, workers: int | None, progress: bool | Report | None
) -> str | NDArray[np.int32]:
    """Labels of the sites from a segmentation with larger sites, or "one" if the prior forbids such clusters.

    A few sweeps of single sites first move its outlines to the edges of the picture: with bonds, the strip between
    outline and edge would move as one block.
    """
    model, settings = problem.model, problem.settings
    found = segment(
        problem.picture,
        settings.preset,
        mask=problem.working_image.original_inside,
        detail=changed_settings(settings).get("detail"),
        chains=settings.chains,
        start_label=settings.start_label,
        rng=seed,
        workers=workers,
        progress=progress,
    )
    labels = found.partition[found.sites[found.sites >= 0]]
    if not model.allows(labels):
        return "one"
    try:
        return sample(model, SINGLE_SITE_SWEEPS, 1, lam=0.0, init=labels, rng=seed).best_labels
    except SamplingInterrupted:
        raise SegmentationInterrupted(replace(found, interrupted=True)) from None


def sample_posterior(
    model: Model,
    settings: Settings,
    start: Start,
    seed: int,
    *,
    area: NDArray[np.int64] | None = None,
    **options: Any,
) -> Chains:
    """Chains of a posterior as the settings ask for, with `options` of `sample`.

    The first half of the sweeps is burn-in. Where their number is left to the program, chains run until more sweeps are
    of no use, or for MAX_SWEEPS, after a burn-in of BURN_IN. `area` is the number of pixels of each site. For a large
    graph fewer draws are kept.
    """
    sampler = (settings.chains, settings.moves, settings.lam, start)
    n_runners = settings.chains * model.n_components
    n_labels = n_runners * model.graph.n_sites  # of one draw of all
    if settings.seconds is not None:
        stop = time.monotonic() + settings.seconds
        options |= {"until": lambda _: time.monotonic() >= stop, "check_every": TIMED_SWEEPS}
        try:
            sampled = sample(model, max(TIMED_SWEEPS, MAX_LABELS // n_labels), *sampler, rng=seed, **options)
        except SamplingInterrupted as interrupt:
            raise SamplingInterrupted(_last_half(interrupt.chains)) from None
        return _last_half(sampled)
    sweeps, burn_in = settings.sweeps, settings.sweeps // 2 if settings.sweeps else BURN_IN
    if sweeps is None:
        sweeps = MAX_SWEEPS
        alone = partial(partitions_of_chains, model=model, settings=settings, seed=seed)
        until = partial(may_stop, graph=model.graph, partitions=alone, area=area)
        options |= {"until": until, "check_every": ROUND_SWEEPS}
    thin = thin_to_fit(sweeps - burn_in, n_labels)
    return sample(model, sweeps, *sampler, burn_in=burn_in, thin=thin, rng=seed, **options)


def _last_half(chains: Chains) -> Chains:
    """Chains whose burn-in is the first half of their sweeps."""
    return chains.after(chains.n_sweeps // 2)
