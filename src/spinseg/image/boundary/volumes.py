"""Evidence of boundaries in volumes: the network in three planes, and cues of two sites that touch."""

import numpy as np
from scipy import ndimage
from scipy.special import expit

from spinseg.graph.adjacency import edge_means, edge_saddles
from spinseg.graph.site_graph import SiteGraph
from spinseg.image.boundary.cues import COLOR_NOISE_VARIANCE, Cues, edge_distance
from spinseg.image.boundary.maps import BoundaryMaps
from spinseg.image.boundary.network import CELL, RADII, BoundaryNetwork
from spinseg.image.features import site_means, site_sizes
from spinseg.image.layout import Ints
from spinseg.image.picture import Picture

ENLARGED = 2  # times, planes: objects in volumes are small, and the network is blind to the smallest
PLANE_SIDE = 3 * CELL  # pixels to which an enlarged plane is continued: more takes twice as long and finds no more
THINNEST = 8  # voxels: in a thinner plane the network sees nothing, and a stack of two has hundreds of them
SMOOTHNESS = 0.7  # voxels, of the relief: the network's cells would show


def volume_maps(picture: Picture, network: BoundaryNetwork, network_relief: float) -> BoundaryMaps:
    """Return the maps of a volume of three channels: relief and log-odds.

    The network sees every plane across each of the three axes, enlarged; not those of few planes seen from the side. A
    voxel has the largest of the log-odds.
    """
    log_odds, values = np.full((len(RADII), *picture.shape), -np.inf, np.float32), picture.values
    thinnest = int(np.argmin(picture.shape))
    for axis in range(3):
        if axis != thinnest and picture.shape[thinnest] < THINNEST:
            continue
        for plane, found in zip(np.moveaxis(values, axis, 0), np.moveaxis(log_odds, axis + 1, 0), strict=True):
            seen = ndimage.zoom(plane, (ENLARGED, ENLARGED, 1), order=1, mode="nearest", grid_mode=True)
            blocks = network.log_odds(seen, PLANE_SIDE).reshape(-1, plane.shape[0], ENLARGED, plane.shape[1], ENLARGED)
            np.maximum(found, blocks.max(axis=(2, 4)), out=found)
    relief = ndimage.gaussian_filter(network_relief * expit(log_odds[0]), SMOOTHNESS)
    return BoundaryMaps({}, {}, relief, log_odds, np.empty(0, np.int32), np.empty(0, np.float32))


def volume_cues(picture: Picture, sites: Ints, graph: SiteGraph, maps: BoundaryMaps) -> Cues:
    """Return the cues of a boundary along each edge of a volume.

    - network1, network3, relief: mean along the common boundary of the network's log-odds and of the relief;
      within1, within3 and ground within the sites (the larger of the two).
    - saddle: the lowest relief along the common boundary; depth: how far it lies above the shallower of the two basins.
    - dLab, welch: difference of mean color, its root, and over its standard deviation.
    - darker, brighter: mean lightness of the two sites; dip, bump: how far the boundary lies below both
      and above both, the root with its sign.
    - size, reach: log of the smaller size and of the distance of the centers, relative to the average site.
    """
    edges, sizes = graph.edges, site_sizes(sites)
    cues: Cues = {}
    named = {"network1": maps.network[0], "network3": maps.network[1], "relief": maps.relief}
    for (name, values), inner in zip(named.items(), ("within1", "within3", "ground"), strict=True):
        cues[name] = edge_means(sites, edges, values)
        cues[inner] = site_means(values, sites)[:, 0][edges].max(axis=1)
    cues["saddle"] = edge_saddles(sites, edges, maps.relief)
    bottoms = ndimage.minimum(maps.relief, sites, np.arange(len(sizes)))
    cues["depth"] = cues["saddle"] - np.asarray(bottoms)[edges].max(axis=1)

    colors = site_means(picture.colors, sites)
    variances = np.maximum(site_means(np.square(picture.colors), sites) - np.square(colors), 0) + COLOR_NOISE_VARIANCE
    welch = np.square(colors[edges[:, 0]] - colors[edges[:, 1]]) / variances[edges].sum(axis=1)
    cues |= {"dLab": np.sqrt(edge_distance(colors, edges)), "welch": np.sqrt(welch.sum(axis=1))}
    lightness, ends = picture.colors[..., 0], colors[:, 0][edges]
    cues |= {"darker": ends.min(axis=1), "brighter": ends.max(axis=1)}
    dip = cues["darker"] + edge_means(sites, edges, -lightness)
    bump = edge_means(sites, edges, lightness) - cues["brighter"]
    cues |= {"dip": np.sign(dip) * np.sqrt(np.abs(dip)), "bump": np.sign(bump) * np.sqrt(np.abs(bump))}
    centers = site_means(np.moveaxis(np.indices(sites.shape, dtype=np.float32), 0, -1), sites)
    reach = np.maximum(edge_distance(centers, edges), 1.0)
    cues["size"] = np.log(sizes[edges].min(axis=1) / sizes.mean())
    return cues | {"reach": np.log(reach) - np.log(sizes.mean()) / 3}
