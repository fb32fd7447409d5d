"""Sites tile by tile, against the whole picture at once."""

import numpy as np
import pytest
from PIL import Image
from scipy.ndimage import gaussian_filter

from effort import effort, exhaustive
from spinseg.graph.adjacency import edge_means, region_adjacency
from spinseg.image.boundary.log_odds import GRADIENT_SCALE
from spinseg.image.boundary.network import BoundaryNetwork
from spinseg.image.features import Codebook, gradient_magnitude, site_histograms, site_means, site_sizes
from spinseg.image.intensity import infer_intensity_range
from spinseg.image.picture import Picture, as_picture
from spinseg.image.superpixels import RELIEF_SCALE, seeded_watershed, superpixels
from spinseg.image.working import block_means
from spinseg.pictures import PICTURES
from spinseg.segmentation.large.tiles import HALO_CELLS, Tiling, merge_tiles, relative_to, tile_sites

SHAPES = [((150, 210), 64), ((64, 128), 64), ((40, 50), 64), ((1, 200), 64), ((200, 1), 70), ((65, 63), 64)]


def whole(shape):
    return tuple(slice(0, length) for length in shape)


def noise(shape, n_channels, dtype=np.uint8, seed=0):
    """A smooth random picture, of which no two pixels are alike in 16 bits."""
    values = gaussian_filter(np.random.default_rng(seed).normal(size=(*shape, n_channels)), (3, 3, 0))
    values = (values - values.min()) / np.ptp(values)
    return (values * np.iinfo(dtype).max).astype(dtype)


def by_tiles(image, n_sites, side):
    """The tiling of a picture, the site of every pixel by its cell, and what is known of the sites."""
    tiling = Tiling.of(image.shape[:2], n_sites, side)
    book = codebook(image)
    cells, parts, ends = np.full(tiling.shape, -1, np.int32), [], infer_intensity_range(image)
    for tile in tiling.tiles():
        picture = as_picture(image[tile.read], channel_axis=-1, intensity_range=ends)
        cells[tile.own], part = tile_sites(picture, tile, tiling, book)
        parts.append(part)
    return tiling, cells, merge_tiles(iter(parts), tiling.n_cells, len(book))


def codebook(image):
    return Codebook.general() if image.shape[-1] in (1, 3) else Codebook.fit(image, 20, channel_axis=-1, rng=0)


def at_once(image, tiling):
    """The cell whose lowest pixel floods each pixel, the whole picture at once."""
    box, colors = whole(tiling.shape), as_picture(image, channel_axis=-1).colors
    return seeded_watershed(gradient_magnitude(colors, RELIEF_SCALE) + tiling.basins(box), tiling.cells_of(box))


@pytest.fixture(scope="module")
def photograph():
    with Image.open(PICTURES["coffee"].path) as image:
        return np.array(image.convert("RGB"))[60:360, 100:500]


@pytest.mark.parametrize(("shape", "side"), SHAPES, ids=str)
@pytest.mark.parametrize("n_sites", [1, 7, 90, 10**6])
def test_tiles_cover_the_picture_once_and_lie_in_whole_cells(shape, side, n_sites):
    tiling = Tiling.of(shape, n_sites, side)
    cells = tiling.cells_of(whole(shape))
    assert tiling.n_cells == cells.max() + 1 == np.unique(cells).size <= np.prod(shape)
    covered = np.zeros(shape, int)
    for tile in tiling.tiles():
        covered[tile.own] += 1
        assert all(span.start % side == 0 and 0 < span.stop - span.start <= side for span in tile.own)
        pairs = [(tile.own, tile.padded), (tile.padded, tile.read), (tile.own, tile.seen), (tile.seen, tile.read)]
        for inner, outer in pairs:
            assert all(o.start <= i.start and i.stop <= o.stop for i, o in zip(inner, outer, strict=True))
        assert all(span.start >= 0 and span.stop <= length for span, length in zip(tile.read, shape, strict=True))
        inside = np.zeros(shape, bool)
        inside[tile.padded] = True
        assert not np.intersect1d(cells[inside], cells[~inside]).size  # no cell lies half within
        assert np.array_equal(tiling.cells_of(tile.padded), cells[tile.padded])
    assert (covered == 1).all()


