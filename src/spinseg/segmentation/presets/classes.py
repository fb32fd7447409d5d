"""`Classes`: kinds of tissue or material, each of which may lie in many places; and the color words of presets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray

from spinseg._validation import check_choice
from spinseg.graph.adjacency import regions_of
from spinseg.graph.merging import absorb_small
from spinseg.graph.site_graph import SiteGraph
from spinseg.image.boundary.log_odds import is_gray
from spinseg.image.boundary.maps import BoundaryMaps
from spinseg.image.features import Codebook, site_histograms, site_means, site_sizes
from spinseg.image.intensity import MAX_CODE
from spinseg.image.light import Light, light_of
from spinseg.image.noise import observations_per_pixel, smoothed
from spinseg.image.outlines import refine_classes, with_connected_regions
from spinseg.image.picture import Picture
from spinseg.image.superpixels import PIXELS_PER_SITE
from spinseg.image.texture import texture_of
from spinseg.image.working import WorkingCopy
from spinseg.model.gaussians import DiagonalGaussian
from spinseg.model.likelihoods import DirichletMultinomial, Likelihood
from spinseg.model.posterior import Model
from spinseg.model.priors import ParsimoniousProcess, PartitionPrior
from spinseg.partition.pairs import separation_probability
from spinseg.sampler.chains import Chains
from spinseg.sampler.estimate_search import improved
from spinseg.segmentation.presets.option import Slider, option
from spinseg.segmentation.presets.preset import Preset, Start

if TYPE_CHECKING:
    from spinseg.segmentation.problem import Problem

CODEBOOKS = ("general", "image")
TEXTURE_SHAPE = 500  # of the prior of a precision: texture varies by 1 within a kind
MAX_DRAWS = 120  # that regions are estimated from
MAX_PIECE_DRAWS = 60  # of those, in the search: a draw may have many pieces
MAX_PIECES = 5000  # of a draw: with this many regions the tables of an estimate fill 1 GB


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ColorWords(Preset, listed=False):
    """Histograms of color words with a Dirichlet prior, and one coupling for all touching sites.

    The histogram of a site is the mean of its own and those of the sites that it touches, taken `smoothing` times.
    """

    codebook: str | Codebook = option(
        "general", "The color words of the package, or words fitted to each image.", choices=CODEBOOKS, is_open=True
    )
    n_words: int = option(120, "Number of color words.", least=1)
    count_weight: float | None = option(
        None,
        "Number of observations that a pixel counts for: less than 1, because neighboring pixels are not independent.",
        kind=float,
        above=0,
        slider=Slider(1e-5, 1, "log"),
    )
    phi: float = option(50.0, "Mass of the Dirichlet prior on the color words of a cluster.", above=0)
    beta: float = option(0.02, "How strongly touching sites prefer to be in the same cluster.", slider=Slider(-2, 10))
    smoothing: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.codebook, Codebook):
            check_choice("codebook", self.codebook, CODEBOOKS)

    def check_fit(self, picture: Picture) -> None:
        """Refuse also a number of words for which there is no general codebook."""
        super().check_fit(picture)
        if self.codebook == "general" and picture.is_color:
            Codebook.general(self.n_words)

    def words(self, picture: Picture) -> tuple[NDArray[np.integer], int]:
        """The color word of every pixel, and how many words there are."""
        book = self.codebook
        if book == "general" and picture.is_color:
            book = Codebook.general(self.n_words)
        elif not isinstance(book, Codebook):  # there is no general codebook of other channels
            book = Codebook.fit(picture, self.n_words, rng=0)
        return book.words(picture), len(book)

    def model(
        self,
        image: WorkingCopy,
        sites: NDArray[np.int32],
        graph: SiteGraph,
        maps: BoundaryMaps | None = None,
        seeds: NDArray[np.int64] | None = None,
    ) -> Model:
        """The posterior over partitions of these sites."""
        return Model(graph, self.appearance(image, sites, graph), self.prior, self.beta)

    def appearance(self, image: WorkingCopy, sites: NDArray[np.int32], graph: SiteGraph) -> Likelihood:
        """The likelihood of the color words of the sites."""
        words, n_words = self.words(image.picture)
        parts, n_parts = mean_with_neighbors(site_histograms(words, sites, n_words), graph, self.smoothing)
        weight = observations_per_pixel(image.picture, sites, graph) if self.count_weight is None else self.count_weight
        return DirichletMultinomial(parts, self.phi, weight / n_parts)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Classes(ColorWords):
    """Classes of pixels, in images and volumes of any channels; outlines follow the pixels.

    The noise of the image says how many observations a pixel counts for, unless `count_weight` does: with too few all
    classes are one cluster, and with too many a class whose intensities vary is divided. The other constants were
    chosen on a brain and on phantoms (docs/howto/volumes.md).

    Examples
    --------
    >>> import spinseg as ss
    >>> ss.segment(
    ...     [[0] * 20 + [255] * 20] * 20, ss.Classes(), rng=0
    ... ).n_clusters
    2
    """

    name: ClassVar[str] = "classes"
    about: ClassVar[str] = "Kinds of tissue or material, each of which may lie in many places."
    usual_sweeps: ClassVar[int | None] = 120
    pixels_per_site: ClassVar[float] = 30

    codebook: str | Codebook = "image"
    n_words: int = 30
    phi: float = 3.0
    prior: PartitionPrior = ParsimoniousProcess(1.0, 0.02)
    init: Start = "opposite"
    even_light: bool = option(True, "Whether to remove uneven light, if the image shows any; never in volumes.")
    texture: bool = option(True, "Whether to tell kinds of texture apart in gray images, if intensities alone cannot.")
    regions: bool = option(False, "Whether to divide classes into connected regions.")
    min_region: float = option(1.0, "Smallest region, in sites of mean size; smaller ones join a neighbor.", above=0)

    def light(self, image: WorkingCopy) -> Light | None:
        """The uneven light to remove; None where there is none, in color, where shadows have hues, and in volumes.

        Tissues that surround each other would look like light there (docs/howto/medical.md).
        """
        picture = image.picture
        may_be_uneven = len(picture.shape) == 2 and (not picture.is_color or is_gray(picture))
        is_asked = self.even_light and image.texture is None
        return light_of(picture, image.inside) if is_asked and may_be_uneven else None

    def textured(self, image: WorkingCopy) -> WorkingCopy:
        """The image with its texture, where that tells kinds apart; in gray images of one plane."""
        picture = image.picture
        may_differ = self.texture and len(picture.shape) == 2 and np.ptp(picture.codes, axis=-1).max() == 0
        return image._replace(texture=texture_of(picture, image.inside) if may_differ else None)

    def make_sites(self, image: WorkingCopy, maps: BoundaryMaps | None) -> NDArray[np.int32]:
        """The site of every pixel, -1 outside; sites follow the image and not its noise."""
        calm = image.picture
        if image.texture is not None:
            codes = MAX_CODE * (image.texture - image.texture.min()) / np.ptp(image.texture)
            calm = Picture(np.rint(codes).astype(np.uint16), channel_kind="measured")
        elif isinstance(self.sites, str):
            calm = smoothed(calm, self.pixels_per_site)
        return super().make_sites(image._replace(picture=calm), maps)

    def appearance(self, image: WorkingCopy, sites: NDArray[np.int32], graph: SiteGraph) -> Likelihood:
        """The likelihood of the color words of the sites, or of the texture around them."""
        if image.texture is None:
            return super().appearance(image, sites, graph)
        area = site_sizes(sites)
        weights = area / area.mean() if self.count_weight is None else self.count_weight * area
        values = site_means(image.texture, sites)
        return DiagonalGaussian(values, 0.0, shape=TEXTURE_SHAPE, rate=TEXTURE_SHAPE, weights=weights)

    def partition(self, drawn: Chains, problem: Problem, seed: int) -> NDArray[np.int32]:
        """The partition that a segmentation shows: the classes, or connected regions of at least `min_region` sites.

        Regions are the estimate from the connected pieces of the clusters of every draw, searched for among connected
        partitions from the pieces of `estimated` on. Regions that are too small have joined the neighbor from which the
        draws separate them least. Where the best partition visited is asked for, its pieces are the regions, and small
        ones have joined the neighbor of largest coupling. Where a draw has MAX_PIECES or more, the search is left out.
        """
        found = self.estimated(drawn, problem.model, seed)
        if not self.regions:
            return found
        model, graph, area = problem.model, problem.model.graph, site_sizes(problem.sites)
        smallest = self.min_region * area.mean()
        regions = regions_of(found, graph)
        if self.estimate == "best" or not drawn.labels.size:
            return absorb_small(regions, graph, model.beta, smallest, length=graph.length, area=area)
        draws = drawn.labels.reshape(-1, graph.n_sites)
        draws = draws[np.random.default_rng(seed).permutation(len(draws))[:MAX_DRAWS]]
        pieces = np.array([regions_of(draw, graph) for draw in draws])
        if pieces.max() < MAX_PIECES:
            regions = improved(regions, pieces, self.estimate, graph=graph, max_draws=MAX_PIECE_DRAWS, rng=seed)
        apart = separation_probability(draws, graph.edges) * graph.length
        return absorb_small(regions, graph, -apart, smallest, length=graph.length, area=area)

    def refines(self, problem: Problem) -> bool:
        """Whether outlines follow the pixels: unless sites are given."""
        return isinstance(self.sites, str) and problem.working_image.texture is None

    def refined_sites(self, problem: Problem, drawn: Chains, partition: NDArray[np.int32]) -> NDArray[np.int32]:
        """The sites of the whole image, with each pixel in a site of the class that its neighborhood suggests."""
        words, n_words = self.words(problem.working_image.picture)
        refined = refine_classes(problem.sites, partition, words, n_words)
        if self.regions:
            refined = with_connected_regions(refined, partition)
        return problem.working_image.to_original(refined, outside=-1)


def mean_with_neighbors(counts: sparse.csr_array, graph: SiteGraph, n_times: int) -> tuple[sparse.csr_array, float]:
    """The mean counts of each site and its neighbors, taken `n_times`: in whole parts, and how many of them make one.

    A part is one where sites have at least PIXELS_PER_SITE counts in the mean, and smaller where they have fewer, so
    that little is lost by rounding. Sums would be as good, but their tables are so large that sampling takes several
    times as long.
    """
    if n_times == 0:
        return counts, 1.0
    reach = sparse.csr_array((np.ones(graph.neighbors.size), graph.neighbors, graph.start), shape=(graph.n_sites,) * 2)
    reach = reach + sparse.eye_array(graph.n_sites, format="csr")
    mean = sparse.diags_array(1 / reach.sum(axis=1)) @ reach
    smooth = counts.astype(np.float64)
    for _ in range(n_times):
        smooth = mean @ smooth
    n_parts = max(1.0, PIXELS_PER_SITE * graph.n_sites / max(smooth.sum(), 1.0))
    parts = sparse.csr_array(smooth)
    parts.data = np.rint(n_parts * parts.data)
    parts.eliminate_zeros()
    return parts.astype(np.int32), n_parts
