"""`Segmentation`, what `segment` returns, and its `Hierarchy`."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import center_of_mass, find_objects

from spinseg._validation import InvalidInput, check_int, check_real, invalid
from spinseg.graph.adjacency import regions_of
from spinseg.graph.merging import merge_heights
from spinseg.graph.site_graph import SiteGraph
from spinseg.image.contrast import contrast_of
from spinseg.image.features import site_means, site_sizes
from spinseg.image.layout import ChannelAxis, ChannelKind, IntensityRange
from spinseg.image.light import Light
from spinseg.image.picture import Picture
from spinseg.image.render import paint_edges
from spinseg.image.roles import Roles
from spinseg.model.posterior import Model
from spinseg.model.seeds import connect_seeds
from spinseg.partition.numbering import label_image, largest_first
from spinseg.partition.pairs import co_clustering, majority_kinds, same_kind_probability
from spinseg.sampler.chains import Chains
from spinseg.sampler.convergence import separation_of_chains
from spinseg.sampler.diagnostics import Diagnostics, diagnose
from spinseg.sampler.estimates import minimize_vi
from spinseg.segmentation import display, files
from spinseg.segmentation.presets.preset import Preset, chosen_preset
from spinseg.segmentation.region_table import as_table, boundary_table, region_table
from spinseg.segmentation.schedule import Schedule, compared_partitions
from spinseg.segmentation.verdict import one_region_warning, split_warning, verdict_sentences

if TYPE_CHECKING:
    from pandas import DataFrame

MAX_DRAWS_OF_KINDS = 120  # that kinds are estimated from
LAST_LABELS = "found.chains.last_labels"  # the expression for where the chains of `found` ended


@dataclass(frozen=True, eq=False, repr=False)
class Segmentation:
    """A segmentation and the posterior it came from.

    If sampling was interrupted before any draw was kept, `labels` show the best partition visited, arrays of
    probabilities are NaN, and single probabilities are None.

    Attributes
    ----------
    labels : int32, the image's shape
        The cluster of every pixel, from `start_label` on, which is 1, the largest first; one less, 0, outside the mask.
    sites : int32, the image's shape
        The site of every pixel, with outlines refined by the draws; -1 outside the mask.
    boundary_probability : float32, the image's shape
        How often, over the draws, a pixel was separated from a neighbor.
    partition : (n_sites,) int32
        The cluster of every site, from 0 on, the largest first.
    separation : (n_edges,) float64
        How often, over the draws, the two sites of each edge of the graph lay in different clusters.
    site_area : (n_sites,) int64
        The pixels of each site in the image as it was analyzed, before outlines are refined. `model.graph.length` has
        the lengths of their boundaries.
    model, chains
        The posterior, and the chains that sampled it.
    preset, schedule, seed, start_label, channel_axis, channel_kind, intensity_range, outlines, one_each
        The preset with its options, the number of chains and of sweeps or seconds, and other arguments of `segment`.
        `python_code` is the call that repeats the run.
    source, mask, seeds
        The files that were read; "an array" for a mask or seeds from memory, or the pixels of each seed; else None.
    sha256 : dict
        The hashes of these files, by "source", "mask" and "seeds".
    light : Light or None
        The uneven light that was removed from the image: `light.field`, NaN outside the mask, multiplies intensities,
        or is added to them if `light.is_added`. None where there was none.
    texture : bool
        Whether clusters differ in texture, and not in intensity, as `Classes` decides.
    taken_for : str or None
        The kind of image that `Auto` took this for, such as "a photograph"; None if you named a preset.
    interrupted : bool
        Whether sampling was interrupted.
    preceding_code : tuple of str
        Lines of Python that make the segmentation `found` from whose last labels these chains started, if they did.

    Examples
    --------
    >>> import spinseg as ss
    >>> seg = ss.segment([[0] * 20 + [255] * 20] * 20, rng=0)
    >>> seg.n_clusters, seg.labels[0, 0], seg.labels[0, 39]
    (2, np.int32(1), np.int32(2))
    """

    labels: NDArray[np.int32]
    sites: NDArray[np.int32]
    boundary_probability: NDArray[np.float32]
    partition: NDArray[np.int32]
    separation: NDArray[np.float64]
    site_area: NDArray[np.int64]
    model: Model
    chains: Chains
    preset: Preset
    schedule: Schedule
    seed: int
    picture: Picture
    channel_axis: ChannelAxis
    source: str | None
    mask: str | None
    seeds: str | dict[int, list[tuple[int, ...]]] | None = None
    start_label: int = 1
    interrupted: bool = False
    preceding_code: tuple[str, ...] = ()
    intensity_range: IntensityRange | None = None
    sha256: Mapping[str, str | None] = field(default_factory=dict)
    channel_kind: ChannelKind = "auto"
    light: Light | None = None
    texture: bool = False
    taken_for: str | None = None
    outlines: int | tuple[int, ...] | None = None
    one_each: int | tuple[int, ...] | None = None

    @property
    def graph(self) -> SiteGraph:
        """The graph of the sites, that of `model`."""
        return self.model.graph

    @property
    def read_as(self) -> str | None:
        """How the image was read, and in doubt how to read it in another way; None for a `Picture` made by hand."""
        return None if self.picture.reading is None else self.picture.reading.with_doubt

    @property
    def detail(self) -> float | None:
        """The level of detail of `labels`; None if the preset has no such levels."""
        return getattr(self.preset, "detail", None)

    @property
    def n_clusters(self) -> int:
        """Number of clusters of `labels`."""
        return int(self.partition.max()) + 1

    __repr__ = display.in_words
    _repr_html_ = display.as_html
    plot = display.plot
    save = files.save
    summary = files.summary
    skipped_files = property(files.skipped_files)
    to_geojson = files.to_geojson
    to_svg = files.to_svg
    to_xarray = files.to_xarray

    @cached_property
    def kinds(self) -> NDArray[np.int32] | None:
        """The kind of each cluster, (n_clusters,), from 0 on, the kind of the largest area first; None without kinds.

        ``seg.kinds[seg.labels - seg.start_label]`` is an image of the kinds, where there is no mask.
        """
        draws = self._draws_of_kinds
        if draws is None:
            return None
        alike = majority_kinds(self.partition, draws, self.site_area)
        return largest_first(minimize_vi(alike, rng=self.seed).labels, np.bincount(self.partition, self.site_area))

    @cached_property
    def same_kind(self) -> NDArray[np.float64] | None:
        """How probable it is that two clusters are of one kind, (n_clusters, n_clusters); None without kinds."""
        draws = self._draws_of_kinds
        return None if draws is None else same_kind_probability(self.partition, draws, self.site_area)

    @property
    def _draws_of_kinds(self) -> NDArray[np.int32] | None:
        """The kinds of the sites in some of the draws that `labels` are estimated from, or in the best partition."""
        kinds, best = self.chains.kinds, self.chains.best_kinds
        if kinds is None or best is None:
            return None
        near = kinds[:, self.preset.relevant(self.chains)].reshape(-1, best.size)
        chosen = np.random.default_rng(self.seed).permutation(len(near))[:MAX_DRAWS_OF_KINDS]
        return near[chosen] if chosen.size else best[None]

    @cached_property
    def regions(self) -> "DataFrame | list[dict[str, Any]]":
        """The connected pieces of the clusters, largest first: a pandas DataFrame, or `region_rows` without pandas.

        As in `skimage.measure.regionprops_table`, `centroid` and `bbox` have a column for each number: centroid-0, ..
        """
        return as_table(self.region_rows)

    @cached_property
    def region_rows(self) -> list[dict[str, Any]]:
        """The connected pieces of the clusters, largest first, one row for each.

        A row has the number of the `region`, its `label`, the `area` in pixels, the `share` of the image, the
        `centroid`, the `bbox` from the first row and column to those after the last, and the mean `color` in sRGB. Its
        `probability` is how often two of its sites share a cluster, None if it has only one, and `boundary` is the mean
        boundary probability along its outline. Where regions have kinds, its `kind` is counted from `start_label` on.
        With `one_each` it is `marked` if it holds a blob or a seed.
        """
        image = self._region_image
        boxes = [[*(side.start for side in box), *(side.stop for side in box)] for box in find_objects(image)]
        return region_table(
            self,
            self._region_of_site,
            areas=np.bincount(image[image > 0])[1:],
            centroids=np.array(center_of_mass(image > 0, image, np.arange(1, len(boxes) + 1))),
            boxes=np.array(boxes),
            colors=site_means(self.picture.rgb, image - 1),
        )

    @cached_property
    def boundaries(self) -> "DataFrame | list[dict[str, Any]]":
        """The boundaries between touching regions: a pandas DataFrame, or `boundary_rows` without pandas."""
        return as_table(self.boundary_rows)

    @cached_property
    def boundary_rows(self) -> list[dict[str, Any]]:
        """The boundaries between touching regions, one row for each.

        A row has the numbers of the `region` and of its `neighbor`, as in `regions`, the `length` of their boundary in
        pixels of the image as it was analyzed, and its `probability`: how often, over the draws, the sites on either
        side lay in different clusters, on average along the boundary. The `standard_error` of the probability comes
        from the spread between chains, pooled with that of all boundaries in doubt; None for one chain. Treat
        probabilities closer than two standard errors as equal.
        """
        of_chains = separation_of_chains(self.chains, self.graph.edges)
        return boundary_table(self.graph, of_chains, self._region_of_site, self.start_label)

    @cached_property
    def _region_of_site(self) -> NDArray[np.int32]:
        """The region of every site, from 0 on, the largest first."""
        return largest_first(regions_of(self.partition, self.model.graph), site_sizes(self.sites))

    @property
    def _is_marked(self) -> NDArray[np.bool_] | None:
        """Whether each region of `_region_of_site` holds a blob or a seed; None without `one_each`."""
        if self.one_each is None:
            return None
        marked = np.zeros(int(self._region_of_site.max()) + 1, bool)
        if self.model.seeds is not None:
            marked[self._region_of_site[self.model.seeds > 0]] = True
        return marked

    @property
    def _region_image(self) -> NDArray[np.int32]:
        """The place of every pixel's region in `region_rows`, from 1 on; 0 outside."""
        return label_image(self._region_of_site, self.sites, start_label=1)

    def co_clustering(self, *place: int) -> NDArray[np.float32]:
        """How often, over the draws, each pixel lies in one cluster with the pixel at this place, as float32.

        The place is the row and the column, from 0 on; for a volume, the plane first. It is 0 outside the mask, and NaN
        everywhere without draws.

        Examples
        --------
        >>> import numpy as np
        >>> import spinseg as ss
        >>> image = np.zeros((40, 60), np.uint8)
        >>> image[:, 30:] = 200
        >>> together = ss.segment(image, rng=0).co_clustering(20, 10)
        >>> bool(together[20, 5] > 0.9 > 0.1 > together[20, 50])
        True
        """
        shape = self.sites.shape
        if len(place) != len(shape):
            invalid("place", f"have {len(shape)} numbers", place)
        checked = [check_int("place", at, at_least=0, below=length) for at, length in zip(place, shape, strict=True)]
        if (site := int(self.sites[tuple(checked)])) < 0:
            invalid("place", "lie inside the mask", place)
        if not self.chains.labels.size:
            return np.full(shape, np.nan, np.float32)
        return np.append(co_clustering(self.chains.labels, site), 0).astype(np.float32)[self.sites]

    def at(self, detail: float) -> "Segmentation":
        """The segmentation at another level of detail, from 0, coarse, to 1, fine, from the same draws.

        Raises
        ------
        InvalidInput
            If the preset has no levels of detail.
        """
        if "detail" not in self.preset.options():
            presets = ", ".join(name for name, kind in Preset.known.items() if "detail" in kind.options())
            line = (
                f"the preset {self.preset.name} has no levels of detail to choose from. Segment with one of {presets}."
            )
            raise InvalidInput(line, "preset")
        preset = chosen_preset(self.preset, {"detail": detail})
        partition = preset.estimated(self.chains, self.model, self.seed)
        partition = largest_first(partition, site_sizes(self.sites))
        labels = label_image(partition, self.sites, self.start_label)
        return replace(self, preset=preset, partition=partition, labels=labels)

    @cached_property
    def hierarchy(self) -> "Hierarchy":
        """The boundaries with their probabilities as heights: nested regions, at any level from 0 to 1."""
        graph, cores = self.model.graph, None
        if not self.chains.labels.size:
            return Hierarchy(self.sites, graph, self.separation, self.start_label)
        if self.model.seeds is not None:
            within = self.partition[graph.edges[:, 0]] == self.partition[graph.edges[:, 1]]
            cores = connect_seeds(graph, self.model.seeds, np.where(within, self.separation + 1e-6, graph.n_edges))
        heights = merge_heights(graph, self.separation, cores)
        return Hierarchy(self.sites, graph, heights, self.start_label)

    @cached_property
    def diagnostics(self) -> Diagnostics:
        """Whether the chains have converged, in numbers."""
        compared = compared_partitions(self.chains, self.model, self.preset, self.seed)
        return diagnose(self.chains, self.model.graph, compared, self.site_area)

    @property
    def verdict(self) -> str:
        """Whether the regions and the probabilities have converged, in plain language."""
        schedule = None if self.interrupted else self.schedule
        how = (self.diagnostics, self.preset, self.chains.n_sweeps, schedule)
        taken_for, unknown = self.taken_for, self._not_validated
        return str(verdict_sentences(*how, warning=self.warning, taken_for=taken_for, not_validated=unknown))

    @property
    def _not_validated(self) -> str | None:
        if self._roles != Roles():
            return "images whose channels have roles"
        return self.preset.not_validated(self.picture, self.model.seeds is not None)

    @property
    def _roles(self) -> Roles:
        return Roles(self.outlines, self.one_each)

    @cached_property
    def warning(self) -> str | None:
        """What to try if parts of clearly different intensity share a region; else None."""
        warning, picture, preset = None, self._roles.seen(self.picture), self.preset
        if self.n_clusters == 1:
            warning = one_region_warning(contrast_of(picture), picture.reading, preset, preset.advice(picture))
        return warning or split_warning(picture, self._region_image, preset)

    @property
    def calibrated(self) -> bool:
        """Whether the probabilities have been validated against human annotations for such images and options."""
        return self._not_validated is None

    @property
    def agreement(self) -> float | None:
        """How well each half of each chain alone repeats the regions: the least adjusted Rand index, over pixels.

        It is 1 if all give the same regions and about 0 for unrelated ones; None for one chain or too few draws.
        """
        return self.diagnostics.agreement

    @property
    def converged(self) -> bool | None:
        """Whether the chains have converged; None for one chain or too few draws.

        They have if `agreement` is at least 0.9, boundary probabilities between 0.2 and 0.8 have a standard error of
        at most 0.04, and `r_hat` is at most 1.05.
        """
        return self.diagnostics.converged

    @property
    def r_hat(self) -> float | None:
        """The largest R-hat over number of clusters, entropy of their sizes, and edge agreement."""
        return self.diagnostics.r_hat

    @property
    def ess(self) -> float | None:
        """The smallest effective sample size over the same quantities and the log posterior."""
        return self.diagnostics.ess

    @property
    def python_code(self) -> str:
        """The Python that repeats the run, unless it was interrupted: a call after `preceding_code`."""
        arguments = self.schedule.arguments(self.preset, self.chains.n_sweeps, self.seed, vars(self))
        if not self.preceding_code:
            return self.preset.call(self.source, arguments)
        call = self.preset.call(self.source, arguments, init=LAST_LABELS)
        return "\n".join([*self.preceding_code, f"found = {call}"])

    @cached_property
    def _plane(self) -> Any:
        """The index of what images show: everything, or the middle one of the fullest planes of a volume."""
        if self.labels.ndim == 2:
            return ...
        full = np.count_nonzero(self.labels >= self.start_label, axis=(1, 2))
        fullest = np.flatnonzero(full == full.max())
        return int(fullest[fullest.size // 2])


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """Nested regions: the boundaries that remain as a level rises from 0 to 1 are ever fewer, and ever more likely.

    Attributes
    ----------
    sites : int32, the image's shape
        The site of every pixel; -1 outside the mask.
    graph : SiteGraph
        Of the sites.
    heights : (n_edges,) float64
        The level above which the boundary between two touching sites is gone: the mean probability that the draws give
        the boundary between the two regions which the sites lie in by then. It is infinite between regions of different
        seeds, which stay apart.

    Examples
    --------
    >>> import spinseg as ss
    >>> seg = ss.segment([[0, 0, 255, 255]] * 4, rng=0)
    >>> seg.hierarchy.labels(0.5).shape
    (4, 4)
    """

    sites: NDArray[np.int32] = field(repr=False)
    graph: SiteGraph = field(repr=False)
    heights: NDArray[np.float64] = field(repr=False)
    start_label: int = 1

    def labels(self, level: float) -> NDArray[np.int32]:
        """The regions between boundaries that are higher than a level, from `start_label` on, the largest first.

        Outside the mask it is one less.

        Raises
        ------
        InvalidInput
            Where an interruption left no draws, and so no heights.
        """
        level = check_real("level", level, at_least=0, at_most=1)
        if np.isnan(self.heights).any():
            invalid("a hierarchy", "come from draws to have regions at a level", "none: sampling was interrupted")
        regions = self.graph.components(self.heights <= level)
        return label_image(largest_first(regions, site_sizes(self.sites)), self.sites, self.start_label)

    @cached_property
    def boundary(self) -> NDArray[np.float32]:
        """The height of the boundary at every pixel, 0 where there is none: cut it at any level for closed outlines.

        NaN without draws.
        """
        if np.isnan(self.heights).any():
            return np.full(self.sites.shape, np.nan, np.float32)
        return paint_edges(self.sites, self.graph.edges, np.minimum(self.heights, 1.0))


class SegmentationInterrupted(KeyboardInterrupt):
    """Raised by Ctrl-C while sampling; `segmentation` is what the sweeps finished by then give.

    Examples
    --------
    >>> import spinseg as ss
    >>> try:
    ...     seg = ss.segment([[0, 255]] * 2, sweeps=5, rng=0)
    ... # on Ctrl-C
    ... except ss.SegmentationInterrupted as stop:
    ...     seg = stop.segmentation
    """

    def __init__(self, segmentation: Segmentation) -> None:
        super().__init__(f"interrupted after {segmentation.chains.n_sweeps} sweeps")
        self.segmentation = segmentation

    def __reduce__(self) -> tuple[Any, ...]:
        """How it is pickled, with its segmentation."""
        return type(self), (self.segmentation,), self.__dict__