@pytest.mark.parametrize("n_sites", [150, 1000])
def test_some_cells_lie_around_a_tile(n_sites):
    tiling = Tiling.of((300, 410), n_sites, 64)
    for tile in tiling.tiles():
        for own, padded, count, length in zip(tile.own, tile.padded, tiling.cells, tiling.shape, strict=True):
            cell = np.arange(length) * count // length
            assert cell[padded.start] == max(cell[own.start] - HALO_CELLS, 0)
            assert cell[padded.stop - 1] == min(cell[own.stop - 1] + HALO_CELLS, count - 1)


@pytest.mark.parametrize("scale", [RELIEF_SCALE, GRADIENT_SCALE])
def test_a_tile_reads_all_that_its_gradients_look_at(scale):
    """They are those of the whole picture, bit by bit."""
    image = noise((300, 260), 3)
    slopes = gradient_magnitude(as_picture(image).colors, scale)
    for tile in Tiling.of(image.shape[:2], 2000, 64).tiles():
        alone = gradient_magnitude(as_picture(image[tile.read]).colors, scale)
        assert np.array_equal(alone[relative_to(tile.padded, tile.read)], slopes[tile.padded])


@pytest.mark.parametrize("shape", [(150, 210), (210, 150), (64, 64), (1, 200), (37, 53)], ids=str)
def test_cells_are_those_of_a_grid(shape):
    cells = Tiling.of(shape, 90, 64).cells_of(whole(shape))
    grid = superpixels(np.zeros(shape), kind="grid", n_sites=90)
    pairs = np.unique(np.stack([cells.ravel(), grid.ravel()]), axis=1)
    assert pairs.shape[1] == cells.max() + 1 == grid.max() + 1


@pytest.mark.parametrize("shape", [(150, 210), (128, 128), (40, 50), (1, 300)], ids=str)
@pytest.mark.parametrize("n_sites", effort([400], [60, 400]))
def test_sites_are_those_of_the_whole_picture(shape, n_sites):
    """Noise is lower in a cell than around it: no flood comes from far."""
    image = np.random.default_rng(1).integers(0, 2**16, (*shape, 2), dtype=np.uint16)
    for side in (64, 100, 1000):
        tiling, cells, statistics = by_tiles(image, n_sites, side)
        assert np.array_equal(cells, at_once(image, tiling))
        assert np.array_equal(np.flatnonzero(statistics.site_of >= 0), np.unique(cells))


@exhaustive
def test_a_photograph_has_nearly_the_sites_of_the_whole(photograph):
    for n_sites in (150, 600):
        for side, most in ((64, 0.01), (128, 0.005), (1000, 0)):
            tiling, cells, _ = by_tiles(photograph, n_sites, side)
            assert (cells != at_once(photograph, tiling)).mean() <= most


def test_a_flat_picture_has_a_site_for_each_cell():
    """Where no pixel is lower than another, the order in which they are flooded must not show where tiles end."""
    image = np.full((200, 260, 2), 77, np.uint8)
    tiling, cells, statistics = by_tiles(image, 300, 64)
    assert np.array_equal(cells, at_once(image, tiling))
    assert statistics.pixels.size == tiling.n_cells and statistics.pixels.max() < 4 * statistics.pixels.min()


