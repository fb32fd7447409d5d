"""From a picture to its segmentation: the whole pipeline, top to bottom."""

import os
import sys
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinseg.image.adjacency import RegionAdjacency, grid_graph, region_adjacency
from spinseg.image.features import Codebook, site_sizes
from spinseg.image.files import read_mask, read_picture
from spinseg.image.pixels import ChannelAxis, Picture, WorkingCopy, as_picture, checked_mask, working_copy
from spinseg.image.render import paint_edges
from spinseg.image.superpixels import superpixels
from spinseg.inference.bonds import Lam
from spinseg.inference.chains import Chains, SamplingInterrupted
from spinseg.inference.estimates import separation_probability
from spinseg.inference.minimum import minimum_vi
from spinseg.inference.progress import Report
from spinseg.inference.regions import regions_of, without_small
from spinseg.inference.sampler import sample, seed_of, thin_to_fit
from spinseg.model.priors import PartitionPrior
from spinseg.model.target import Model
from spinseg.picture_model import maps_for, picture_model
from spinseg.presets import Settings, settings_of
from spinseg.segmentation import Segmentation, SegmentationInterrupted

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
        (H, W), (H, W, C) or a volume, of any number type, or a file that holds one. It is never changed.
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
        of the picture over 0.45 % to 0.11 %).
    estimate : {"best", "vi"}, optional
        Which partition the labels come from: the best that the chains visited, or the one of least expected variation
        of information over all their draws (`minimum_vi`), which leaves out what the draws do not agree on.
    moves, lam, sweeps, chains, workers, progress
        As in `sample`. The first half of the sweeps is not drawn from.
    mask : array of bool or path, optional
        Where to segment, in the image's shape.
    channel_axis : int, None or "auto"
        As in `as_picture`.
    rng : int, Generator or None
        Seed; the same seed gives the same segmentation. Where it is None, one is drawn and kept in `seed`.

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
    given |= {"detail": detail, "estimate": estimate, "moves": moves, "lam": lam, "sweeps": sweeps, "chains": chains}
    settings = settings_of(preset, {name: value for name, value in given.items() if value is not None})
    seed = seed_of(rng)
    picture, inside = _read(image, mask, channel_axis)
    told: dict[str, Any] = {
        "channel_axis": channel_axis,
        "source": os.fspath(image) if isinstance(image, (str, os.PathLike)) else None,
        "mask": None if mask is None else os.fspath(mask) if isinstance(mask, (str, os.PathLike)) else "an array",
    }

    made_here = isinstance(settings.sites, str) and settings.sites != "pixels"
    seen = working_copy(picture, inside, settings.max_pixels if made_here else None)
    sites_seen, adjacency, model = _posterior(seen, settings)
    start: str | NDArray[np.int32] = settings.init
    if start == "coarse":
        try:
            start = _coarse(picture, inside, model, settings, seed, workers, progress)
        except SegmentationInterrupted as stop:
            raise SegmentationInterrupted(replace(stop.segmentation, **told)) from None
    drawn, interrupted = _drawn(model, settings, start, seed, workers, progress)

    partition = _estimated(drawn, settings.estimate, seed)
    if settings.regions:
        smallest = settings.smallest_region * np.count_nonzero(sites_seen >= 0)
        pieces = regions_of(partition, model.graph)
        partition = without_small(pieces, adjacency, site_sizes(sites_seen), model.beta, smallest)
    separation = separation_probability(drawn.labels, model.graph.edges)
    site_image = seen.whole(sites_seen, outside=-1)
    segmentation = Segmentation(
        labels=np.append(partition, np.int32(-1))[site_image],  # site -1, the outside, takes the last
        sites=site_image,
        boundary_probability=seen.whole(paint_edges(sites_seen, model.graph.edges, separation), outside=0),
        partition=partition,
        separation=separation,
        model=model,
        chains=drawn,
        settings=settings,
        seed=seed,
        picture=picture,
        interrupted=interrupted,
        **told,
    )
    if interrupted:
        raise SegmentationInterrupted(segmentation)
    return segmentation


def _read(
    image: Picture | ArrayLike | str | os.PathLike[str],
    mask: ArrayLike | str | os.PathLike[str] | None,
    channel_axis: ChannelAxis,
) -> tuple[Picture, NDArray[np.bool_] | None]:
    """The picture in standard form, and its mask, each from a file or an array."""
    inside = read_mask(mask) if isinstance(mask, (str, os.PathLike)) else mask
    if isinstance(image, (str, os.PathLike)):
        picture = read_picture(image, channel_axis=channel_axis, mask=inside)
    else:
        picture = as_picture(image, channel_axis=channel_axis, mask=inside)
    return picture, checked_mask(inside, picture.shape)


def _posterior(seen: WorkingCopy, settings: Settings) -> tuple[NDArray[np.int32], RegionAdjacency, Model]:
    """The sites of a picture, which of them touch, and the posterior over their partitions."""
    n_pixels = int(np.prod(seen.picture.shape)) if seen.inside is None else int(np.count_nonzero(seen.inside))
    maps = maps_for(seen.picture, settings, seen.inside)
    sites = superpixels(
        seen.picture,
        kind=settings.sites,
        n_sites=settings.n_sites,
        pixels_per_site=settings.pixels_per_site_of(n_pixels),
        mask=seen.inside,
        relief=None if maps is None else maps.relief,
    )
    if settings.of_pixels:
        graph = grid_graph(sites.shape, connectivity=settings.connectivity, inside=seen.inside)
        adjacency = RegionAdjacency(graph, np.ones(graph.n_edges, np.int32), None)
    else:
        adjacency = region_adjacency(sites)
    return sites, adjacency, picture_model(seen.picture, sites, adjacency, settings, maps)


def _coarse(
    picture: Picture,
    inside: NDArray[np.bool_] | None,
    model: Model,
    settings: Settings,
    seed: int,
    workers: int | None,
    progress: bool | Report | None,
) -> str | NDArray[np.int32]:
    """The labels that a segmentation with larger sites gives to those of `model`; one cluster if the prior forbids.

    Some sweeps move its outlines by single sites first: a sweep that moves whole clusters would join what they miss.
    """
    found = segment(
        picture,
        settings.preset,
        mask=inside,
        detail=settings.detail,
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
    start: str | NDArray[np.int32],
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


def _estimated(drawn: Chains, estimate: str, seed: int) -> NDArray[np.int32]:
    """The partition that stands for the draws; the best where an interruption left none."""
    if estimate == "best" or not drawn.labels.size:
        return drawn.best_labels
    return minimum_vi(drawn.labels, rng=seed).labels


class _Door(ModuleType):
    """This module, which can be called: the import system hides the function `spinseg.segment` behind it."""

    __call__ = staticmethod(segment)


sys.modules[__name__].__class__ = _Door
