"""Presets as values: what is refused, and when; equality, changes, and the Python that repeats them."""

import re
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

import spinseg as ss
from spinseg.image.boundary.log_odds import BoundaryEvidence, fitted_weights
from spinseg.image.boundary.network import BoundaryNetwork
from spinseg.image.picture import as_picture
from spinseg.segmentation.presets.classes import ColorWords
from spinseg.segmentation.presets.option import prior_from_text
from spinseg.segmentation.presets.preset import chosen_preset
from spinseg.segmentation.problem import prepare

NAMES = {name: getattr(ss, name) for name in ss.__all__}
KINDS = [ss.Photo, ss.Classes, ss.Paper]
NUMBER, WHOLE, POSITIVE = "be a finite number", "be a whole number of at least 1", "be a finite number above 0"
UNIT = "be a finite number of at least 0 and at most 1"
STARTS = "be one of 'one', 'singletons', 'greedy'"
WRONG = {  # by option: the rule, and values that break it
    "detail": (UNIT, [-0.01, 1.5, float("nan"), float("inf"), "fine", True, None]),
    "n_sites": (WHOLE, [0, -3, 2.5, "many"]),
    "count_weight": (POSITIVE, [0, -1, "all"]),
    "kappa": (POSITIVE, [0, "a"]),
    "phi": (POSITIVE, [0]),
    "beta": (NUMBER, ["strong", float("nan"), np.ones(3), None]),
    "n_words": (WHOLE, [0, None]),
    "codebook": ("be one of 'general', 'image'", ["mine", None, 3]),
    "regions": ("be True or False", ["yes", 1, None]),
    "even_light": ("be True or False", ["yes", 1, None]),
    "texture": ("be True or False", ["yes", 1, None]),
    "min_region": (POSITIVE, [0]),
    "estimate": ("be one of 'vi', 'binder', 'best'", ["mean", None, 2]),
    "moves": ("be one of 'auto', 'gsw'", ["x", None]),
    "prior": ("be a PartitionPrior", [3, "Potts(3)", None]),
    "lam": ("be a finite number of at least 0", [-1, "strong"]),
    "init": (f"{STARTS}, 'opposite', 'dispersed'", ["x", "coarse"]),
}
CASES = [(kind, name) for kind in KINDS for name in kind.options() if name in WRONG]


@pytest.mark.parametrize(("kind", "name"), CASES, ids=lambda value: getattr(value, "name", value))
def test_every_option_is_checked_before_the_image_is_read(kind, name):
    rule, values = WRONG[name]
    for value in values:
        with pytest.raises(ss.InvalidInput, match=f"^{name} must {re.escape(rule)}: got ") as error:
            ss.segment("no such image.png", kind.name, **{name: value})
        assert "\n" not in str(error.value)


def test_every_option_of_every_preset_has_a_check_and_a_help():
    for kind in KINDS:
        assert set(kind.options()) <= {*WRONG, "sites"}
        assert all(about.help.endswith(".") for about in kind.options().values())


