"""From an image to the posterior over partitions of its sites, and from draws of it to a segmentation."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinseg._validation import InvalidInput, invalid
from spinseg.graph.adjacency import region_adjacency
from spinseg.image.features import site_sizes
from spinseg.image.formats import content_hash
from spinseg.image.intensity import check_intensity_range
from spinseg.image.io import read_mask, read_picture
from spinseg.image.layout import ChannelAxis, ChannelKind, IntensityRange, check_channels
from spinseg.image.light import Light
from spinseg.image.picture import Picture, as_picture, checked_mask
from spinseg.image.render import paint_edges
from spinseg.image.roles import Channels, Roles
from spinseg.image.seeds import Seeds, cut_sites, reduced_seeds, seed_image, seeds_of_sites, with_own_seeds
from spinseg.image.superpixels import superpixels
from spinseg.image.working import WorkingCopy, working_copy
from spinseg.model.posterior import Model
from spinseg.model.seeds import NO_CROSSING
from spinseg.partition.numbering import label_image, largest_first
from spinseg.partition.pairs import separation_probability
from spinseg.sampler.chains import Chains
from spinseg.segmentation.presets.option import AN_ARRAY
from spinseg.segmentation.presets.preset import Preset
from spinseg.segmentation.result import Segmentation
from spinseg.segmentation.schedule import Schedule

NEED_CONNECTED = "be given with connected clusters only, as in {presets}"


@dataclass(frozen=True, eq=False)
class Problem:
    """The sites of an image, and the posterior over their partitions.

    `seen` is `picture` with the channels whose outlines count. `working_image` is what is analyzed of it, which may be
    smaller, and `relief` its boundary map, if that was made; `provenance` has the attributes of a `Segmentation` that
    say where the image came from: `source`, `mask`, `seeds`, `sha256`, `channel_axis`, `channel_kind`,
    `intensity_range`, `outlines` and `one_each`, and what it was `taken_for`. `seed_image` has the seed of every pixel
    of `picture`, blobs included; it is None without seeds. `is_cut` says whether sites were cut between seeds, and
    `light` is what was removed from the working image.
    """

    picture: Picture
    seen: Picture
    preset: Preset
    working_image: WorkingCopy
    sites: NDArray[np.int32]
    model: Model
    relief: NDArray[np.floating[Any]] | None
    provenance: dict[str, Any]
    seed_image: NDArray[np.int64] | None = None
    is_cut: bool = False
    light: Light | None = None

    def with_seeds(self, seeds: Seeds | None) -> "Problem | None":
        """The problem that `prepare` makes of the same image with other seeds; None where its sites are others."""
        if self.is_cut or self.provenance.get("one_each") is not None:
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
        """The same problem with the working image as its image, whose outlines take less time to refine."""
        picture, inside, step, *_ = self.working_image
        if step == 1:
            return self
        alone = WorkingCopy(picture, inside, 1, inside, picture.shape, texture=self.working_image.texture)
        reduced = None if self.seed_image is None else reduced_seeds(self.seed_image, step)
        return replace(self, picture=picture, seen=picture, working_image=alone, seed_image=reduced)

    def outlined_sites(self, drawn: Chains, partition: NDArray[np.int32]) -> NDArray[np.int32]:
        """The sites of the whole image, with refined outlines where the preset has them; -1 outside its mask.

        None lies in two parts of the mask, and seeds have sites of their own.
        """
        if self.preset.refines(self):
            sites = self.preset.refined_sites(self, drawn, partition)
        else:
            sites = self.working_image.to_original(self.sites, outside=-1)
        sites = self.working_image.completed(sites)
        if self.seed_image is None or self.model.seeds is None:
            return sites
        return with_own_seeds(sites, self.model.seeds, self.seed_image)

    def boundary_probability(self, sites: NDArray[np.int32], drawn: Chains) -> NDArray[np.float32]:
        """How often each pixel of an image of the sites is separated from a neighbor; NaN without draws."""
        if not drawn.labels.size:
            return np.full(sites.shape, np.nan, np.float32)
        touching = region_adjacency(sites).edges
        return paint_edges(sites, touching, separation_probability(drawn.labels, touching))

    def segmentation(self, drawn: Chains, seed: int, schedule: Schedule, **about: Any) -> Segmentation:
        """The segmentation that chains of this posterior give, with other attributes of `Segmentation`."""
        partition = self.preset.partition(drawn, self, seed)
        separation = separation_probability(drawn.labels, self.model.graph.edges)
        site_image = self.outlined_sites(drawn, partition)
        partition = largest_first(partition, site_sizes(site_image))
        if self.preset.refines(self) or not drawn.labels.size:  # other sites may touch than before
            painted = self.boundary_probability(site_image, drawn)
        else:
            reduced = paint_edges(self.sites, self.model.graph.edges, separation)
            painted = self.working_image.to_original(reduced, outside=0)
        return Segmentation(
            labels=label_image(partition, site_image, about.get("start_label", 1)),
            sites=site_image,
            boundary_probability=painted,
            partition=partition,
            separation=separation,
            site_area=site_sizes(self.sites),
            model=self.model,
            chains=drawn,
            preset=self.preset,
            schedule=schedule,
            seed=seed,
            picture=self.picture,
            light=self.light and self.light._replace(field=self.working_image.to_original(self.light.field, np.nan)),
            texture=self.working_image.texture is not None,
            **self.provenance,
            **about,
        )


def prepare(
    image: Picture | ArrayLike | str | os.PathLike[str],
    preset: Preset,
    mask: ArrayLike | str | os.PathLike[str] | None = None,
    channel_axis: ChannelAxis = "auto",
    intensity_range: IntensityRange | None = None,
    seeds: Seeds | None = None,
    channel_kind: ChannelKind = "auto",
    stage: Callable[[str], None] = lambda words: None,
    outlines: Channels | None = None,
    one_each: Channels | None = None,
) -> Problem:
    """Read an image, make its sites and build the posterior over their partitions.

    `stage` is called with a few words before each part that may take long.
    """
    roles = Roles.of(outlines, one_each)
    check_seeds_fit(preset, seeds=seeds, one_each=one_each)
    check_channels(channel_axis, channel_kind)
    if intensity_range is not None:
        check_intensity_range(intensity_range)
    given = {"source": image, "mask": mask, "seeds": seeds}
    paths = {name: os.fspath(file) for name, file in given.items() if isinstance(file, (str, os.PathLike))}
    # Before they are read: a file that changes meanwhile then differs from its hash, and the result is not kept.
    provenance: dict[str, Any] = {"sha256": {name: content_hash(path) for name, path in paths.items()}}
    provenance |= {"source": paths.get("source"), "mask": paths.get("mask", None if mask is None else AN_ARRAY)}
    how = {"channel_axis": channel_axis, "channel_kind": channel_kind, "intensity_range": intensity_range}
    provenance |= {"seeds": plain_seeds(seeds), **how, **roles._asdict()}
    if mask is not None:
        mask = checked_mask(read_mask(mask) if isinstance(mask, (str, os.PathLike)) else mask)
    read: Any = read_picture if "source" in paths else as_picture
    picture: Picture = read(image, mask=mask, **how)
    seen = roles.seen(picture)
    given_preset, preset = preset, preset.for_image(roles.as_judged(seen))
    is_guess = preset is not given_preset and len(picture.shape) == 2 and seen is picture
    provenance["taken_for"] = preset.suits if is_guess else None
    preset.check_fit(picture)
    on_pixels = None if seeds is None else seed_image(seeds, picture.shape, picture.inside)
    may_reduce = isinstance(preset.sites, str) and not preset.sites_are_pixels
    held = None if on_pixels is None else on_pixels > 0
    how_reduced = (picture.inside, preset.max_pixels if may_reduce else None, held)
    working_image = working_copy(seen, *how_reduced)
    if roles.one_each is not None:
        stage("finding blobs")
        on_pixels = roles.with_markers(on_pixels, working_copy(roles.blobs_of(picture), *how_reduced))
    working_image = preset.textured(working_image)
    light = preset.light(working_image)
    if light is not None:
        working_image = working_image._replace(picture=light.removed_from(working_image.picture))
    problem = posed(seen, preset, preset.analyzed(working_image), provenance, on_pixels, light, stage)
    return replace(problem, picture=picture)


def posed(
    picture: Picture,
    preset: Preset,
    working_image: WorkingCopy,
    provenance: dict[str, Any],
    on_pixels: NDArray[np.int64] | None = None,
    light: Light | None = None,
    stage: Callable[[str], None] = lambda words: None,
) -> Problem:
    """The problem that the copy of an image that is analyzed poses, with the seeds of its pixels."""
    reduced = None if on_pixels is None else reduced_seeds(on_pixels, working_image.step)  # before what takes long
    stage("finding boundary evidence")
    maps = preset.maps(working_image)
    stage("finding superpixels")
    sites, relief = preset.make_sites(working_image, maps), None if maps is None else maps.relief
    of_sites, is_cut = None, False
    if reduced is not None:
        cut = cut_sites(sites, reduced, relief)
        is_cut = not np.array_equal(cut, sites)
        sites = superpixels(working_image.picture, kind=cut, mask=working_image.inside) if is_cut else sites
        of_sites = seeds_of_sites(sites, reduced)
    stage("comparing superpixels")
    try:
        model = preset.model(working_image, sites, preset.graph(sites, working_image), maps, of_sites)
    except InvalidInput as error:
        if error.rule != NO_CROSSING or on_pixels is None:
            raise
        raise _with_places(error, working_image.to_original(sites, outside=-1), on_pixels) from None
    return Problem(picture, picture, preset, working_image, sites, model, relief, provenance, on_pixels, is_cut, light)


def _with_places(error: InvalidInput, sites: NDArray[np.int32], seeds: NDArray[np.int64]) -> InvalidInput:
    """The error of a seed whose sites cannot be connected, with a pixel of each of two parts, and what to do."""
    (seed,) = error.about["seeds"]
    parts = [np.argwhere((seeds == seed) & (sites == site))[0] for site in error.about["sites"][:2]]
    first, second = (tuple(map(int, place)) for place in parts)
    line = f"{error}, whose parts at {first} and {second} are kept apart"
    remedy = "Give each part a number of its own, or set enough pixels between them to 0"
    return InvalidInput(f"{line}. {remedy}.", error.name, error.rule, **error.about)


def check_seeds_fit(preset: Preset, **given: object) -> None:
    """Refuse seeds, and channels that give them, where clusters need not be connected."""
    names = [name for name, kind in Preset.known.items() if kind.connected]
    for name, value in given.items():
        if value is not None and not preset.connected:
            invalid(name, NEED_CONNECTED, preset.name, presets=", ".join(names))


def plain_seeds(seeds: Seeds | None) -> str | dict[int, list[tuple[int, ...]]] | None:
    """Seeds as `Segmentation` keeps them: the path, the pixels of each, or that they are an array."""
    if isinstance(seeds, (str, os.PathLike)):
        return os.fspath(seeds)
    if isinstance(seeds, Mapping):
        return {int(seed): [tuple(map(int, point)) for point in points] for seed, points in seeds.items()}
    return None if seeds is None else AN_ARRAY
