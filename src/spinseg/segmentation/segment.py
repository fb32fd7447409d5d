"""From a picture to its segmentation: the whole pipeline, top to bottom."""

import os
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinseg._validation import check_int
from spinseg.image.features import Codebook
from spinseg.image.picture import ChannelAxis, Picture
from spinseg.inference.bonds import Lam
from spinseg.inference.chains import Chains, SamplingInterrupted
from spinseg.inference.progress import Report
from spinseg.inference.sampler import sample, seed_of, thin_to_fit
from spinseg.model.posterior import Model
from spinseg.model.priors import PartitionPrior
from spinseg.segmentation.problem import Scene, prepare
from spinseg.segmentation.result import Segmentation, SegmentationInterrupted
from spinseg.segmentation.settings import PRESETS, Settings, Start, settings_of

SINGLE_SITE_SWEEPS = 3  # between the coarse and the fine


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
    prior: PartitionPrior | None = None,
    beta: float | None = None,
    regions: bool | None = None,
    detail: float | None = None,
    estimate: str | None = None,
    moves: str | None = None,
    lam: Lam = None,
    init: Start | None = None,
    sweeps: int | None = None,
    chains: int | None = None,
    mask: ArrayLike | str | os.PathLike[str] | None = None,
    channel_axis: ChannelAxis = "auto",
    rng: int | np.random.Generator | None = None,
    workers: int | None = None,
    progress: bool | Report | None = None,
) -> Segmentation:
    """The segmentation of a picture, with the posterior it comes from.

    Every parameter but `image` may be left out; what is not given is the preset's.

    Parameters
    ----------
    image : array, Picture or path
        (H, W), (H, W, C) or a volume, of any number type, or a file that holds one. It is never changed. What is
        masked in a NumPy masked array is outside, and so are pixels of opacity 0.

        Intensities of uint8 run from 0 to 255. Other numbers, of any type, run from 0 to 1 where those used lie there;
        from 0 to 255 where they lie there and pass 2; from 0 to 65535 where they lie there and span three quarters of
        it, or are 8 bits spread over 16; otherwise, as with 10, 12 or 14 bits, from the smallest to the largest that is
        used, all channels alike. A number is used if five pixels of some 3 x 3 reach it, so that a few hot or dead
        pixels have no say: at most one number in a thousand at either end (`spinseg.image.picture.as_picture` has the
        whole rule).
    preset : {"photo", "paper"}
        "photo" is the best that is known for photographs: sites that follow edges, couplings that carry the evidence of
        a boundary, and a tempered likelihood of colour and place. "paper" has the settings of Xu, Caron & Doucet:
        superpixels of 60 pixels, histograms of 120 colour words, a Dirichlet process of concentration 3, equal
        couplings of 0.02, and their sampler.
    sites : {"slic", "watershed", "felzenszwalb", "grid", "pixels"} or label image, optional
        How sites are made, or the sites themselves (-1 outside). Where every pixel is a site, "photo" starts from a
        segmentation with larger ones, describes pixels by their colour word, and couples them by contrast.
    n_sites : int, optional
        About how many; by default one for 190 pixels, but 800 in smaller pictures ("photo"), or one for 60 ("paper").
        "photo" looks at a picture of more than 300,000 pixels at a smaller size, and its boundaries are as coarse as
        that.
    connectivity : int, optional
        Along how many axes two pixels may differ that are neighbours, where sites are pixels: 1, by default, for 4
        neighbours or 6 in a volume, up to 2 or 3 for 8 or 26.
    codebook : {"general", "image"} or Codebook, optional
        The colour words of "paper": those that come with the package, some fitted to this image, or your own.
    n_words : int, optional
        How many words the first two have.
    count_weight : float, optional
        How many observations a pixel counts for; neighbouring pixels are far from independent.
    phi : float, optional
        How many observations the base measure counts for.
    prior : PartitionPrior, optional
        On the partition of the sites.
    beta : float, optional
        One coupling for all pairs of touching sites, instead of the preset's.
    regions : bool, optional
        Whether each connected piece of a cluster becomes a cluster of its own, and small pieces join a neighbour.
    detail : float, optional
        How finely a picture is divided, from 0 to 1, by default 0.5: how little evidence makes a boundary, where
        couplings carry it ("photo" without `beta`), and how small a piece may be, where there are `regions` (from 1.8 %
        of the picture over 0.45 % to 0.11 %). Refused where there is neither, as in "paper".
    estimate : {"best", "vi"}, optional
        Which partition the labels come from: the best that the chains visited, or the one of least expected variation
        of information over all their draws (`minimum_vi`), which leaves out what the draws do not agree on.
    moves, lam, sweeps, chains, workers, progress
        As in `sample`. The first half of the sweeps is not drawn from.
    init : "one", "singletons", "greedy", labels of the sites, or one of these for each chain, optional
        Where chains start, as in `sample`. `found.chains.labels[:, -1]` is where those of another segmentation with the
        same sites ended.
    mask : array of bool or path, optional
        Where to segment, in the image's shape; less what is masked or transparent in the image.
    channel_axis : int, None or "auto"
        As in `as_picture`.
    rng : int, Generator or None
        Seed; the same seed gives the same segmentation on one machine with the same versions. Where it is None, one is
        drawn and kept in `seed`.

    Raises
    ------
    SegmentationInterrupted
        On Ctrl-C while sampling; its `segmentation` is what the finished sweeps give. Where pixels are sites, that may
        be the one with larger sites that the chains would have started from.

    Examples
    --------
    >>> import spinseg as ss
    >>> image = np.zeros((60, 90)); image[10:50, 20:60] = 1
    >>> ss.segment(image, rng=0).n_clusters
    2
    """
    given: dict[str, Any] = {"sites": sites, "n_sites": n_sites, "connectivity": connectivity}
    given |= {"codebook": codebook, "n_words": n_words}
    given |= {"count_weight": count_weight, "phi": phi, "prior": prior, "beta": beta, "regions": regions}
    given |= {"detail": detail, "estimate": estimate, "moves": moves, "lam": lam, "init": init}
    given |= {"sweeps": sweeps, "chains": chains}
    settings = settings_of(preset, {name: value for name, value in given.items() if value is not None})
    if workers is not None:
        check_int("workers", workers, at_least=1)
    seed = seed_of(rng)
    scene = prepare(image, settings, mask, channel_axis)
    start = settings.init
    if isinstance(start, str) and start == "coarse":
        try:
            start = _coarse(scene, seed, workers, progress)
        except SegmentationInterrupted as stop:
            raise SegmentationInterrupted(replace(stop.segmentation, **scene.told)) from None
    drawn, interrupted = _drawn(scene.model, settings, start, seed, workers, progress)
    segmentation = scene.segmentation(drawn, seed, interrupted)
    if interrupted:
        raise SegmentationInterrupted(segmentation)
    return segmentation