@pytest.mark.parametrize(
    "keywords, line",
    [
        (
            {"preset": "nice"},
            "preset must be one of 'auto', 'photo', 'measured', 'classes', 'objects', 'paper': got 'nice'",
        ),
        ({"preset": ss.Photo}, "preset must be a preset or the name of one: got <class"),
        ({"sites": "pixels"}, "sites must be one of 'slic', 'watershed', 'grid': got 'pixels'"),
        ({"preset": "paper", "sites": "hexagons"}, "sites must be one of 'slic', 'watershed', 'grid',"),
        ({"sites": 7}, "sites must be a kind of sites or have two or three axes: got ()"),
        ({"sites": np.zeros((4, 5))}, "sites must be whole numbers: got 'float64'"),
        (
            {"preset": "paper", "n_sites": 9, "sites": "pixels"},
            "n_sites must be None where every pixel is a site: got 9",
        ),
        ({"lam": [1.0, -2.0]}, "lam must not be negative: got -2.0"),
        ({"lam": np.ones((2, 2))}, "lam must have shape (any): got (2, 2)"),
        ({"init": ("one", "x")}, f"init must {STARTS}: got 'x'"),
        ({"init": ["one"] * 3}, "init must be one start, or one for each of 2 chains: got '3 starts'"),
        ({"init": np.zeros((3, 9), int)}, "init must be one start, or one for each of 2 chains: got '3 starts'"),
        ({"init": np.zeros(9)}, "init must be whole numbers: got 'float64'"),
        ({"init": np.zeros((2, 3, 4), int)}, "init must be labels of the sites, or such for each chain: got (2,"),
        ({"chains": 0}, "chains must be a whole number of at least 1: got 0"),
        ({"chains": 2.5}, "chains must be a whole number of at least 1: got 2.5"),
        ({"sweeps": 0}, "sweeps must be a whole number of at least 1: got 0"),
        ({"sweeps": "9"}, "sweeps must be a whole number of at least 1: got '9'"),
        ({"sweeps": 10**9, "chains": 8}, "sweeps must keep the traces below 8 GB: got 1000000000"),
        ({"seconds": 3, "sweeps": 10}, "seconds must be None if sweeps are given: got 3"),
        *(({"seconds": value}, "seconds must be ") for value in (0, -1, float("nan"), float("inf"), "soon")),
        ({"workers": 0}, "workers must be a whole number of at least 1: got 0"),
        ({"start_label": 1.0}, "start_label must be 0 or 1: got 1.0"),
        ({"start_label": 2}, "start_label must be 0 or 1: got 2"),
        *(({"start_label": value}, "start_label must be a whole number of at least 0") for value in (-1, True)),
        ({"channel_axis": "last"}, "channel_axis must be None, 'auto' or the number of an axis: got 'last'"),
        ({"channel_axis": 1.0}, "channel_axis must be None, 'auto' or the number of an axis: got 1.0"),
        ({"mask": np.zeros((5, 5), bool)}, "mask must leave some pixel inside: got 'all False'"),
        ({"mask": np.zeros((5, 5))}, "mask must be True inside and False outside: got 'float64'"),
        ({"mask": [[True], [True, False]]}, "mask must be True inside"),
        ({"mask": "no such mask.png"}, "cannot read no such mask.png: no such file"),
        ({"rng": -1}, "rng must be a whole number of at least 0, a Generator or None: got -1"),
        ({"rng": [1, 2]}, "rng must be a whole number of at least 0, a Generator or None: got [1, 2]"),
    ],
)
def test_wrong_input_gets_one_line_before_the_image_is_read(keywords, line):
    with pytest.raises((ValueError, OSError), match="^" + re.escape(line)) as error:
        ss.segment("no such image.png", **keywords)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "keywords, line",
    [
        ({"sites": np.zeros((2, 2), int)}, "sites must have the image's shape (120, 160): got (2, 2)"),
        ({"mask": np.ones((3, 3), bool)}, "mask must have the image's shape (120, 160): got (3, 3)"),
        ({"preset": "paper", "n_words": 100}, "n_words must be one of 30, 60, 120, 240, 480 for the general codebook"),
    ],
)
def test_what_does_not_fit_the_image_is_refused_before_sites_are_made(picture, keywords, line, monkeypatch):
    for kind in (ss.Photo, ColorWords):
        monkeypatch.setattr(kind, "make_sites", lambda *_: 1 / 0)
    with pytest.raises(ss.InvalidInput, match="^" + re.escape(line)):
        ss.segment(picture, **keywords)


@pytest.mark.parametrize(("preset", "name"), [("photo", "beta"), ("paper", "detail"), (ss.Classes(), "kappa")])
def test_an_unknown_option_lists_those_of_the_preset(preset, name):
    with pytest.raises(ss.InvalidInput, match=f"^unknown option: {name}. The preset ") as error:
        ss.segment("no such image.png", preset, **{name: 1.0})
    kind = type(chosen_preset(preset, {}))
    known = f"{kind.name} has {', '.join(kind.options())}. {name} is an option of "
    assert known in str(error.value) and name not in kind.options()
    with pytest.raises(ss.InvalidInput, match=r"Did you mean estimate\?$"):
        kind(estimates="vi")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("seed", "rng"),
        ("random_state", "rng"),
        ("random_seed", "rng"),
        ("sweep", "sweeps"),
        ("chanel_axis", "channel_axis"),
        ("worker", "workers"),
        ("estimates", "estimate"),
    ],
)
@pytest.mark.parametrize("preset", ["auto", "classes", ss.Photo()])
def test_an_unknown_option_that_means_a_keyword_of_segment_names_it(preset, name, meant):
    with pytest.raises(ss.InvalidInput, match=rf"^unknown option: {name}\. The preset .*\. Did you mean {meant}\?$"):
        ss.segment("no such image.png", preset, **{name: 0})


def test_an_unknown_option_names_no_keyword_that_there_is_not():
    for call in (ss.Photo, lambda **options: ss.segment("no such image.png", **options)):
        with pytest.raises(ss.InvalidInput) as error:
            call(option=1)
        assert "Did you mean options" not in str(error.value)
    with pytest.raises(ss.InvalidInput) as error:
        ss.Photo(seed=0)
    assert "rng" not in str(error.value)
    with pytest.raises(ss.InvalidInput, match=r"Did you mean rng\?$"):
        ss.segment_large("no such image.tif", "out", seed=0)


