"""`Objects`: connected regions, each of a kind, such as nuclei on a background."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from spinseg._validation import invalid
from spinseg.image.boundary.log_odds import is_gray
from spinseg.image.boundary.maps import BoundaryMaps
from spinseg.image.features import site_means, site_sizes
from spinseg.image.picture import Picture
from spinseg.model.gaussians import DiagonalGaussian
from spinseg.model.likelihoods import Likelihood
from spinseg.model.priors import DirichletProcess, PartitionPrior
from spinseg.segmentation.presets.measured import Measured
from spinseg.segmentation.presets.option import Slider, option

SCALE = 100.0  # of the stretched intensities, in units of which the prior below is
PRIOR = {"kappa": 0.2, "shape": 2.0, "rate": 50.0}  # of mean and variance of a kind


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Objects(Measured):
    """Objects on a background, in which regions that look alike are of one kind.

    As `Measured`, and every region has a kind: a hundred nuclei share the intensities of one kind, and so do the pieces
    of the background between them. `seg.kinds` has the kind of each region, and `seg.same_kind` how probable it is that
    two regions are of one kind. The constants were chosen on training nuclei of BBBC038 (docs/evidence/notebook.md).

    Examples
    --------
    >>> import numpy as np
    >>> import spinseg as ss
    >>> y, x = np.indices((60, 90))
    >>> cells = (np.hypot(y - 30, x - 25) < 12) | (
    ...     np.hypot(y - 30, x - 60) < 12
    ... )
    >>> seg = ss.segment(cells * 1.0, ss.Objects(), rng=0)
    >>> seg.n_clusters, seg.kinds.tolist()
    (3, [0, 1, 1])
    """

    name: ClassVar[str] = "objects"
    about: ClassVar[str] = "Connected regions, each of a kind: objects on a background."

    count_weight: float = option(
        0.001,
        "Number of observations that a pixel counts for: less than 1, because neighboring pixels are not independent.",
        above=0,
        slider=Slider(1e-5, 1, "log"),
    )
    kinds: PartitionPrior = option(
        DirichletProcess(0.1), "The prior on kinds of regions, such as 'DirichletProcess(1.0)'."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.kinds, PartitionPrior):
            invalid("kinds", "be a PartitionPrior", self.kinds)

    def prior_of_kinds(self) -> PartitionPrior:
        """The prior of the kinds of regions."""
        return self.kinds

    def appearance(self, picture: Picture, sites: NDArray[np.int32], maps: BoundaryMaps | None) -> Likelihood:
        """A Gaussian of the stretched intensities, in one channel if the image is gray."""
        values = SCALE * picture.values.astype(np.float64)
        if is_gray(picture):
            values = values[..., :1]
        means = site_means(values, sites)
        squares = np.maximum(site_means(np.square(values), sites), means**2)  # rounding may leave it below
        return DiagonalGaussian(means, **PRIOR, weights=self.count_weight * site_sizes(sites), squares=squares)
