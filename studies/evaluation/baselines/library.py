"""Segmentation methods of scikit-image and scikit-learn, with settings chosen on training photographs.

The defaults were chosen on every fifth training photograph of BSDS300 (`python -m studies baselines`): the least
variation of information among the settings of a small grid whose Rand index is within 0.01 of the best.
"""

import warnings
from importlib import import_module
from types import ModuleType

import numpy as np
from numpy.typing import ArrayLike, NDArray
from skimage import graph, segmentation

from spinseg._errors import MissingExtra
from spinseg._validation import invalid
from spinseg.graph.adjacency import region_adjacency
from spinseg.image.features import pixel_positions, site_means, site_sizes
from spinseg.image.picture import Picture, as_picture
from spinseg.image.superpixels import superpixels
from spinseg.partition.numbering import by_first_appearance


def felzenszwalb(
    image: Picture | ArrayLike, *, scale: float = 450.0, sigma: float = 0.8, min_size: int = 800
) -> NDArray[np.int32]:
    """Return the regions of Felzenszwalb and Huttenlocher's graph-based segmentation, numbered by first appearance.

    It is scikit-image's, on 8-bit sRGB. The larger `scale`, the larger the regions; `min_size` is in pixels.

    References
    ----------
    .. [1] Felzenszwalb and Huttenlocher, Efficient graph-based image segmentation, IJCV 2004.
           doi:10.1023/B:VISI.0000022288.19776.77

    Examples
    --------
    >>> felzenszwalb(np.repeat([[0, 200]], 4, axis=1), min_size=1, sigma=0)
    array([[0, 0, 0, 0, 1, 1, 1, 1]], dtype=int32)
    """
    return by_first_appearance(segmentation.felzenszwalb(as_rgb(image), scale=scale, sigma=sigma, min_size=min_size))


def quickshift(
    image: Picture | ArrayLike, *, kernel_size: float = 7.0, max_dist: float = 40.0, ratio: float = 0.5, seed: int = 0
) -> NDArray[np.int32]:
    """Return the clusters of quickshift in CIELAB and position, by first appearance; they may be disconnected.

    References
    ----------
    .. [1] Vedaldi and Soatto, Quick shift and kernel methods for mode seeking, ECCV 2008.
           doi:10.1007/978-3-540-88693-8_52

    Examples
    --------
    >>> quickshift(np.repeat([[0, 200]], 4, axis=1), kernel_size=1)
    array([[0, 0, 0, 0, 1, 1, 1, 1]], dtype=int32)
    """
    settings = {"kernel_size": kernel_size, "max_dist": max_dist, "ratio": ratio}
    rng = seed % 2**31  # scikit-image takes 31 bits
    return by_first_appearance(segmentation.quickshift(as_rgb(image), **settings, rng=rng))


def slic_merged(
    image: Picture | ArrayLike, *, n_segments: int = 400, compactness: float = 30.0, threshold: float = 45.0
) -> NDArray[np.int32]:
    """Return SLIC superpixels merged until no two neighbors differ by less than a threshold in mean sRGB (0-255).

    As in scikit-image's gallery, "RAG merging", whose number of superpixels, compactness and threshold are 400, 30 and
    35: the two neighbors of the closest means are merged, repeatedly. The graph is built from arrays, where
    `graph.rag_mean_color` has a Python loop over pixels; pixels are adjacent along the axes.

    Examples
    --------
    >>> slic_merged(np.repeat([[0, 200]], 4, axis=1), n_segments=4)
    array([[0, 0, 0, 0, 1, 1, 1, 1]], dtype=int32)
    """
    rgb = as_rgb(image)
    sites = segmentation.slic(rgb, compactness=compactness, n_segments=n_segments, start_label=0)
    merged = graph.merge_hierarchical(
        sites,
        _mean_color_graph(rgb, sites),
        thresh=threshold,
        rag_copy=False,
        in_place_merge=True,
        merge_func=_merge_means,
        weight_func=_difference,
    )
    return by_first_appearance(merged)