def test_a_name_is_that_of_one_preset_only():
    with pytest.raises(TypeError, match=r"^Finer must have a name of its own"):
        type("Finer", (ss.Photo,), {})
    with pytest.raises(TypeError, match=r"^the name 'photo' of Finer is taken by Photo$"):
        type("Finer", (ss.Photo,), {"name": "photo"})
    assert ss.Preset.known["photo"] is ss.Photo
    unlisted = type("Finer", (ss.Photo,), {}, listed=False)(detail=0.9)
    assert unlisted.call(None, {"rng": 0}) == "ss.segment(image, Finer(), detail=0.9, rng=0)"


def test_presets_are_values():
    sites = np.arange(6).reshape(2, 3)
    for make in (
        lambda: ss.Photo(detail=0.9, sites=sites.copy()),
        lambda: ss.Paper(prior=ss.DirichletProcess(2.0, min_size=2), init=[sites[0].copy(), "one"]),
        lambda: ss.Classes(prior=ss.TabulatedPrior(np.zeros(9), np.zeros(9)), lam=ss.DataDriven(5.0, 1.0)),
    ):
        assert make() == make() and hash(make()) == hash(make())
        assert make() != type(make())() and make() == replace(type(make())(), **make().changes())
    assert ss.Paper() != ss.Classes() and ss.Paper(init=["one", "one"]) != ss.Paper(init=["one", "singletons"])
    assert ss.Paper(prior=ss.DirichletProcess(3.0)) == ss.Paper()
    with pytest.raises(FrozenInstanceError):
        ss.Photo().detail = 0.1
    with pytest.raises(ss.InvalidInput, match="detail must be"):
        replace(ss.Photo(), detail=2)


def test_changes_and_repr_name_what_differs_from_the_default():
    assert ss.Photo(detail=0.65).changes() == {} and repr(ss.Photo()) == "Photo()"
    chosen = ss.Photo(n_sites=np.int64(50), detail=np.float32(0.5), power=0.2)
    assert chosen.changes() == {"n_sites": 50, "detail": 0.5, "power": 0.2}
    assert repr(chosen) == "Photo(n_sites=50, detail=0.5, power=0.2)" and eval(repr(chosen), NAMES) == chosen


PRESETS = [
    ss.Photo(),
    ss.Photo(detail=0.25, n_sites=40, prior=ss.PitmanYor(1.0, discount=0.3), estimate="binder"),
    ss.Photo(sites="slic", init=("one", "greedy"), lam=2.5, moves="gsw", n_details=2),
    ss.Classes(regions=True, min_region=2.0, n_words=12),
    ss.Classes(prior=ss.ParsimoniousProcess(2.0, 0.1, max_size=30), sites="pixels"),
    ss.Paper(lam=ss.DataDriven(5.0, 1.0), beta=0.1, codebook="image"),
    ss.Paper(prior=ss.Potts(4), smoothing=2, init="singletons"),
]


@pytest.mark.parametrize("preset", PRESETS, ids=repr)
def test_the_line_of_python_gives_the_same_preset_and_the_same_segmentation(preset):
    image = np.random.default_rng(0).random((12, 16))
    found = ss.segment(image, preset, sweeps=3, chains=2, rng=7)
    again = eval(found.python_code, {"ss": ss, "image": image})
    assert again.preset == found.preset == preset and again.schedule == found.schedule
    np.testing.assert_array_equal(again.chains.labels, found.chains.labels)
    np.testing.assert_array_equal(again.labels, found.labels)
    by_name = ss.segment(image, preset.name, sweeps=3, chains=2, rng=7, **preset.changes())
    assert by_name.preset == preset
    np.testing.assert_array_equal(by_name.labels, found.labels)


def test_json_has_every_option_and_every_change():
    preset = ss.Paper(sites=np.zeros((2, 2), int), prior=ss.Potts(4), init=("one",), smoothing=2, lam=None)
    reported = preset.as_json()
    assert set(reported) == {"preset", "connected", "smoothing", *ss.Paper.options()}
    assert reported["preset"] == "paper" and reported["connected"] is False and reported["smoothing"] == 2
    assert (
        reported["sites"] == "sites" and reported["prior"] == "ss.Potts(n_labels=4)" and reported["init"] == "('one',)"
    )
    assert reported["lam"] is None and reported["beta"] == 0.02


