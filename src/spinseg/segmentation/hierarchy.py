"""`Hierarchy`: the boundaries of a segmentation with their probabilities as heights."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from spinseg._validation import check_real, invalid
from spinseg.graph.site_graph import SiteGraph
from spinseg.image.features import site_sizes
from spinseg.image.render import paint_edges
from spinseg.partition.numbering import label_image, largest_first


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