def gaussian_mixture(image: Picture | ArrayLike, *, n_components: int = 5, seed: int = 0) -> NDArray[np.int32]:
    """Return the clusters of a Dirichlet process mixture of Gaussians, fitted by variational Bayes.

    scikit-learn's BayesianGaussianMixture with its defaults, such as full covariances, on the mean CIELAB and
    position of spinseg's SLIC sites of 60 pixels, all with the same weight. `n_components` truncates the process.
    Clusters may be disconnected.

    References
    ----------
    .. [1] Blei and Jordan, Variational inference for Dirichlet process mixtures, Bayesian Analysis 2006.
           doi:10.1214/06-BA104

    Raises
    ------
    ImportError
        Without scikit-learn, the extra [sklearn].

    Examples
    --------
    >>> halves = np.repeat([[0, 200]], 20, axis=1).repeat(40, axis=0)
    >>> gaussian_mixture(halves, n_components=2).max()  # doctest: +SKIP
    1
    """
    mixture, exceptions, pools = (
        import_extra(module, "gaussian_mixture needs scikit-learn: pip install 'spinseg[sklearn]'")
        for module in ("sklearn.mixture", "sklearn.exceptions", "threadpoolctl")
    )
    picture = Picture(np.multiply(as_rgb(image), 257, dtype=np.uint16))
    sites = superpixels(picture)
    features = np.hstack([site_means(picture.colors, sites), site_means(pixel_positions(picture.shape), sites)])
    if len(features) == 1:
        return sites
    model = mixture.BayesianGaussianMixture(
        n_components=min(n_components, len(features)),
        weight_concentration_prior_type="dirichlet_process",
        random_state=seed,
    )
    # One thread: with several, sums of the k-means start depend on the order in which threads end. A fit that did not
    # converge is a result, too.
    with pools.threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", exceptions.ConvergenceWarning)
        clusters = model.fit_predict(features)
    return by_first_appearance(clusters[sites])


def import_extra(module: str, otherwise: str) -> ModuleType:
    """Import a module of an optional dependency, or raise MissingExtra with the given line."""
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtra(otherwise) from None


def as_rgb(image: Picture | ArrayLike) -> NDArray[np.uint8]:
    """Return a gray or color picture as (H, W, 3) of 8 bits, which all these methods take; refuse any other."""
    picture = as_picture(image)
    if len(picture.shape) != 2 or picture.n_channels != 3:
        shape = (*picture.shape, picture.n_channels)
        invalid("image", "be a gray or color picture, (H, W), (H, W, 3) or (H, W, 4)", shape)
    return picture.rgb


def _mean_color_graph(rgb: NDArray[np.uint8], sites: NDArray) -> graph.RAG:
    """Return the same graph as `graph.rag_mean_color(rgb, sites, connectivity=1)`."""
    rag = graph.RAG()
    means, sizes = site_means(rgb, sites), site_sizes(sites)
    for site, (mean, size) in enumerate(zip(means, sizes.tolist(), strict=True)):
        rag.add_node(site, **{"labels": [site], "pixel count": size, "total color": mean * size, "mean color": mean})
    edges = region_adjacency(sites).edges
    distances = np.linalg.norm(means[edges[:, 0]] - means[edges[:, 1]], axis=1)
    for (one, other), distance in zip(edges.tolist(), distances.tolist(), strict=True):
        rag.add_edge(one, other, weight=distance)
    return rag


def _difference(rag: graph.RAG, source: int, target: int, neighbor: int) -> dict[str, float]:
    """Return the weight of an edge of `target` after `source` was merged into it, as in the gallery."""
    return {"weight": float(np.linalg.norm(rag.nodes[target]["mean color"] - rag.nodes[neighbor]["mean color"]))}


def _merge_means(rag: graph.RAG, source: int, target: int) -> None:
    """Set the mean color of `target` to that of its union with `source`."""
    into, from_ = rag.nodes[target], rag.nodes[source]
    into["total color"] = into["total color"] + from_["total color"]
    into["pixel count"] += from_["pixel count"]
    into["mean color"] = into["total color"] / into["pixel count"]