@pytest.mark.parametrize(
    ("preset", "shape", "has_seeds", "what"),
    [
        (ss.Photo(), (4, 5, 3), False, None),
        (ss.Photo(), (4, 5), False, None),
        (ss.Photo(detail=0.1, estimate="best", moves="gsw", lam=1.0, init="one"), (4, 5), False, None),
        (ss.Photo(n_sites=9), (4, 5), False, "these options"),
        (ss.Photo(power=1.0), (4, 5), False, "these options"),
        (ss.Photo(), (4, 5), True, "images with seeds"),
        (ss.Photo(), (3, 4, 5), False, "volumes"),
        (ss.Photo(), (4, 5, 7), False, "images with 7 channels"),
        (ss.Paper(), (4, 5), False, "the preset paper"),
    ],
)
def test_what_probabilities_have_not_been_validated_for(preset, shape, has_seeds, what):
    axis = -1 if shape[-1] in (3, 7) else None
    assert preset.not_validated(as_picture(np.zeros(shape), channel_axis=axis), has_seeds) == what


class Blind(BoundaryNetwork):
    """A network that sees no boundary anywhere."""

    def __init__(self):
        pass

    def log_odds(self, values):
        return np.full_like(BoundaryNetwork.fitted().log_odds(values), -4.0)


def test_constants_change_by_value_and_nothing_else_does(picture):
    def posterior(**changes):
        return prepare(picture[:60, :80], ss.Photo(**changes))

    fitted, usual = fitted_weights()["color"], posterior()
    np.testing.assert_allclose(posterior(strength=1.6).model.beta, 2 * usual.model.beta)
    weights = {"color": {**fitted, "constant": fitted["constant"] + 1}}
    shifted = posterior(evidence=BoundaryEvidence(weights=weights))  # one more of log-odds is one less of threshold
    np.testing.assert_allclose(shifted.model.beta, posterior(threshold=-1.0).model.beta)
    blind = BoundaryEvidence(network=Blind())
    same_sites = posterior(sites=usual.sites, evidence=blind).model
    np.testing.assert_array_equal(same_sites.graph.edges, usual.model.graph.edges)
    assert same_sites.beta.mean() > usual.model.beta.mean() + 0.1
    assert not np.array_equal(posterior(evidence=blind).sites, usual.sites)  # which follow the network, too
    again = posterior()
    np.testing.assert_array_equal(again.sites, usual.sites)
    np.testing.assert_array_equal(again.model.beta, usual.model.beta)


PRIORS = ["DirichletProcess(2.0)", "PitmanYor(3, discount = 0.25)", "Potts(n_labels=4, min_size=2, max_size=9)"]
PRIORS += ["FiniteDirichlet(n_labels=4)", "MixtureOfFiniteMixtures(mean_labels=6.0)", "TemperedProcess(0.1, power=0.0)"]
PRIORS += ["ParsimoniousProcess(concentration=1.0, cost=0.02)"]


@pytest.mark.parametrize("text", PRIORS)
def test_priors_from_text_are_those_of_python(text):
    assert repr(prior_from_text(f" {text} ")) == repr(eval(text, NAMES))


GARBAGE = ["", "dp", "3", "Potts", "Potts(", "Potts()", "Potts(x)", "Potts(**{1: 2})", "Potts(5, n=3)", "ss.Potts(5)"]
GARBAGE += ["print(5)", "(lambda: 1)(5)", "Potts(5); Potts(5)", "Potts(__import__('os'))", "Flat()", "(" * 5000, "\0"]


@pytest.mark.parametrize("text", GARBAGE, ids=lambda text: text[:20])
def test_other_text_is_no_prior(text):
    with pytest.raises(ss.InvalidInput, match=r"^prior must be a call, such as 'PitmanYor\(3.0, [^\n]*: got [^\n]*$"):
        prior_from_text(text)


def test_the_tempered_process_weighs_sizes_less():
    log_v, log_w = ss.TemperedProcess(0.4).tables(50)
    assert log_v[3] == pytest.approx(3 * np.log(0.4)) and log_w[5] == pytest.approx(0.1 * np.log(24))
    assert ss.TemperedProcess().tables(1600)[1][5] == pytest.approx(0.05 * np.log(24))


def test_a_measured_image_has_a_likelihood_only_if_asked_for():
    image = np.random.default_rng(0).normal(np.indices((48, 48)).sum(axis=0) > 48, 0.1)
    assert isinstance(prepare(image, ss.Measured()).model.likelihood, ss.Flat)
    asked, photo = (prepare(image, preset).model.likelihood for preset in (ss.Measured(count_weight=0.01), ss.Photo()))
    assert len(asked.parts) == len(photo.parts) > 1
