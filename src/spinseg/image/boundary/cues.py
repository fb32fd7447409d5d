"""Cues of a boundary between two adjacent sites of a photograph, from the sites and their neighborhood."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray

from spinseg.graph.adjacency import boundary_pairs, edge_index, edge_means
from spinseg.graph.site_graph import SiteGraph
from spinseg.image.boundary.maps import N_TEXTONS, BoundaryMaps, Gradient
from spinseg.image.boundary.network import RADII
from spinseg.image.features import site_histograms, site_means, site_sizes
from spinseg.image.kernels import pixels as kernels
from spinseg.image.layout import Floats, Ints
from spinseg.image.picture import Picture

Cues = dict[str, Floats]  # by name, (n_edges,) each; their order is that of the fitted weights

NEIGHBOR_COLOR_SCALE = 8.0  # CIELAB units, of the weight of a neighbor's histogram
N_HOPS = 4  # histograms reach from 0 to N_HOPS - 1 edges away
MIN_CENTER_DISTANCE = 0.3  # of the larger site's width: with closer centers, one site surrounds the other
EDGE_BLOCK = 128  # edges whose histograms are compared at a time: about what a processor keeps near
COLOR_NOISE_VARIANCE = 4.0  # CIELAB units squared, added to the variance of every site


@dataclass(frozen=True, eq=False)
class SiteStatistics:
    """Statistics of the sites of a photograph, a row for each."""

    sizes: NDArray[np.int64]  # (n_sites,), in pixels
    centers: Floats  # (n_sites, 2), mean column and row
    colors: Floats  # (n_sites, 3), mean of CIELAB
    variances: Floats  # (n_sites, 3), of CIELAB
    words: Floats  # (n_sites, n_words), how many pixels have each word
    textons: Floats  # (n_sites, N_TEXTONS), how many pixels have each texton
    texture: Floats  # (n_sites, 15), mean absolute responses of the texture filters

    @classmethod
    def of(cls, picture: Picture, sites: Ints, counts: sparse.csr_array, maps: BoundaryMaps) -> "SiteStatistics":
        """Compute the statistics of the sites; `counts` are their histograms of color words."""
        colors = site_means(picture.colors, sites)
        rows, columns = np.indices(picture.shape, dtype=np.float32)
        return cls(
            sizes=site_sizes(sites),
            centers=site_means(np.stack([columns, rows], axis=-1), sites),
            colors=colors,
            variances=np.maximum(site_means(np.square(picture.colors), sites) - np.square(colors), 0),
            words=counts.toarray().astype(np.float64),
            textons=site_histograms(maps.textons, sites, N_TEXTONS).toarray().astype(np.float64),
            texture=site_means(maps.responses, sites),
        )


def edge_cues(statistics: SiteStatistics, sites: Ints, adjacency: SiteGraph, maps: BoundaryMaps) -> Cues:
    """Return the local cues of a boundary along each edge.

    - g1, g2, g4 and L3..T12: mean gradient of `BoundaryMaps` across the common boundary, in the direction from one
      site's center to the other's, so that a strong boundary which this one merely meets does not count. If one site
      surrounds the other, the direction is that of each pair of pixels.
    - relief, ground: mean relief along the common boundary, and within the sites (the larger of the two).
    - network1, network3, within1, within3: the same of the network's log-odds of a boundary within 1 and 3 pixels.
    - dLab, dL, dab: root of the difference of mean color, of lightness and of chroma.
    - welch: difference of mean color over its standard deviation, as in Welch's test.
    - spread, texture: difference of log standard deviations of color, and of texture.
    - words0.., textons0..: chi-square distances of histograms, summed with those of the neighbors 0 to 3 edges away.
    - size, reach: log of the smaller size and of the distance of the centers, relative to the average site.
    """
    edges = adjacency.edges
    a, b = edges.T
    cues = _gradient_cues(statistics, sites, edges, maps)
    ground = site_means(maps.relief, sites)[:, 0]
    cues |= {"relief": edge_means(sites, edges, maps.relief), "ground": np.maximum(ground[a], ground[b])}
    for radius, log_odds in zip(RADII, maps.network, strict=True):
        within = site_means(log_odds, sites)[:, 0]
        cues[f"network{radius}"] = edge_means(sites, edges, log_odds)
        cues[f"within{radius}"] = np.maximum(within[a], within[b])

    difference = statistics.colors[a] - statistics.colors[b]
    distance = np.linalg.norm(difference, axis=1)
    variances = statistics.variances + COLOR_NOISE_VARIANCE
    cues |= {
        "dLab": np.sqrt(distance),
        "dL": np.sqrt(np.abs(difference[:, 0])),
        "dab": np.sqrt(np.linalg.norm(difference[:, 1:], axis=1)),
        "welch": np.sqrt((np.square(difference) / (variances[a] + variances[b])).sum(axis=1)),
        "spread": 0.5 * np.abs(np.log(variances[a] / variances[b])).sum(axis=1),
        "texture": edge_distance(statistics.texture, edges),
    }
    similarity = color_similarity(distance, edges, len(statistics.sizes))
    for name, counts in (("words", statistics.words), ("textons", statistics.textons)):
        pooled = counts
        for hop in range(N_HOPS):
            cues[f"{name}{hop}"] = chi_square(pooled, edges)
            pooled = counts + similarity @ pooled
    mean_size = statistics.sizes.mean()
    centers = edge_distance(statistics.centers, edges)
    cues["size"] = np.log(np.minimum(statistics.sizes[a], statistics.sizes[b]) / mean_size)
    cues["reach"] = np.log(np.maximum(centers, 1.0) / np.sqrt(mean_size))
    return cues


def color_similarity(distance: Floats, edges: Ints, n_sites: int) -> sparse.csr_array:
    """Return the symmetric matrix of exp(-d / NEIGHBOR_COLOR_SCALE), d the distance of mean colors of each edge."""
    return symmetric_matrix(edges, np.exp(-distance / NEIGHBOR_COLOR_SCALE), n_sites)


def symmetric_matrix(edges: Ints, weights: Floats, n_sites: int) -> sparse.csr_array:
    """Return the symmetric matrix, (n_sites, n_sites), of the weights of edges."""
    half = sparse.coo_array((weights, (edges[:, 0], edges[:, 1])), shape=(n_sites, n_sites)).tocsr()
    return (half + half.T).tocsr()


def edge_distance(values: Floats, edges: Ints) -> Floats:
    """Return the Euclidean distance between the rows of `values` of the two sites of each edge."""
    return np.linalg.norm(values.take(edges[:, 0], axis=0) - values.take(edges[:, 1], axis=0), axis=1)


def chi_square(counts: Floats | sparse.csr_array, edges: Ints) -> Floats:
    """Return 1/2 sum_d (p_d - q_d)^2 / (p_d + q_d), 0 to 1, of the normalized histograms of each edge's two sites."""
    totals = np.asarray(counts.sum(axis=1)).ravel()
    frequencies = sparse.diags_array(1 / np.maximum(totals, 1e-300)) @ counts
    distance = np.empty(len(edges))
    for start in range(0, len(edges), EDGE_BLOCK):
        block = edges[start : start + EDGE_BLOCK]
        if sparse.issparse(frequencies):
            p, q = (frequencies[block[:, end]].toarray() for end in (0, 1))
        else:
            p, q = (frequencies.take(block[:, end], axis=0) for end in (0, 1))
        distance[start : start + EDGE_BLOCK] = 0.5 * (np.square(p - q) / np.maximum(p + q, 1e-300)).sum(axis=1)
    return distance


