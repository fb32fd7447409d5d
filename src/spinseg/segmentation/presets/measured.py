"""`Measured`: connected regions in what an instrument measured; and `Auto`, which takes it or `Photo`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from spinseg._advice import Advice
from spinseg.image.boundary.kinds import kind_of_image, stretched
from spinseg.image.boundary.log_odds import BoundaryEvidence
from spinseg.image.boundary.maps import BoundaryMaps, filter_separable, gaussian
from spinseg.image.picture import Picture
from spinseg.image.superpixels import basins
from spinseg.image.working import WorkingCopy
from spinseg.model.priors import PartitionPrior, TemperedProcess
from spinseg.segmentation.presets.option import Slider, option
from spinseg.segmentation.presets.photo import MAX_MAP_PIXELS, Photo
from spinseg.segmentation.presets.preset import Preset

# Of the relief, in which a boundary that the network is sure of has the height 20 (docs/evidence/fields.md).
NETWORK_RELIEF, MIN_DEPTH = 20.0, 0.3
VOLUME_DEPTH = 0.8  # the same for volumes, in which noise makes more shallow basins
MAX_SITES = 4_000  # so that a segmentation takes seconds; where there would be more basins, they must be deeper


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Measured(Photo):
    """The preset for what an instrument measured: microscopy, rasters, scans, materials.

    As `Photo`, with a network and cues that learned from nuclei and from rendered scenes, and in which evidence of a
    boundary is taken at its word. The sites are basins of the network's map: an object of any size has one at least,
    and an empty background few. Any number of channels is reduced to three components. In a volume the network sees
    every plane across each axis; axes count alike, whatever the distance of planes. The constants were chosen on
    training nuclei of BBBC038 and on scenes (docs/evidence/fields.md).

    Examples
    --------
    >>> import numpy as np
    >>> import spinseg as ss
    >>> y, x = np.indices((60, 90))
    >>> cells = (np.hypot(y - 30, x - 25) < 12) | (
    ...     np.hypot(y - 30, x - 60) < 12
    ... )
    >>> ss.segment(cells * 1.0, ss.Measured(), rng=0).n_clusters
    3
    """

    name: ClassVar[str] = "measured"
    about: ClassVar[str] = "Connected regions, for microscopy, rasters, scans and materials."
    suits: ClassVar[str | None] = "a measured image (microscopy, raster, scan)"
    max_pixels: ClassVar[int | None] = 1_200_000  # an image of an instrument is large because it shows many things

    detail: float = 0.5
    count_weight: float = option(
        0.0,
        "Number of observations that a pixel counts for: less than 1, because neighboring pixels are not independent.",
        least=0,  # and then only the evidence of boundaries counts, which compares what lies on both sides
        slider=Slider(1e-5, 1, "log"),
    )
    # A region costs nothing: where two meet in a corner alone, no evidence would outweigh a price.
    prior: PartitionPrior = TemperedProcess(1.0, power=0.0)
    power: float = 1.0
    strength: float = 1.0
    saturation: float = 4.0
    evidence: BoundaryEvidence = BoundaryEvidence(network_relief=NETWORK_RELIEF, kind="measured")

    def analyzed(self, image: WorkingCopy, like: Picture | None = None) -> WorkingCopy:
        """The image in three channels, stretched as the network has learned."""
        return image._replace(picture=stretched(image.picture, image.inside, like))

    def maps(self, image: WorkingCopy) -> BoundaryMaps | None:
        """The boundary maps; None for what is too large, as sites that are given may be."""
        fits = np.prod(image.picture.shape) <= MAX_MAP_PIXELS
        return self.evidence.maps(image.picture, image.inside) if fits else None

    def make_sites(self, image: WorkingCopy, maps: BoundaryMaps | None) -> NDArray[np.int32]:
        """The basins of the relief, unless a number of sites or sites are given."""
        by_default = isinstance(self.sites, str) and self.sites == "watershed" and self.n_sites is None
        if maps is None or not by_default:
            return super().make_sites(image, maps)
        if maps.relief.ndim == 3:
            return basins(maps.relief, VOLUME_DEPTH, MAX_SITES, image.inside)
        smooth = filter_separable(maps.relief[None], gaussian(0.7), gaussian(0.7))[0]  # the network's cells would show
        return basins(smooth, MIN_DEPTH, MAX_SITES, image.inside)

    def pixel_weight(self, n_pixels: int) -> float:
        """A pixel counts the same in every image: objects of an instrument do not grow with it."""
        return 1.0

    def not_validated(self, picture: Picture, has_seeds: bool) -> str | None:
        """What the probabilities have not been compared with annotations for: all but nuclei."""
        return super().not_validated(picture, has_seeds) or "measured images, except microscope images of cell nuclei"

    def advice(self, picture: Picture) -> Advice:
        """What to try if parts that differ share a region."""
        return self.finer


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Auto(Photo):
    """The default: `Photo` for photographs, and `Measured` for volumes and other images.

    Volumes and images of measured channels are not photographs. A small classifier decides for gray and color images.
    `seg.taken_for` says which kind it took yours for, and `seg.preset` which preset it used.

    Examples
    --------
    >>> import spinseg as ss
    >>> from spinseg.pictures import PICTURES
    >>> ss.Auto(detail=0.9).for_image(ss.read_picture(PICTURES["cat"].path))
    Photo(detail=0.9)
    """

    name: ClassVar[str] = "auto"
    about: ClassVar[str] = "Connected regions: photo for photographs, measured for volumes and other images."

    def for_image(self, picture: Picture) -> Preset:
        """`Photo` or `Measured` with the options that were set."""
        photo, measured = self.candidates()
        return measured if kind_of_image(picture) == "measured" else photo

    def candidates(self) -> tuple[Preset, ...]:
        """The presets that `for_image` chooses between."""
        return Photo(**self.changes()), Measured(**self.changes())
