"""A picture made ready for sampling, and what its draws make of it."""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinseg._validation import invalid
from spinseg.image.adjacency import RegionAdjacency, grid_graph, region_adjacency
from spinseg.image.features import Codebook, site_sizes
from spinseg.image.io import read_mask, read_picture
from spinseg.image.picture import (
    ChannelAxis,
    Picture,
    WorkingCopy,
    as_picture,
    check_channel_axis,
    checked_mask,
    working_copy,
)
from spinseg.image.render import paint_edges
from spinseg.image.superpixels import superpixels
from spinseg.inference.chains import Chains
from spinseg.inference.estimates.minimize import minimum_vi
from spinseg.inference.estimates.pairs import separation_probability
from spinseg.inference.regions import regions_of, without_small
from spinseg.model.posterior import Model
from spinseg.segmentation.image_model import maps_for, picture_model
from spinseg.segmentation.result import Segmentation
from spinseg.segmentation.settings import Settings


@dataclass(frozen=True, eq=False)
class Scene:
    """The sites of a picture, as it is seen, which of them touch, and the posterior over their partitions."""

    picture: Picture
    settings: Settings
    seen: WorkingCopy
    sites: NDArray[np.int32]
    adjacency: RegionAdjacency
    model: Model
    told: dict[str, Any]  # what a segmentation says of where the picture came from

    def partition(self, drawn: Chains, seed: int) -> NDArray[np.int32]:
        """The partition that stands for the draws, made into regions where the settings ask for it."""
        partition = _estimated(drawn, self.settings.estimate, seed)
        if not self.settings.regions:
            return partition
        smallest = self.settings.smallest_region * np.count_nonzero(self.sites >= 0)
        pieces = regions_of(partition, self.model.graph)
        return without_small(pieces, self.adjacency, site_sizes(self.sites), self.model.beta, smallest)

    def boundary_probability(self, separation: NDArray[np.float64]) -> NDArray[np.float32]:
        """How often the pixels of the picture as it is seen are separated from one beside them."""
        return paint_edges(self.sites, self.model.graph.edges, separation)

    def segmentation(
        self, drawn: Chains, seed: int, interrupted: bool = False, earlier: tuple[str, ...] = ()
    ) -> Segmentation:
        """What chains of its posterior, of this seed, give; `earlier` as in `Segmentation`."""
        partition = self.partition(drawn, seed)
        separation = separation_probability(drawn.labels, self.model.graph.edges)
        site_image = self.seen.restored(self.sites, outside=-1)
        return Segmentation(
            labels=np.append(partition, np.int32(-1))[site_image],  # site -1, the outside, takes the last
            sites=site_image,
            boundary_probability=self.seen.restored(self.boundary_probability(separation), outside=0),
            partition=partition,
            separation=separation,
            model=self.model,
            chains=drawn,
            settings=self.settings,
            seed=seed,
            picture=self.picture,
            interrupted=interrupted,
            earlier=earlier,
            **self.told,
        )


def prepare(
    image: Picture | ArrayLike | str | os.PathLike[str],
    settings: Settings,
    mask: ArrayLike | str | os.PathLike[str] | None = None,
    channel_axis: ChannelAxis = "auto",
) -> Scene:
    """A picture with its sites and its posterior."""
    picture = _read(image, mask, channel_axis)
    _check_fit(settings, picture)
    told: dict[str, Any] = {
        "channel_axis": channel_axis,
        "source": os.fspath(image) if isinstance(image, (str, os.PathLike)) else None,
        "mask": None if mask is None else os.fspath(mask) if isinstance(mask, (str, os.PathLike)) else "an array",
    }
    made_here = isinstance(settings.sites, str) and settings.sites != "pixels"
    seen = working_copy(picture, picture.inside, settings.max_pixels if made_here else None)
    return Scene(picture, settings, seen, *_posterior(seen, settings), told)


def _read(
    image: Picture | ArrayLike | str | os.PathLike[str],
    mask: ArrayLike | str | os.PathLike[str] | None,
    channel_axis: ChannelAxis,
) -> Picture:
    """The picture in standard form, with what is inside, each from a file or an array; the mask comes first."""
    check_channel_axis(channel_axis)
    if mask is not None:
        mask = checked_mask(read_mask(mask) if isinstance(mask, (str, os.PathLike)) else mask)
    if isinstance(image, (str, os.PathLike)):
        return read_picture(image, channel_axis=channel_axis, mask=mask)
    return as_picture(image, channel_axis=channel_axis, mask=mask)


def _check_fit(settings: Settings, picture: Picture) -> None:
    """Refuse settings that are not for such a picture, before any work on it."""
    shape = picture.shape
    if not isinstance(settings.sites, str):
        if np.shape(settings.sites) != shape:
            invalid("sites", f"have the image's shape {shape}", np.shape(settings.sites))
    elif settings.sites == "felzenszwalb" and len(shape) == 3:
        invalid("sites", "be another than 'felzenszwalb' for a volume", settings.sites)
    if settings.connectivity > len(shape):
        invalid("connectivity", f"be at most the {len(shape)} axes of the image", settings.connectivity)
    if settings.likelihood == "words" and settings.codebook == "general" and picture.n_channels == 3:
        Codebook.general(settings.n_words)  # refuses numbers of words that there are not


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


def _estimated(drawn: Chains, estimate: str, seed: int) -> NDArray[np.int32]:
    """The partition that stands for the draws; the best where an interruption left none."""
    if estimate == "best" or not drawn.labels.size:
        return drawn.best_labels
    return minimum_vi(drawn.labels, rng=seed).labels
