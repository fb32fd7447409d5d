"""Evidence of boundaries: each cue by its definition, the log-odds and the couplings it gives, and their detail."""

import math

import numpy as np
import pytest
from PIL import Image
from scipy import ndimage

import spinseg as ss
from spinseg.image.adjacency import edge_means, region_adjacency
from spinseg.image.boundary.cues import REACH, SiteLooks, chi_square, edge_cues, neighbours
from spinseg.image.boundary.log_odds import (
    KINDS,
    PLAIN_LOG_ODDS,
    BoundaryWeights,
    boundary_log_odds,
    is_grey,
    plain_cues,
    plain_log_odds,
    signed_couplings,
)
from spinseg.image.boundary.maps import N_TEXTONS, boundary_maps
from spinseg.image.features import Codebook, site_histograms, site_means
from spinseg.image.picture import as_picture
from spinseg.image.superpixels import superpixels
from spinseg.pictures import PICTURES
from spinseg.segmentation.image_model import maps_for, picture_model
from spinseg.segmentation.settings import COUPLING, PHOTO, SMALLEST_REGION, settings_of

N_WORDS = 12
COLOUR_STEPS = ["g1", "g2", "g4"]
HISTOGRAM_STEPS = ["L3", "C3", "L6", "L12", "C6", "C12", "T6", "T12"]