@pytest.mark.parametrize(
    ("n_channels", "dtype"),
    [(3, np.uint8), (5, np.uint16), *effort([], [(1, np.uint8), (2, np.uint8), (3, np.uint16)])],
)
def test_what_tiles_know_adds_up_to_what_the_whole_picture_shows(n_channels, dtype):
    image = noise((150, 210), n_channels, dtype)
    _, cells, statistics = by_tiles(image, 200, 110)
    picture, book, sites = as_picture(image, channel_axis=-1), codebook(image), statistics.site_of[cells]
    assert np.array_equal(np.unique(sites), np.arange(statistics.pixels.size))
    assert np.array_equal(statistics.pixels, site_sizes(sites))
    values = np.concatenate([picture.colors, np.moveaxis(np.indices(sites.shape), 0, -1)], axis=-1, dtype=np.float64)
    assert np.allclose(statistics.means, site_means(values, sites), rtol=1e-6, atol=1e-4)
    squares = [np.bincount(sites.ravel(), channel.ravel() ** 2) for channel in np.moveaxis(values, -1, 0)]
    assert np.allclose(statistics.squares, np.stack(squares, axis=1) / statistics.pixels[:, None])
    assert (statistics.squares >= statistics.means**2).all()
    counts = site_histograms(book.words(picture), sites, len(book))
    assert statistics.words.shape == counts.shape and not (statistics.words != counts).nnz

    whole_adjacency = region_adjacency(sites)
    edges = statistics.graph.edges
    assert statistics.graph.n_sites == statistics.pixels.size
    assert np.array_equal(edges, whole_adjacency.edges)
    assert np.array_equal(statistics.graph.length, whole_adjacency.length)
    gradient = edge_means(sites, edges, gradient_magnitude(picture.colors, GRADIENT_SCALE))
    assert np.allclose(statistics.gradient, gradient, rtol=1e-6)
    if picture.n_channels != 3:
        assert statistics.network is None
        return
    log_odds = BoundaryNetwork.fitted().log_odds(picture.values)
    known = np.stack([edge_means(sites, edges, values) for values in log_odds], axis=1)
    assert np.ptp(known) > 1
    assert np.allclose(statistics.network, known, atol=1e-3)


@exhaustive
def test_where_sites_are_larger_the_network_sees_the_picture_reduced():
    image = noise((390, 410), 3)
    tiling, cells, statistics = by_tiles(image, 100, 256)
    assert tiling.network_step == 3
    picture, sites = as_picture(image), statistics.site_of[cells]
    reduced = BoundaryNetwork.fitted().log_odds(Picture(block_means(picture.codes, 3)).values)
    whole = reduced.repeat(3, axis=1).repeat(3, axis=2)[:, :390, :410]
    known = np.stack([edge_means(sites, statistics.graph.edges, values) for values in whole], axis=1)
    assert np.allclose(statistics.network, known, atol=1e-3)


@exhaustive
@pytest.mark.parametrize("n_sites", [150, 600])
def test_hardly_an_edge_of_a_photograph_is_lost_or_made_up(photograph, n_sites):
    """Across a border two tiles may see a pixel in different sites."""
    _, cells, statistics = by_tiles(photograph, n_sites, 64)
    pairs = zip(statistics.graph.edges.tolist(), statistics.graph.length.tolist(), strict=True)
    found = {tuple(edge): length for edge, length in pairs}
    sites = region_adjacency(statistics.site_of[cells])
    assert abs(sum(found.values()) - sites.length.sum()) <= 0.003 * sites.length.sum()
    there = set(map(tuple, sites.edges.tolist()))
    assert len(there ^ set(found)) <= 0.005 * len(there)


def test_a_picture_of_one_site_has_no_edges():
    image = noise((70, 30), 3)
    _, cells, statistics = by_tiles(image, 1, 64)
    assert not cells.any() and statistics.pixels.tolist() == [2100] and not statistics.graph.n_edges
    assert statistics.graph.length.size == statistics.gradient.size == 0


def test_cells_without_pixels_are_no_sites():
    """A marker that is flooded from elsewhere before its turn is kept, so cells are made empty here by hand."""
    image = noise((70, 130), 1)
    tiling = Tiling.of((70, 130), 60, 64)
    parts = []
    for tile in tiling.tiles():
        _, part = tile_sites(as_picture(image[tile.read], channel_axis=-1), tile, tiling, codebook(image))
        kept = part["sites"] != 7
        part |= {name: part[name][kept] for name in ("sites", "pixels", "sums")}
        words = part["word_site"] != 7
        parts.append(part | {name: part[name][words] for name in ("word_site", "word", "word_count")})
    statistics = merge_tiles(parts, tiling.n_cells, 120)
    assert statistics.site_of[[7, 8]].tolist() == [-1, 7]
    assert statistics.pixels.size == statistics.site_of.max() + 1
    assert statistics.graph.edges.min() == 0 and np.isfinite(statistics.gradient).all()
    assert np.array_equal(statistics.words.sum(axis=1), statistics.pixels)