def _coarse(scene: Scene, seed: int, workers: int | None, progress: bool | Report | None) -> str | NDArray[np.int32]:
    """The labels that a segmentation with larger sites gives to those of a scene; one cluster if the prior forbids.

    Some sweeps move its outlines by single sites first: a sweep that moves whole clusters would join what they miss.
    """
    model, settings = scene.model, scene.settings
    found = segment(
        scene.picture,
        settings.preset,
        mask=scene.seen.original_inside,
        detail=settings.detail if PRESETS[settings.preset].has_detail else None,
        chains=settings.chains,
        rng=seed,
        workers=workers,
        progress=progress,
    )
    labels = found.labels[found.labels >= 0]
    if model.log_prior_of_sizes(np.bincount(labels)) == -np.inf:
        return "one"
    try:
        return sample(model, SINGLE_SITE_SWEEPS, 1, lam=0.0, init=labels, rng=seed).best_labels
    except SamplingInterrupted:
        raise SegmentationInterrupted(found) from None


def _drawn(
    model: Model,
    settings: Settings,
    start: Start,
    seed: int,
    workers: int | None,
    progress: bool | Report | None,
) -> tuple[Chains, bool]:
    """Chains of the posterior, and whether Ctrl-C cut them short. Of a large graph fewer draws are kept."""
    burn_in = settings.sweeps // 2
    try:
        chains = sample(
            model,
            settings.sweeps,
            settings.chains,
            settings.moves,
            settings.lam,
            start,
            burn_in=burn_in,
            thin=thin_to_fit(settings.sweeps - burn_in, settings.chains * model.graph.n_sites),
            rng=seed,
            workers=workers,
            progress=progress,
        )
    except SamplingInterrupted as stop:
        return stop.chains, True
    return chains, False
