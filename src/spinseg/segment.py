"""From a picture to its segmentation: the whole pipeline, top to bottom."""

import os
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinseg.image.adjacency import region_adjacency
from spinseg.image.features import Codebook, site_histograms
from spinseg.image.pixels import Picture, as_picture
from spinseg.image.render import overlay, paint_edges, probability_picture
from spinseg.image.superpixels import superpixels
from spinseg.inference.bonds import Lam
from spinseg.inference.chains import Chains
from spinseg.inference.estimates import separation_probability
from spinseg.inference.progress import Report
from spinseg.inference.sampler import sample
from spinseg.model.likelihoods import DirichletMultinomial
from spinseg.model.priors import DirichletProcess, PartitionPrior
from spinseg.model.target import Model


@dataclass(frozen=True, eq=False)
class Segmentation:
    """A segmentation and the posterior it came from.

    Attributes
    ----------
    labels : int32, the image's shape
        The best partition that the chains visited, 0..k-1; -1 outside the mask.
    sites : int32, the image's shape
        The superpixel of every pixel.
    boundary_probability : float32, the image's shape
        How often, over the draws, a pixel was separated from one beside it.
    """

    labels: NDArray[np.int32]
    sites: NDArray[np.int32]
    boundary_probability: NDArray[np.float32]
    model: Model
    chains: Chains
    picture: Picture = field(repr=False)

    @property
    def n_clusters(self) -> int:
        """Number of clusters of `labels`."""
        return int(self.labels.max()) + 1

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write labels.tif, overlay.png and boundary_probability.png into a folder, each whole or not at all."""
        from skimage.io import imsave

        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        for name, pixels in (
            ("labels.tif", self.labels),
            ("overlay.png", overlay(self.picture, self.labels)),
            ("boundary_probability.png", probability_picture(self.boundary_probability)),
        ):
            partial = folder / f".partial-{os.getpid()}-{name}"
            imsave(partial, pixels, check_contrast=False)
            partial.replace(folder / name)


def segment(
    image: Picture | ArrayLike,
    *,
    prior: PartitionPrior | None = None,
    beta: float = 0.02,
    lam: Lam = None,
    n_sites: int | None = None,
    n_words: int = 120,
    count_weight: float = 0.05,
    phi: float = 50.0,
    sweeps: int = 1000,
    chains: int = 4,
    mask: ArrayLike | None = None,
    rng: int | np.random.Generator | None = None,
    progress: bool | Report | None = None,
) -> Segmentation:
    """The segmentation of a picture under the paper's model: superpixels, colour words, a Dirichlet process, couplings.

    Parameters
    ----------
    image : array
        (H, W), (H, W, C) or a volume, of any number type.
    prior : PartitionPrior, optional
        On the partition of the sites; by default a Dirichlet process of concentration 3.
    beta, lam : float
        Couplings between neighbouring sites, and bond strength of the sampler.
    n_sites, n_words : int
        About how many superpixels (by default one for 60 pixels), and how many colour words.
    count_weight, phi : float
        How much a pixel counts, and the concentration of the base measure.
    sweeps, chains, rng, progress
        As in `sample`. The first half of the sweeps is not drawn from.
    mask : (H, W) array of bool, optional
        Where to segment.
    """
    picture = as_picture(image, mask=mask)
    sites = superpixels(picture, n_sites=n_sites, mask=mask)
    words = Codebook.fit(picture, n_words, rng=0).words(picture)
    counts = site_histograms(words, sites, n_words)
    model = Model(
        region_adjacency(sites).graph,
        DirichletMultinomial(counts, phi, count_weight),
        prior or DirichletProcess(3.0),
        beta,
    )
    drawn = sample(model, sweeps, chains, lam=lam, burn_in=sweeps // 2, rng=rng, progress=progress)
    labels = np.append(drawn.best_labels, np.int32(-1))[sites]  # site -1, the outside, takes the last
    apart = separation_probability(drawn.labels, model.graph.edges)
    return Segmentation(labels, sites, paint_edges(sites, model.graph.edges, apart), model, drawn, picture)
