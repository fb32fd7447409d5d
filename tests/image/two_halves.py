"""A picture of two halves, its sites, and everything that cues are computed from."""

import numpy as np

from spinseg.graph.adjacency import region_adjacency
from spinseg.image.boundary.cues import SiteStatistics, edge_cues
from spinseg.image.boundary.maps import boundary_maps
from spinseg.image.features import site_histograms
from spinseg.image.picture import as_picture
from spinseg.image.superpixels import superpixels

N_WORDS = 12


class TwoHalves:
    """The image and its cues; the methods compute the parts of cues slowly, pixel by pixel."""

    def __init__(self, masked):
        rng = np.random.default_rng(0)
        image = rng.normal(0.5, 0.05, (41, 50, 3))
        image[:, 25:] += [0.3, -0.2, 0.1]
        image[:20, :25] += 0.1 * rng.normal(size=(20, 25, 1))
        mask = np.ones((41, 50), bool)
        if masked:
            mask[15:27, 20:31] = mask[:3] = False
        self.picture = as_picture(image.clip(0, 1))
        self.sites = superpixels(self.picture, n_sites=18, mask=mask)
        self.adjacency = region_adjacency(self.sites)
        self.edges = self.adjacency.edges
        self.words = rng.integers(0, N_WORDS // 2, self.sites.shape) + N_WORDS // 2 * (np.arange(50) >= 25)
        self.counts = site_histograms(self.words, self.sites, N_WORDS)
        self.maps = boundary_maps(self.picture)
        self.statistics = SiteStatistics.of(self.picture, self.sites, self.counts, self.maps)
        self.cues = edge_cues(self.statistics, self.sites, self.adjacency, self.maps)
        self.mean_size = np.bincount(self.sites[self.sites >= 0]).mean()
        self.pixels = [list(zip(*np.nonzero(self.sites == s), strict=True)) for s in range(self.sites.max() + 1)]

    def pairs(self, i, j):
        """Pixels of site i and of site j that lie beside each other."""
        height, width = self.sites.shape
        for y, x in self.pixels[i]:
            for v, u in ((y + 1, x), (y - 1, x), (y, x + 1), (y, x - 1)):
                if 0 <= v < height and 0 <= u < width and self.sites[v, u] == j:
                    yield (y, x), (v, u)

    def mean(self, values, site):
        return sum(values[pixel].astype(float) for pixel in self.pixels[site]) / len(self.pixels[site])

    def color(self, site):
        return self.mean(self.picture.colors, site)

    def variance(self, site):
        middle = self.color(site)
        squares = [(self.picture.colors[pixel] - middle) ** 2 for pixel in self.pixels[site]]
        return sum(squares) / len(squares) + 4.0

    def center(self, site):
        y, x = np.mean(self.pixels[site], axis=0)
        return x, y

    def histogram(self, kinds, n_kinds, site):
        return np.bincount(kinds[self.sites == site], minlength=n_kinds).astype(float)
