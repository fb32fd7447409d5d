"""From a picture to the posterior over partitions of its sites, and from draws of it to a segmentation."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinseg._validation import invalid
from spinseg.graph.adjacency import RegionAdjacency, grid_graph, region_adjacency
from spinseg.image.boundary.maps import BoundaryMaps
from spinseg.image.contrast import in_units_of_noise
from spinseg.image.features import Codebook, site_sizes
from spinseg.image.formats import content_hash
from spinseg.image.intensity import check_intensity_range
from spinseg.image.io import read_mask, read_picture
from spinseg.image.layout import ChannelAxis, IntensityRange, check_channel_axis
from spinseg.image.outlines import nearby_pairs, outlined_sites, refine_classes, with_connected_regions
from spinseg.image.picture import Picture, as_picture, checked_mask
from spinseg.image.render import paint_edges
from spinseg.image.seeds import Seeds, cut_sites, reduced_seeds, seed_image, seeds_of_sites, with_own_seeds
from spinseg.image.superpixels import superpixels
from spinseg.image.working import WorkingCopy, working_copy
from spinseg.model.mixture import Mixture
from spinseg.model.posterior import Model
from spinseg.sampler.chains import Chains
from spinseg.sampler.estimates.pairs import separation_probability
from spinseg.segmentation.estimate import estimated_partition, estimated_regions
from spinseg.segmentation.image_model import maps_for, picture_posterior, picture_words
from spinseg.segmentation.numbering import label_image, largest_first
from spinseg.segmentation.presets import min_region_share, min_region_sites
from spinseg.segmentation.result import Segmentation
from spinseg.segmentation.settings import Settings


@dataclass(frozen=True, eq=False)
class Problem:
    """The sites of a picture, which of them touch, and the posterior over their partitions.

    `working_image` is the picture that is analyzed, which may be smaller than `picture`, and `relief` its boundary map,
    if that was made; `provenance` has the attributes of a `Segmentation` that say where the picture came from:
    `source`, `mask`, `seeds`, `sha256`, `channel_axis` and `intensity_range`. `seed_image` has the seed of every pixel
    of `picture`; it is None without seeds. `is_cut` says whether sites were cut between seeds.
    """

    picture: Picture
    settings: Settings
    working_image: WorkingCopy
    sites: NDArray[np.int32]
    adjacency: RegionAdjacency
    model: Model | Mixture
    relief: NDArray[np.floating[Any]] | None
    provenance: dict[str, Any]
    seed_image: NDArray[np.int64] | None = None
    is_cut: bool = False

    def with_seeds(self, seeds: Seeds | None) -> "Problem | None":
        """The problem that `prepare` makes of the same picture with other seeds; None where its sites are others."""
        if self.is_cut:
            return None
        image, of_sites = None, None
        if seeds is not None:
            image = seed_image(seeds, self.picture.shape, self.picture.inside)
            reduced = reduced_seeds(image, self.working_image.step)
            if not np.array_equal(cut_sites(self.sites, reduced, None), self.sites):
                return None
            of_sites = seeds_of_sites(self.sites, reduced)
            if np.setdiff1d(reduced, np.append(of_sites, 0)).size:  # one lies where parts of the mask are kept apart
                return None
        model, provenance = self.model.with_seeds(of_sites), self.provenance | {"seeds": plain_seeds(seeds)}
        return replace(self, model=model, provenance=provenance, seed_image=image)

    def at_working_size(self) -> "Problem":
        """The same problem with the working image as its picture, whose outlines take less time to refine."""
        picture, inside, step, *_ = self.working_image
        if step == 1:
            return self
        alone = WorkingCopy(picture, inside, 1, inside, picture.shape)
        reduced = None if self.seed_image is None else reduced_seeds(self.seed_image, step)
        return replace(self, picture=picture, working_image=alone, seed_image=reduced)

    def partition(self, drawn: Chains, seed: int) -> NDArray[np.int32]:
        """The partition that `settings.estimate` asks for, cut into regions where the settings ask for it."""
        settings, area = self.settings, site_sizes(self.sites)
        if isinstance(self.model, Mixture) or self.model.connected or not settings.regions:
            return estimated_partition(drawn, self.model, settings, seed)
        of_share = settings.preset == "photo"
        share = min_region_share(settings.detail) if of_share else min_region_sites(settings.detail) / area.size
        return estimated_regions(drawn, self.model, settings, seed, self.adjacency, area, share * area.sum())

    @property
    def _refines_classes(self) -> bool:
        return self.settings.refined and self.settings.likelihood == "words" and isinstance(self.settings.sites, str)

    @property
    def _refines_regions(self) -> bool:
        return self.relief is not None and self.relief.ndim == 2 and isinstance(self.settings.sites, str)

    @property
    def refines_outlines(self) -> bool:
        """Whether `outlined_sites` are others than the sites."""
        return self._refines_classes or self._refines_regions

    def outlined_sites(self, drawn: Chains, partition: NDArray[np.int32]) -> NDArray[np.int32]:
        """The sites of the whole picture, with refined outlines unless sites are given; -1 outside its mask."""
        if self._refines_classes:
            words, n_words = picture_words(self.working_image.picture, self.settings)
            refined = refine_classes(self.sites, partition, words, n_words)
            if self.settings.regions:
                refined = with_connected_regions(refined, partition)
            return self._completed(self.working_image.to_original(refined, outside=-1))
        if self._refines_regions:
            assert self.relief is not None
            graph = self.model.graph
            pairs = nearby_pairs(graph)
            apart = np.nan_to_num(separation_probability(drawn.labels, pairs))  # without draws, outlines stay
            held = None if self.seed_image is None else self.seed_image > 0
            how = (self.relief, self.working_image, self.picture.codes, graph, pairs, apart)
            return self._completed(outlined_sites(self.sites, *how, held=held))
        return self._completed(self.working_image.to_original(self.sites, outside=-1))

    def boundary_probability(self, sites: NDArray[np.int32], drawn: Chains) -> NDArray[np.float32]:
        """How often each pixel of an image of the sites is separated from a neighbor; NaN without draws."""
        if not drawn.labels.size:
            return np.full(sites.shape, np.nan, np.float32)
        touching = region_adjacency(sites).graph.edges
        return paint_edges(sites, touching, separation_probability(drawn.labels, touching))

    def _painted(self, sites: NDArray[np.int32], drawn: Chains, separation: NDArray[np.float64]) -> NDArray[np.float32]:
        """The boundary probability of the whole picture, from its `outlined_sites` and the `separation` of edges."""
        edges = self.model.graph.edges
        if self._refines_classes or not drawn.labels.size:  # other sites touch than before
            return self.boundary_probability(sites, drawn)
        if self._refines_regions:
            return paint_edges(sites, edges, separation)
        return self.working_image.to_original(paint_edges(self.sites, edges, separation), outside=0)

    def _completed(self, sites: NDArray[np.int32]) -> NDArray[np.int32]:
        """The sites of the whole picture: none in two parts of its mask, and seeds in sites of their own."""
        sites = self.working_image.completed(sites)
        if self.seed_image is None or self.model.seeds is None:
            return sites
        return with_own_seeds(sites, self.model.seeds, self.seed_image)

    def segmentation(
        self, drawn: Chains, seed: int, interrupted: bool = False, preceding_code: tuple[str, ...] = ()
    ) -> Segmentation:
        """The segmentation that chains of this posterior give; `preceding_code` as in `Segmentation`."""
        partition = self.partition(drawn, seed)
        separation = separation_probability(drawn.labels, self.model.graph.edges)
        site_image = self.outlined_sites(drawn, partition)
        partition = largest_first(partition, site_sizes(site_image))
        return Segmentation(
            labels=label_image(partition, site_image, self.settings.start_label),
            sites=site_image,
            boundary_probability=self._painted(site_image, drawn, separation),
            partition=partition,
            separation=separation,
            boundary_length=self.adjacency.boundary_length,
            site_area=site_sizes(self.sites),
            model=self.model,
            chains=drawn,
            settings=self.settings,
            seed=seed,
            picture=self.picture,
            interrupted=interrupted,
            preceding_code=preceding_code,
            **self.provenance,
        )


def prepare(
    image: Picture | ArrayLike | str | os.PathLike[str],
    settings: Settings,
    mask: ArrayLike | str | os.PathLike[str] | None = None,
    channel_axis: ChannelAxis = "auto",
    intensity_range: IntensityRange | None = None,
    seeds: Seeds | None = None,
) -> Problem:
    """Read a picture, make its sites and build the posterior over their partitions."""
    if seeds is not None:
        check_seeds_fit(settings)
    # Before they are read: a file that changes meanwhile then differs from its hash, and the result is not kept.
    files = {"source": image, "mask": mask, "seeds": seeds}
    hashes = {name: content_hash(file) for name, file in files.items() if isinstance(file, (str, os.PathLike))}
    picture = _read(image, mask, channel_axis, intensity_range)
    _check_fit(settings, picture)
    on_pixels = None if seeds is None else seed_image(seeds, picture.shape, picture.inside)
    provenance: dict[str, Any] = {
        "channel_axis": channel_axis,
        "intensity_range": intensity_range,
        "source": os.fspath(image) if isinstance(image, (str, os.PathLike)) else None,
        "mask": None if mask is None else os.fspath(mask) if isinstance(mask, (str, os.PathLike)) else "an array",
        "seeds": plain_seeds(seeds),
        "sha256": hashes,
    }
    may_reduce = isinstance(settings.sites, str) and settings.sites != "pixels"
    held = None if on_pixels is None else on_pixels > 0
    working_image = working_copy(picture, picture.inside, settings.max_pixels if may_reduce else None, held)
    if picture.n_channels != 3:
        scaled = in_units_of_noise(working_image.picture.codes, working_image.inside)
        working_image = working_image._replace(picture=Picture(scaled))
    sites, adjacency, model, relief, is_cut = _posterior(working_image, settings, on_pixels)
    return Problem(picture, settings, working_image, sites, adjacency, model, relief, provenance, on_pixels, is_cut)


def check_seeds_fit(settings: Settings) -> None:
    """Refuse seeds where clusters need not be connected."""
    if not settings.connected:
        where = "with preset='classes' or 'paper', sites='pixels', beta or regions"
        rule = f"be left out where clusters need not be connected: {where}"
        invalid("seeds", rule, "seeds")


def plain_seeds(seeds: Seeds | None) -> str | dict[int, list[tuple[int, ...]]] | None:
    """Seeds as `Segmentation` keeps them: the path, the pixels of each, or that they are an array."""
    if isinstance(seeds, (str, os.PathLike)):
        return os.fspath(seeds)
    if isinstance(seeds, Mapping):
        return {int(seed): [tuple(map(int, point)) for point in points] for seed, points in seeds.items()}
    return None if seeds is None else "an array"


def _read(
    image: Picture | ArrayLike | str | os.PathLike[str],
    mask: ArrayLike | str | os.PathLike[str] | None,
    channel_axis: ChannelAxis,
    intensity_range: IntensityRange | None,
) -> Picture:
    """The picture and its mask, from files or arrays. The mask is read and checked first."""
    check_channel_axis(channel_axis)
    if intensity_range is not None:
        check_intensity_range(intensity_range)
    if mask is not None:
        mask = checked_mask(read_mask(mask) if isinstance(mask, (str, os.PathLike)) else mask)
    if isinstance(image, (str, os.PathLike)):
        return read_picture(image, channel_axis=channel_axis, mask=mask, intensity_range=intensity_range)
    return as_picture(image, channel_axis=channel_axis, mask=mask, intensity_range=intensity_range)


def _check_fit(settings: Settings, picture: Picture) -> None:
    """Refuse settings that do not fit this picture, before any work on it."""
    shape = picture.shape
    if not isinstance(settings.sites, str):
        if np.shape(settings.sites) != shape:
            invalid("sites", f"have the image's shape {shape}", np.shape(settings.sites))
    elif settings.sites == "felzenszwalb" and len(shape) == 3:
        invalid("sites", "be another than 'felzenszwalb' for a volume", settings.sites)
    if settings.connectivity > len(shape):
        invalid("connectivity", f"be at most the {len(shape)} axes of the image", settings.connectivity)
    if settings.likelihood == "words" and settings.codebook == "general" and picture.n_channels == 3:
        Codebook.general(settings.n_words)  # refuses a number of words for which there is no codebook


def sites_of(
    working_image: WorkingCopy, settings: Settings
) -> tuple[NDArray[np.int32], RegionAdjacency, BoundaryMaps | None]:
    """The sites of a picture, which of them touch, and the boundary maps of `maps_for`."""
    picture, inside = working_image.picture, working_image.inside
    n_pixels = int(np.prod(picture.shape)) if inside is None else int(np.count_nonzero(inside))
    maps = maps_for(picture, settings, inside)
    sites = superpixels(
        picture,
        kind=settings.sites,
        n_sites=settings.n_sites,
        pixels_per_site=settings.pixels_per_site_of(n_pixels),
        mask=inside,
        relief=None if maps is None else maps.relief,
    )
    if not settings.sites_are_pixels:
        return sites, region_adjacency(sites), maps
    graph = grid_graph(sites.shape, connectivity=settings.connectivity, inside=inside)
    return sites, RegionAdjacency(graph, np.ones(graph.n_edges, np.int32), None), maps


def _posterior(
    working_image: WorkingCopy, settings: Settings, seeds: NDArray[np.int64] | None
) -> tuple[NDArray[np.int32], RegionAdjacency, Model | Mixture, NDArray[np.floating[Any]] | None, bool]:
    """The sites of a picture, which of them touch, the posterior, the boundary map, and whether seeds cut sites."""
    picture, of_sites, is_cut = working_image.picture, None, False
    reduced = None if seeds is None else reduced_seeds(seeds, working_image.step)  # before what takes long
    sites, adjacency, maps = sites_of(working_image, settings)
    relief = None if maps is None else maps.relief
    if reduced is not None:
        cut = cut_sites(sites, reduced, relief)
        is_cut = not np.array_equal(cut, sites)
        if is_cut:
            sites = superpixels(picture, kind=cut, mask=working_image.inside)
            adjacency = region_adjacency(sites)
        of_sites = seeds_of_sites(sites, reduced)
    posterior = picture_posterior(picture, sites, adjacency, settings, maps, of_sites)
    return sites, adjacency, posterior, relief, is_cut