class Scene:
    """A picture of two halves, its sites, and all that cues are made from."""

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
        self.edges = self.adjacency.graph.edges
        self.words = rng.integers(0, N_WORDS // 2, self.sites.shape) + N_WORDS // 2 * (np.arange(50) >= 25)
        self.counts = site_histograms(self.words, self.sites, N_WORDS)
        self.maps = boundary_maps(self.picture)
        self.looks = SiteLooks.of(self.picture, self.sites, self.counts, self.maps)
        self.cues = edge_cues(self.looks, self.sites, self.adjacency, self.maps)
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

    def colour(self, site):
        return self.mean(self.picture.colours, site)

    def variance(self, site):
        middle = self.colour(site)
        gaps = [(self.picture.colours[pixel] - middle) ** 2 for pixel in self.pixels[site]]
        return sum(gaps) / len(gaps) + 4.0

    def centre(self, site):
        y, x = np.mean(self.pixels[site], axis=0)
        return x, y

    def shown(self, kinds, n_kinds, site):
        total = [0.0] * n_kinds
        for pixel in self.pixels[site]:
            total[kinds[pixel]] += 1
        return np.array(total)


@pytest.fixture(scope="module", params=[False, True], ids=["whole", "masked"])
def scene(request):
    return Scene(request.param)


def assert_cue(scene, name, of_edge, rel=1e-4):
    expected = [of_edge(int(i), int(j)) for i, j in scene.edges]
    assert np.ptp(expected) > 0
    np.testing.assert_allclose(scene.cues[name], expected, rtol=rel, atol=1e-6)


def test_the_cues_come_in_the_order_that_the_weights_expect(scene):
    expected = [*COLOUR_STEPS, *HISTOGRAM_STEPS, "relief", "ground", "dLab", "dL", "dab", "welch", "spread", "texture"]
    expected += [f"{kind}{hop}" for kind in ("words", "textons") for hop in range(4)] + ["size", "reach"]
    assert list(scene.cues) == expected
    assert all(cue.shape == (len(scene.edges),) and np.isfinite(cue).all() for cue in scene.cues.values())


@pytest.mark.parametrize("name", [*COLOUR_STEPS, *HISTOGRAM_STEPS])
def test_steps_are_taken_from_centre_to_centre_at_the_larger_of_two_pixels(scene, name):
    found = (scene.maps.colour | scene.maps.histogram)[name]

    def across(i, j):
        (x0, y0), (x1, y1) = scene.centre(i), scene.centre(j)
        length = math.hypot(x1 - x0, y1 - y0)
        larger = max(np.count_nonzero(scene.sites == i), np.count_nonzero(scene.sites == j))
        around = length < 0.3 * math.sqrt(larger)

        def step(pixel, other):
            cosine, sine = ((x1 - x0) / length, (y1 - y0) / length) if length else (1.0, 0.0)
            if around:
                cosine, sine = other[1] - pixel[1], other[0] - pixel[0]
            y, x = pixel[0] // found.size, pixel[1] // found.size
            parts = cosine * found.right[:, y, x].astype(float) + sine * found.down[:, y, x].astype(float)
            return math.sqrt((parts**2).sum()) if name in COLOUR_STEPS else abs(parts).sum() / 2

        steps = [max(step(p, q), step(q, p)) for p, q in scene.pairs(i, j)]
        mean = sum(steps) / len(steps)
        return math.sqrt(mean) if name in COLOUR_STEPS else mean

    assert_cue(scene, name, across, rel=1e-3)


def test_relief_is_along_the_boundary_and_ground_within_the_sites(scene):
    relief = scene.maps.relief

    def along(i, j):
        heights = [max(float(relief[p]), float(relief[q])) for p, q in scene.pairs(i, j)]
        return sum(heights) / len(heights)

    assert_cue(scene, "relief", along)
    assert_cue(scene, "ground", lambda i, j: max(scene.mean(relief, i), scene.mean(relief, j)))


def test_differences_of_colour_are_roots_of_distances(scene):
    def root(channels):
        return lambda i, j: math.sqrt(math.dist(scene.colour(i)[channels], scene.colour(j)[channels]))

    assert_cue(scene, "dLab", root([0, 1, 2]))
    assert_cue(scene, "dL", root([0]))
    assert_cue(scene, "dab", root([1, 2]))


def test_welch_and_spread_compare_variances_of_at_least_four(scene):
    def welch(i, j):
        gap, spread = scene.colour(i) - scene.colour(j), scene.variance(i) + scene.variance(j)
        return math.sqrt(sum(g * g / s for g, s in zip(gap, spread, strict=True)))

    def spread(i, j):
        pairs = zip(scene.variance(i), scene.variance(j), strict=True)
        return sum(abs(math.log(math.sqrt(one)) - math.log(math.sqrt(other))) for one, other in pairs)

    assert_cue(scene, "welch", welch, rel=1e-3)
    assert_cue(scene, "spread", spread, rel=1e-3)


def test_texture_is_the_distance_of_mean_responses(scene):
    responses = scene.maps.responses
    assert_cue(scene, "texture", lambda i, j: math.dist(scene.mean(responses, i), scene.mean(responses, j)))


@pytest.mark.parametrize("hops", range(4))
@pytest.mark.parametrize("kind", ["words", "textons"])
def test_histograms_take_in_the_neighbours_edge_by_edge(scene, kind, hops):
    n_kinds = N_WORDS if kind == "words" else N_TEXTONS
    kinds = scene.words if kind == "words" else scene.maps.textons
    own = [scene.shown(kinds, n_kinds, s) for s in range(len(scene.pixels))]
    colours = [scene.colour(s) for s in range(len(scene.pixels))]
    touching = {s: {int(a + b - s) for a, b in scene.edges if s in (a, b)} for s in range(len(own))}

    def around(site, hop):
        total = own[site].copy()
        for other in touching[site] if hop else ():
            total += math.exp(-math.dist(colours[site], colours[other]) / 8) * around(other, hop - 1)
        return total

    shares = [total / total.sum() for total in (around(s, hops) for s in range(len(own)))]

    def chi(i, j):
        return 0.5 * sum((p - q) ** 2 / (p + q) for p, q in zip(shares[i], shares[j], strict=True) if p + q > 0)

    assert_cue(scene, f"{kind}{hops}", chi)


def test_size_and_reach_are_in_terms_of_the_average_site(scene):
    sizes = [len(pixels) for pixels in scene.pixels]
    average = sum(sizes) / len(sizes)
    assert_cue(scene, "size", lambda i, j: math.log(min(sizes[i], sizes[j]) / average))
    assert_cue(scene, "reach", lambda i, j: math.log(math.dist(scene.centre(i), scene.centre(j)) / math.sqrt(average)))


def test_chi_square_is_zero_for_equal_shares_and_one_for_disjoint_ones():
    counts = np.array([[2.0, 2, 0, 0], [7, 7, 0, 0], [0, 0, 3, 1], [5, 0, 0, 0], [0, 0, 0, 0]])
    edges = np.array([[0, 1], [0, 2], [1, 2], [0, 3], [3, 4], [4, 4]])
    expected = [0, 1, 1, 1 / 3, 0.5, 0]  # 1/2 (.5^2 / 1.5 + .5^2 / .5) is a third; an empty site has no shares
    np.testing.assert_allclose(chi_square(counts, edges), expected, atol=1e-12)


def test_neighbours_are_mutual():
    found = neighbours(np.array([[0, 1], [1, 3]], np.int32), np.array([0.5, 2.0]), 4)
    np.testing.assert_array_equal(found.toarray(), [[0, 0.5, 0, 0], [0.5, 0, 0, 2], [0, 0, 0, 0], [0, 2, 0, 0]])
    assert neighbours(np.empty((0, 2), np.int32), np.empty(0), 1).toarray().tolist() == [[0]]


@pytest.mark.parametrize("kind", KINDS)
def test_the_weights_of_the_package_are_whole(kind):
    weights = BoundaryWeights.fitted(kind)
    n_hidden = weights.output.size
    assert weights.mean.shape == weights.deviation.shape == weights.direct.shape == (41,)
    assert weights.first.shape == (1 + 29,) and weights.constant.size == 1
    assert weights.hidden.shape == (n_hidden, 41) and weights.bias.shape == (n_hidden,)
    assert all(np.isfinite(numbers).all() for name, numbers in vars(weights).items() if name != "deviation")
    assert weights.deviation.min() > 0
    assert np.isinf(weights.deviation).sum() == (4 if kind == "grey" else 0)  # those of chroma


def test_a_disc_in_a_ring_has_a_boundary():
    y, x = np.mgrid[:61, :61] - 30
    disc = np.hypot(x, y) < 12
    picture = as_picture(np.where(disc, 255, 0).astype(np.uint8))
    sites = (~disc).astype(np.int32)
    halves = np.broadcast_to((x > 0), sites.shape).astype(np.int32)
    split = as_picture((255 * halves).astype(np.uint8))
    found = {}
    for name, (seen, parts) in {"ring": (picture, sites), "halves": (split, halves)}.items():
        maps, adjacency = boundary_maps(seen), region_adjacency(parts)
        looks = SiteLooks.of(seen, parts, site_histograms(parts, parts, 2), maps)
        found[name] = edge_cues(looks, parts, adjacency, maps)
    for cue in ("g1", "g2", "L3"):
        assert found["ring"][cue] > 0.6 * found["halves"][cue]


def random_weights(n_local, n_cues, n_hidden, rng):
    return BoundaryWeights(
        mean=rng.normal(size=n_cues),
        deviation=rng.uniform(0.5, 2, n_cues),
        first=rng.normal(size=1 + n_local),
        constant=rng.normal(size=1),
        direct=rng.normal(size=n_cues),
        hidden=rng.normal(size=(n_hidden, n_cues)),
        bias=rng.normal(size=n_hidden),
        output=rng.normal(size=n_hidden),
    )


def test_log_odds_are_linear_in_the_cues_plus_a_layer_of_tanh():
    rng = np.random.default_rng(1)
    w = random_weights(3, 5, 4, rng)
    cues = {name: rng.normal(size=6) for name in "abcde"}
    found, first = w.log_odds(cues), w.first_log_odds({name: cues[name] for name in "abc"})
    assert found.shape == first.shape == (6,)
    for e in range(6):
        x = [(cues[name][e] - w.mean[k]) / w.deviation[k] for k, name in enumerate("abcde")]
        total = w.constant[0]
        for k in range(5):
            total += w.direct[k] * x[k]
        for h in range(4):
            total += w.output[h] * math.tanh(w.bias[h] + sum(w.hidden[h, k] * x[k] for k in range(5)))
        assert found[e] == pytest.approx(total)
        assert first[e] == pytest.approx(w.first[0] + sum(w.first[1 + k] * x[k] for k in range(3)))


def test_the_second_stage_sees_the_first_ones_log_odds(scene, monkeypatch):
    names = list(scene.cues)
    w = BoundaryWeights(
        mean=np.zeros(41),
        deviation=np.ones(41),
        first=np.append(-3.0, np.arange(29) == names.index("dLab")),
        constant=np.array([0.25]),
        direct=2.0 * (np.arange(41) == 30),
        hidden=np.zeros((1, 41)),
        bias=np.zeros(1),
        output=np.ones(1),
    )
    monkeypatch.setattr(BoundaryWeights, "fitted", lambda kind: w)
    found = boundary_log_odds(scene.picture, scene.sites, scene.adjacency, scene.counts, scene.maps)
    merged = (found - 0.25) / 2
    first = scene.cues["dLab"] - 3
    assert merged.min() == pytest.approx(first.min())  # the weakest boundary is the first to go
    assert first.min() < merged.max() <= first.max() + 1e-9
    assert len(np.unique(merged.round(9))) <= len(scene.pixels) - 1


def test_pictures_of_one_hue_are_judged_by_weights_of_their_own(scene, monkeypatch):
    asked = []
    fitted = random_weights(29, 41, 3, np.random.default_rng(0))
    monkeypatch.setattr(BoundaryWeights, "fitted", lambda kind: asked.append(kind) or fitted)
    grey = np.random.default_rng(1).random((*scene.sites.shape, 1)) * np.ones(3)
    for image in (scene.picture, grey):
        picture = as_picture(image)
        boundary_log_odds(picture, scene.sites, scene.adjacency, scene.counts, boundary_maps(picture))
    assert asked == ["colour", "grey"]


def test_a_picture_is_grey_where_its_chroma_hardly_varies():
    light = np.random.default_rng(0).random((30, 40))
    assert is_grey(as_picture(light)) and is_grey(as_picture(np.full((5, 6, 3), [0.8, 0.2, 0.1])))
    assert is_grey(as_picture((light[..., None] + np.random.default_rng(1).normal(0, 0.002, (30, 40, 3))).clip(0, 1)))
    halves = np.full((30, 40, 3), 0.5)
    halves[:, 20:] = [0.7, 0.4, 0.5]
    assert not is_grey(as_picture(halves))


def is_across(scene):
    columns = np.array([scene.centre(s)[0] for s in range(len(scene.pixels))])
    return (columns[scene.edges] < 24.5).sum(axis=1) == 1


def test_a_boundary_that_is_there_is_likelier(scene):
    across = is_across(scene)
    args = scene.picture, scene.sites, scene.adjacency, scene.counts
    log_odds = boundary_log_odds(*args, scene.maps)
    assert 2 <= across.sum() < len(across) and np.isfinite(log_odds).all()
    assert log_odds[across].min() > log_odds[~across].max()
    plain = plain_log_odds(*args)
    assert plain[across].min() > plain[~across].max()


def test_what_lies_outside_the_mask_is_no_one_s_neighbour():
    image = np.random.default_rng(0).random((40, 60, 3))
    mask = np.ones((40, 60), bool)
    mask[:, 28:32] = False
    found = ss.segment(image, mask=mask, sweeps=4, chains=1, rng=0)
    ends = found.model.graph.edges
    left = ndimage.maximum(
        np.broadcast_to(np.arange(60) < 30, mask.shape), found.sites, np.arange(found.sites.max() + 1)
    )
    assert (left[ends[:, 0]] == left[ends[:, 1]]).all() and np.isfinite(found.model.beta).all()
    assert ((found.labels == -1) == ~mask).all()


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (12, 15)], ids=str)
def test_a_picture_of_one_site_has_no_boundaries(shape):
    picture = as_picture(np.random.default_rng(0).random((*shape, 3)))
    sites = np.zeros(shape, np.int32)
    counts = site_histograms(np.zeros(shape, int), sites, 4)
    found = boundary_log_odds(picture, sites, region_adjacency(sites), counts, boundary_maps(picture))
    assert found.shape == (0,)
    assert ss.segment(picture, sites=sites, sweeps=2, chains=1, rng=0).n_clusters == 1


