"""Bayesian nonparametric image segmentation with a generalized Swendsen-Wang sampler.

Names are loaded when they are first used, so that importing the package costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from spinseg._version import VERSION

__version__ = VERSION

if TYPE_CHECKING:
    from spinseg._errors import InvalidInput as InvalidInput
    from spinseg._errors import MissingExtra as MissingExtra
    from spinseg.clustering.estimator import SpatialClustering as SpatialClustering
    from spinseg.clustering.omics import cluster_anndata as cluster_anndata
    from spinseg.graph.adjacency import RegionAdjacency as RegionAdjacency
    from spinseg.graph.adjacency import region_adjacency as region_adjacency
    from spinseg.graph.site_graph import SiteGraph as SiteGraph
    from spinseg.image.boundary.network import boundary_strength as boundary_strength
    from spinseg.image.features import Codebook as Codebook
    from spinseg.image.io import read_picture as read_picture
    from spinseg.image.layout import Reading as Reading
    from spinseg.image.picture import Picture as Picture
    from spinseg.image.picture import as_picture as as_picture
    from spinseg.image.render import mean_colors as mean_colors
    from spinseg.image.render import overlay as overlay
    from spinseg.image.superpixels import superpixels as superpixels
    from spinseg.model.gaussians import DiagonalGaussian as DiagonalGaussian
    from spinseg.model.gaussians import Gaussian as Gaussian
    from spinseg.model.likelihoods import DirichletMultinomial as DirichletMultinomial
    from spinseg.model.likelihoods import Flat as Flat
    from spinseg.model.likelihoods import Likelihood as Likelihood
    from spinseg.model.likelihoods import PoissonGamma as PoissonGamma
    from spinseg.model.likelihoods import Product as Product
    from spinseg.model.mixture import Mixture as Mixture
    from spinseg.model.posterior import Model as Model
    from spinseg.model.priors import DirichletProcess as DirichletProcess
    from spinseg.model.priors import ExchangeablePrior as ExchangeablePrior
    from spinseg.model.priors import FiniteDirichlet as FiniteDirichlet
    from spinseg.model.priors import MixtureOfFiniteMixtures as MixtureOfFiniteMixtures
    from spinseg.model.priors import ParsimoniousProcess as ParsimoniousProcess
    from spinseg.model.priors import PartitionPrior as PartitionPrior
    from spinseg.model.priors import PitmanYor as PitmanYor
    from spinseg.model.priors import Potts as Potts
    from spinseg.model.priors import TabulatedPrior as TabulatedPrior
    from spinseg.model.priors import TemperedProcess as TemperedProcess
    from spinseg.sampler.bonds import DataDriven as DataDriven
    from spinseg.sampler.chains import Chains as Chains
    from spinseg.sampler.chains import SamplingInterrupted as SamplingInterrupted
    from spinseg.sampler.diagnostics import Diagnostics as Diagnostics
    from spinseg.sampler.diagnostics import diagnose as diagnose
    from spinseg.sampler.estimates.losses import CredibleBall as CredibleBall
    from spinseg.sampler.estimates.losses import credible_ball as credible_ball
    from spinseg.sampler.estimates.losses import expected_binder as expected_binder
    from spinseg.sampler.estimates.losses import expected_vi as expected_vi
    from spinseg.sampler.estimates.minimize import Estimate as Estimate
    from spinseg.sampler.estimates.minimize import minimize_binder as minimize_binder
    from spinseg.sampler.estimates.minimize import minimize_vi as minimize_vi
    from spinseg.sampler.estimates.pairs import co_clustering as co_clustering
    from spinseg.sampler.estimates.pairs import separation_probability as separation_probability
    from spinseg.sampler.map_search import Mode as Mode
    from spinseg.sampler.map_search import find_map as find_map
    from spinseg.sampler.regions import regions_of as regions_of
    from spinseg.sampler.sample import sample as sample
    from spinseg.segmentation.hierarchy import Hierarchy as Hierarchy
    from spinseg.segmentation.large.result import LargeSegmentation as LargeSegmentation
    from spinseg.segmentation.large.segment_large import segment_large as segment_large
    from spinseg.segmentation.result import Segmentation as Segmentation
    from spinseg.segmentation.result import SegmentationInterrupted as SegmentationInterrupted
    from spinseg.segmentation.segment import segment as segment
    from spinseg.segmentation.settings import Settings as Settings

_HOMES = {
    "graph.site_graph": ("SiteGraph",),
    "model.likelihoods": (
        "DirichletMultinomial",
        "PoissonGamma",
        "Product",
        "Flat",
        "Likelihood",
    ),
    "model.gaussians": ("Gaussian", "DiagonalGaussian"),
    "model.priors": (
        "Potts",
        "FiniteDirichlet",
        "DirichletProcess",
        "PitmanYor",
        "MixtureOfFiniteMixtures",
        "TabulatedPrior",
        "TemperedProcess",
        "ParsimoniousProcess",
        "ExchangeablePrior",
        "PartitionPrior",
    ),
    "model.mixture": ("Mixture",),
    "model.posterior": ("Model",),
    "sampler.bonds": ("DataDriven",),
    "sampler.chains": ("Chains", "SamplingInterrupted"),
    "sampler.diagnostics": ("Diagnostics", "diagnose"),
    "sampler.estimates.pairs": ("co_clustering", "separation_probability"),
    "sampler.estimates.losses": ("credible_ball", "CredibleBall", "expected_vi", "expected_binder"),
    "sampler.estimates.minimize": ("minimize_vi", "minimize_binder", "Estimate"),
    "sampler.map_search": ("Mode", "find_map"),
    "sampler.regions": ("regions_of",),
    "sampler.sample": ("sample",),
    "graph.adjacency": ("region_adjacency", "RegionAdjacency"),
    "image.boundary.network": ("boundary_strength",),
    "clustering.estimator": ("SpatialClustering",),
    "clustering.omics": ("cluster_anndata",),
    "image.features": ("Codebook",),
    "image.io": ("read_picture",),
    "image.layout": ("Reading",),
    "image.picture": ("Picture", "as_picture"),
    "image.render": ("overlay", "mean_colors"),
    "image.superpixels": ("superpixels",),
    "segmentation.settings": ("Settings",),
    "segmentation.hierarchy": ("Hierarchy",),
    "segmentation.segment": ("segment",),
    "segmentation.result": ("Segmentation", "SegmentationInterrupted"),
    "_errors": ("InvalidInput", "MissingExtra"),
    "segmentation.large.result": ("LargeSegmentation",),
    "segmentation.large.segment_large": ("segment_large",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_NEED_EXTRAS = {"SpatialClustering"}  # to be loaded at all, which `from spinseg import *` does
__all__ = ["__version__", *(name for name in _HOME_OF if name not in _NEED_EXTRAS)]


def __getattr__(name: str) -> object:
    """The public name, from the module where it lives."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'spinseg' has no attribute {name!r}")
    value = getattr(import_module(f"spinseg.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_NEED_EXTRAS})
