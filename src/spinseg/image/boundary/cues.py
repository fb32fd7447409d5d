"""What lies between two touching sites of a photograph, as far as their surroundings tell: one row for each edge."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray

from spinseg.image.adjacency import RegionAdjacency, edge_means, edge_of_pairs, pairs_across
from spinseg.image.boundary import kernels
from spinseg.image.boundary.filters import Steps
from spinseg.image.boundary.maps import N_TEXTONS, BoundaryMaps
from spinseg.image.features import site_histograms, site_means, site_sizes
from spinseg.image.picture import Picture

REACH = 8.0  # CIELAB units within which a neighbour's histogram counts
N_HOPS = 4  # from the site alone to its neighbours three edges away
AROUND = 0.3  # of the larger site's width: with centres closer than that, one site lies around the other
GRAIN = 4.0  # CIELAB units squared: the least variance of colour in a site


@dataclass(frozen=True, eq=False)
class SiteLooks:
    """What the sites of a photograph look like, a row for each.

    Attributes
    ----------
    sizes : (n_sites,) array
        Pixels.
    centres : (n_sites, 2) array
        Columns and rows.
    colours, variances : (n_sites, 3) array
        Mean and variance of CIELAB.
    words, textons : (n_sites, n_kinds) array
        Number of pixels that show each.
    texture : (n_sites, 15) array
        Mean strength of the filters' responses.
    """

    sizes: NDArray[np.int64]
    centres: NDArray[np.float64]
    colours: NDArray[np.float64]
    variances: NDArray[np.float64]
    words: NDArray[np.float64]
    textons: NDArray[np.float64]
    texture: NDArray[np.float64]

    @classmethod
    def of(
        cls, picture: Picture, sites: NDArray[np.int32], counts: sparse.csr_array, maps: BoundaryMaps
    ) -> "SiteLooks":
        """The looks of the sites; `counts` of their colour words."""
        colours = site_means(picture.colours, sites)
        rows, columns = np.indices(picture.shape, dtype=np.float32)
        return cls(
            sizes=site_sizes(sites),
            centres=site_means(np.stack([columns, rows], axis=-1), sites),
            colours=colours,
            variances=np.maximum(site_means(np.square(picture.colours), sites) - np.square(colours), 0),
            words=counts.toarray().astype(np.float64),
            textons=site_histograms(maps.textons, sites, N_TEXTONS).toarray().astype(np.float64),
            texture=site_means(maps.responses, sites),
        )


def edge_cues(
    looks: SiteLooks, sites: NDArray[np.int32], adjacency: RegionAdjacency, maps: BoundaryMaps
) -> dict[str, NDArray[np.float64]]:
    """Cues of a boundary along each edge, by name, (n_edges,) each.

    g1, g2, g4 and L3..T12 are steps of `BoundaryMaps` across the common boundary, in the direction from one site's
    centre to the other's, so that a boundary that merely ends at a strong one does not inherit it (from pixel to pixel
    where one site lies around the other). relief is how high the watershed's relief is along it, ground how high it is
    within the sites. dLab, dL, dab are differences of mean colour, of lightness and of chroma; welch the first over the
    standard deviations; spread and texture how much those and the texture differ. words and textons are chi-square
    distances, with the neighbours of 0 to 3 edges away. size is that of the smaller site, and reach the distance of the
    centres, both in terms of the average site.
    """
    edges = adjacency.graph.edges
    a, b = edges.T
    cues = _steps_across(looks, sites, edges, maps)
    ground = site_means(maps.relief, sites)[:, 0]
    cues |= {"relief": edge_means(sites, edges, maps.relief), "ground": np.maximum(ground[a], ground[b])}

    gap = looks.colours[a] - looks.colours[b]
    difference = np.linalg.norm(gap, axis=1)
    variances = looks.variances + GRAIN
    cues |= {
        "dLab": np.sqrt(difference),
        "dL": np.sqrt(np.abs(gap[:, 0])),
        "dab": np.sqrt(np.linalg.norm(gap[:, 1:], axis=1)),
        "welch": np.sqrt((np.square(gap) / (variances[a] + variances[b])).sum(axis=1)),
        "spread": 0.5 * np.abs(np.log(variances[a] / variances[b])).sum(axis=1),
        "texture": np.linalg.norm(looks.texture[a] - looks.texture[b], axis=1),
    }
    near = neighbours(edges, np.exp(-difference / REACH), len(looks.sizes))
    for name, counts in (("words", looks.words), ("textons", looks.textons)):
        around = counts
        for hop in range(N_HOPS):
            cues[f"{name}{hop}"] = chi_square(around, edges)
            around = counts + near @ around
    average = looks.sizes.mean()
    centres = np.linalg.norm(looks.centres[a] - looks.centres[b], axis=1)
    cues["size"] = np.log(np.minimum(looks.sizes[a], looks.sizes[b]) / average)
    cues["reach"] = np.log(np.maximum(centres, 1.0) / np.sqrt(average))
    return cues


def neighbours(edges: NDArray[np.int32], weight: NDArray[np.float64], n_sites: int) -> sparse.csr_array:
    """The symmetric matrix of the edges' weights."""
    half = sparse.coo_array((weight, (edges[:, 0], edges[:, 1])), shape=(n_sites, n_sites)).tocsr()
    return (half + half.T).tocsr()


def chi_square(counts: NDArray[np.float64] | sparse.csr_array, edges: NDArray[np.int32]) -> NDArray[np.float64]:
    """1/2 sum_d (p_d - q_d)^2 / (p_d + q_d) of the shares p and q that the two sites of each edge have: 0 to 1."""
    totals = np.asarray(counts.sum(axis=1)).ravel()
    shares = sparse.diags_array(1 / np.maximum(totals, 1e-300)) @ counts
    distance = np.empty(len(edges))
    for start in range(0, len(edges), 4096):  # a block at a time: edges x words may not fit
        block = edges[start : start + 4096]
        p, q = (shares[block[:, end]] for end in (0, 1))
        if sparse.issparse(shares):
            p, q = p.toarray(), q.toarray()
        distance[start : start + 4096] = 0.5 * (np.square(p - q) / np.maximum(p + q, 1e-300)).sum(axis=1)
    return distance


def _steps_across(
    looks: SiteLooks, sites: NDArray[np.int32], edges: NDArray[np.int32], maps: BoundaryMaps
) -> dict[str, NDArray[np.float64]]:
    """Mean step across the common boundary of each edge; of colours its root."""
    lower, upper, (first, second) = pairs_across(sites)
    edge = edge_of_pairs(edges, lower, upper)
    length = np.bincount(edge, minlength=len(edges))
    direction = looks.centres[edges[:, 1]] - looks.centres[edges[:, 0]]
    distance = np.linalg.norm(direction, axis=1, keepdims=True)
    surrounded = distance < AROUND * np.sqrt(looks.sizes[edges].max(axis=1, keepdims=True))
    direction = np.where(surrounded, 0.0, direction / np.maximum(distance, 1e-9))

    def mean_step(found: Steps, is_colour: bool) -> NDArray[np.float64]:
        total = np.zeros(len(edges), np.float32)
        kernels.step_across_edges(
            found.right,
            found.down,
            found.size,
            sites.shape[1],
            first,
            second,
            edge,
            direction.astype(np.float32),
            is_colour,
            total,
        )
        return total / length

    colour = {name: np.sqrt(mean_step(found, True)) for name, found in maps.colour.items()}
    return colour | {name: mean_step(found, False) for name, found in maps.histogram.items()}