def _gradient_cues(statistics: SiteStatistics, sites: Ints, edges: Ints, maps: BoundaryMaps) -> Cues:
    """Return the mean gradient across the common boundary of each edge; of color, its root."""
    lower, upper, pixels = boundary_pairs(sites)
    edge = edge_index(edges, lower, upper)
    length = np.bincount(edge, minlength=len(edges))
    direction = statistics.centers[edges[:, 1]] - statistics.centers[edges[:, 0]]
    distance = np.linalg.norm(direction, axis=1, keepdims=True)
    surrounded = distance < MIN_CENTER_DISTANCE * np.sqrt(statistics.sizes[edges].max(axis=1, keepdims=True))
    direction = np.where(surrounded, 0.0, direction / np.maximum(distance, 1e-9)).astype(np.float32)
    is_across = pixels[1] == pixels[0] + 1
    of_pair = np.where(direction[edge].any(axis=1), direction[edge].T, np.stack([is_across, ~is_across]))
    of_pair = np.ascontiguousarray(of_pair, np.float32)
    row, column = np.divmod(pixels, sites.shape[1])

    def mean_gradient(gradient: Gradient, is_color: bool) -> Floats:
        dx, dy, stride = gradient
        total, place = np.zeros(len(edges), np.float32), row // stride * dx.shape[2] + column // stride
        how = (place, edge, of_pair, is_color, np.zeros(pixels.shape, np.float32), total)
        kernels.add_gradients_across_edges(dx.reshape(len(dx), -1), dy.reshape(len(dy), -1), *how)
        return total / length

    color = {name: np.sqrt(mean_gradient(gradient, True)) for name, gradient in maps.color.items()}
    return color | {name: mean_gradient(gradient, False) for name, gradient in maps.histogram.items()}