@pytest.mark.parametrize("n_islands", [4, 7, 8], ids="{} x islands".format)
def test_islands_that_touch_nothing_are_segmented(n_islands):
    image = np.random.default_rng(0).random((7 * n_islands, 7 * n_islands, 3))
    rows, columns = np.indices(image.shape[:2])
    islands = np.where((rows % 7 < 5) & (columns % 7 < 5), rows // 7 * n_islands + columns // 7, -1)
    found = ss.segment(image, sites=islands, sweeps=2, chains=1, rng=0)
    assert found.model.graph.n_edges == 0 and found.n_clusters == n_islands**2


def plain_scene():
    rng = np.random.default_rng(0)
    image = rng.normal(0.5, 0.05, (50, 60, 3)).clip(0, 1)
    image[:, 30:] += [0.3, -0.2, 0.1]
    picture = as_picture(image.clip(0, 1))
    sites = superpixels(picture, n_sites=40)
    words = rng.integers(0, 12, sites.shape) + 12 * (np.arange(60) >= 30)
    return picture, sites, region_adjacency(sites), site_histograms(words, sites, 24)


def test_plain_cues_are_what_they_say():
    picture, sites, adjacency, counts = plain_scene()
    found = plain_cues(picture, sites, adjacency, counts)
    lab, edges = picture.colours, adjacency.graph.edges
    means = site_means(lab, sites)
    slope = np.sqrt(sum(ndimage.gaussian_gradient_magnitude(lab[..., c], 2.0) ** 2 for c in range(3)))
    table = counts.toarray()
    for e in (0, 7, len(edges) - 1):
        i, j = edges[e]
        assert found[e, 0] == pytest.approx(np.sqrt(np.linalg.norm(means[i] - means[j])))
        pairs = [
            max(slope[a], slope[b])
            for a in zip(*np.nonzero(sites == i), strict=True)
            for b in ((a[0] + 1, a[1]), (a[0] - 1, a[1]), (a[0], a[1] + 1), (a[0], a[1] - 1))
            if 0 <= b[0] < 50 and 0 <= b[1] < 60 and sites[b] == j
        ]
        assert found[e, 1] == pytest.approx(np.sqrt(np.mean(pairs)), rel=1e-5)

        def around(s):
            total = table[s].astype(float)
            for a, b in edges:
                if s in (a, b):
                    other = a + b - s
                    total += np.exp(-np.linalg.norm(means[a] - means[b]) / REACH) * table[other]
            return total / total.sum()

        p, q = around(i), around(j)
        inner = p + q > 0
        assert found[e, 2] == pytest.approx(0.5 * ((p - q)[inner] ** 2 / (p + q)[inner]).sum())


def test_plain_log_odds_weigh_the_plain_cues():
    constant, *weights = PLAIN_LOG_ODDS
    rows = plain_cues(*plain_scene())
    expected = [constant + sum(w * cue for w, cue in zip(weights, row, strict=True)) for row in rows]
    np.testing.assert_allclose(plain_log_odds(*plain_scene()), expected)


def test_couplings_change_sign_at_the_threshold():
    beta = signed_couplings(np.array([-2.0, -1.0, 0.0]), np.array([10, 10, 5]), strength=0.5, threshold=-1.0)
    assert beta.tolist() == [5.0, 0.0, -2.5]


def test_means_along_edges_follow_the_order_of_the_graph():
    rng = np.random.default_rng(3)
    sites = superpixels(rng.random((20, 30)), n_sites=12)
    adjacency = region_adjacency(sites, contrast_of=sites.astype(float))
    ones = edge_means(sites, adjacency.graph.edges, np.ones(sites.shape))
    np.testing.assert_array_equal(ones, 1)
    largest = edge_means(sites, adjacency.graph.edges, sites.astype(float))
    np.testing.assert_array_equal(largest, adjacency.graph.edges.max(axis=1))


def assert_coupled(beta, adjacency, log_odds):
    """By length and evidence, all edges with the same strength."""
    strength = beta / (adjacency.boundary_length * (COUPLING.threshold - log_odds))
    np.testing.assert_allclose(strength, strength[0])
    assert strength[0] >= COUPLING.strength


OTHER_PICTURES = {"volume": ((8, 12, 14), None), "five channels": ((24, 30, 5), -1)}


@pytest.mark.parametrize("kind", list(OTHER_PICTURES))
def test_other_pictures_than_photographs_are_coupled_by_plain_log_odds(kind):
    shape, channel_axis = OTHER_PICTURES[kind]
    picture = as_picture(np.random.default_rng(2).random(shape), channel_axis=channel_axis)
    assert maps_for(picture, PHOTO) is None
    sites = superpixels(picture, kind="grid", n_sites=12)
    adjacency = region_adjacency(sites)
    book = Codebook.general(120) if kind == "volume" else Codebook.fit(picture, 120, rng=0)
    counts = site_histograms(book.words(picture), sites, len(book))
    log_odds = plain_log_odds(picture, sites, adjacency, counts)
    assert_coupled(picture_model(picture, sites, adjacency, PHOTO).beta, adjacency, log_odds)


def test_a_photograph_is_coupled_by_all_cues_unless_it_is_not_to_be():
    picture = as_picture(np.random.default_rng(2).random((30, 40, 3)))
    sites = superpixels(picture, kind="grid", n_sites=12)
    adjacency = region_adjacency(sites)
    counts = site_histograms(Codebook.general(120).words(picture), sites, 120)
    maps = maps_for(picture, PHOTO)
    log_odds = boundary_log_odds(picture, sites, adjacency, counts, maps)
    assert_coupled(picture_model(picture, sites, adjacency, PHOTO, maps).beta, adjacency, log_odds)
    for preset, given in (("photo", {"sites": "pixels"}), ("paper", {})):
        assert maps_for(picture, settings_of(preset, given)) is None
    for given in ({"sites": sites}, {"beta": 0.1}):
        assert maps_for(picture, settings_of("photo", given)) is not None


def test_the_watershed_floods_the_relief_it_is_given():
    relief = np.random.default_rng(0).random((30, 40))
    relief[:, 13] += 5
    relief[15, [4, 30]] = -1
    sites = superpixels(np.zeros((30, 40, 3)), kind="watershed", n_sites=2, relief=relief)
    assert len(np.unique(sites[:, :13])) == len(np.unique(sites[:, 14:])) == 1 and sites[0, 0] != sites[0, 39]
    with pytest.raises(ValueError, match=r"relief must have shape \(30, 40\)"):
        superpixels(np.zeros((30, 40, 3)), kind="watershed", n_sites=2, relief=relief.T)


def test_more_detail_needs_less_evidence_and_keeps_smaller_regions():
    chosen = [settings_of("photo", {"detail": detail}) for detail in (0, 0.25, 0.5, 0.75, 1)]
    thresholds, smallest = [s.coupling.threshold for s in chosen], [s.smallest_region for s in chosen]
    assert (np.diff(thresholds) < 0).all() and (np.diff(smallest) < 0).all()
    assert thresholds[0] - thresholds[-1] == pytest.approx(3) and smallest[0] / smallest[-1] == pytest.approx(16)
    assert chosen[2].coupling == COUPLING and chosen[2].smallest_region == SMALLEST_REGION
    assert {s.coupling.strength for s in chosen} == {COUPLING.strength}
    assert PHOTO.coupling == COUPLING and PHOTO.smallest_region == SMALLEST_REGION


@pytest.mark.parametrize("detail", [-0.01, 1.5, float("nan"), float("inf"), "fine", True], ids=str)
def test_a_detail_outside_zero_to_one_is_refused_in_one_line(detail):
    with pytest.raises(
        ValueError, match=r"^detail must be a finite number of at least 0 and at most 1; rec.*$"
    ) as told:
        ss.segment(np.zeros((8, 8)), detail=detail)
    assert "\n" not in str(told.value)


def test_a_picture_falls_into_more_regions_with_more_detail():
    with Image.open(PICTURES["coffee"].path) as image:
        picture = np.asarray(image)[100:220, 200:360]
    coarse, fine = (ss.segment(picture, detail=detail, sweeps=40, chains=1, rng=3) for detail in (0.1, 0.9))
    assert 1 <= coarse.n_clusters < fine.n_clusters
    for found, detail in ((coarse, 0.1), (fine, 0.9)):
        assert np.bincount(found.labels.ravel()).min() >= 0.0045 * 16 ** (0.5 - detail) * found.labels.size
        assert found.settings.detail == detail
    assert (coarse.model.beta > fine.model.beta).all()


def test_what_is_outside_a_mask_has_no_say_in_the_textons():
    rng = np.random.default_rng(0)
    image = rng.random((40, 60))
    other = image.copy()
    other[:, 40:] = 0.5
    inside = np.zeros(image.shape, bool)
    inside[:, :20] = True
    found = [boundary_maps(as_picture(seen), inside).textons[:, :20] for seen in (image, other)]
    np.testing.assert_array_equal(*found)
