"""`ColorWords`: presets that describe a site by how often each color word occurs in it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray

from spinseg._validation import check_choice
from spinseg.graph.site_graph import SiteGraph
from spinseg.image.boundary.maps import BoundaryMaps
from spinseg.image.features import Codebook, site_histograms
from spinseg.image.noise import observations_per_pixel
from spinseg.image.picture import Picture
from spinseg.image.superpixels import PIXELS_PER_SITE
from spinseg.image.working import WorkingCopy
from spinseg.model.likelihoods import DirichletMultinomial
from spinseg.model.posterior import Model
from spinseg.segmentation.presets.option import Slider, option
from spinseg.segmentation.presets.preset import Preset

CODEBOOKS = ("general", "image")


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
        0.125,
        "Number of observations that a pixel counts for: less than 1, because neighboring pixels are not independent.",
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
        words, n_words = self.words(image.picture)
        parts, n_parts = mean_with_neighbors(site_histograms(words, sites, n_words), graph, self.smoothing)
        weight = self.observations_per_pixel(image.picture, sites, graph)
        return Model(graph, DirichletMultinomial(parts, self.phi, weight / n_parts), self.prior, self.beta)

    def observations_per_pixel(self, picture: Picture, sites: NDArray[np.int32], graph: SiteGraph) -> float:
        """How many observations a pixel counts for: `count_weight`, or where that is None, as the image shows."""
        return observations_per_pixel(picture, sites, graph) if self.count_weight is None else self.count_weight


def mean_with_neighbors(counts: sparse.csr_array, graph: SiteGraph, n_times: int = 1) -> tuple[sparse.csr_array, float]:
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
