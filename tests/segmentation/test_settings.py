"""Settings: what is refused, and when; priors by name."""

import re

import numpy as np
import pytest
from spinseg.segmentation.prior_names import prior_named

import spinseg as ss
from spinseg.segmentation.presets import (
    PHOTO,
    settings_of,
)
from spinseg.segmentation.segment import segment


@pytest.mark.parametrize(
    "keywords, line",
    [
        ({"preset": "nice"}, "preset must be one of 'photo', 'classes', 'paper'; received 'nice'"),
        ({"mask": np.ones((3, 3), bool)}, r"mask must have the image's shape \(120, 160\); received \(3, 3\)"),
        ({"mask": np.zeros((120, 160), bool)}, "mask must leave some pixel inside"),
        ({"beta": "strong"}, "beta must be a finite number; received 'strong'"),
        ({"beta": np.ones(3)}, "beta must be a finite number; received"),
        ({"mask": [[True], [True, False]]}, "mask must be True inside"),
        ({"prior": 3}, "prior must be a PartitionPrior; received 3"),
        ({"sites": "hexagons"}, "sites must be one of"),
        ({"sites": np.zeros((2, 2), int)}, "sites must have the image's shape"),
        ({"n_sites": 0}, "n_sites must be a whole number of at least 1; received 0"),
        ({"codebook": "mine"}, "codebook must be one of 'general', 'image'"),
        ({"count_weight": -1}, "count_weight must be a finite number above 0"),
        ({"regions": "yes"}, "regions must be True or False"),
        ({"rng": -4}, "rng must be a whole number"),
        ({"sweeps": 0}, "sweeps must be a whole number of at least 1"),
    ],
)
def test_wrong_wishes_get_one_line(picture, keywords, line):
    with pytest.raises(ValueError, match=line) as error:
        ss.segment(picture, **keywords)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "keywords, line",
    [
        ({"chains": 0}, "chains must be a whole number of at least 1; received 0"),
        ({"chains": 2.5}, "chains must be a whole number of at least 1; received 2.5"),
        ({"sweeps": "9"}, "sweeps must be a whole number of at least 1; received '9'"),
        ({"sweeps": 10**9, "chains": 8}, "sweeps must keep the traces below 8 GB; received 1000000000"),
        ({"n_sites": -3}, "n_sites must be a whole number of at least 1; received -3"),
        ({"n_sites": 9, "sites": "pixels"}, "n_sites must be None where every pixel is a site; received 9"),
        ({"sites": 7}, "sites must be a kind of sites or have two or three axes; received ()"),
        ({"sites": np.zeros((4, 5))}, "sites must be whole numbers; received 'float64'"),
        ({"moves": "x"}, "moves must be one of 'auto', 'gsw'; received 'x'"),
        ({"lam": -1}, "lam must be a finite number of at least 0; received -1"),
        ({"lam": "strong"}, "lam must be a finite number of at least 0; received 'strong'"),
        ({"lam": [1.0, -2.0]}, "lam must not be negative; received -2.0"),
        ({"lam": np.ones((2, 2))}, "lam must have shape (any); received (2, 2)"),
        ({"init": "x"}, "init must be one of 'one', 'singletons', 'greedy', 'opposite', 'dispersed'; received 'x'"),
        ({"init": ("one", "x"), "chains": 2}, "init must be one of 'one', 'singletons', 'greedy'; received 'x'"),
        (
            {"init": ["one"] * 3, "chains": 2},
            "init must be one start, or one for each of 2 chains; received '3 starts'",
        ),
        ({"init": np.zeros(9)}, "init must be whole numbers; received 'float64'"),
        ({"init": np.zeros((3, 9), int)}, "init must be one start, or one for each of 2 chains; received '3 starts'"),
        ({"init": np.zeros((2, 3, 4), int)}, "init must be labels of the sites, or such for each chain; rec"),
        ({"connectivity": 0, "sites": "pixels"}, "connectivity must be a whole number of at least 1; received 0"),
        ({"n_words": 0}, "n_words must be a whole number of at least 1; received 0"),
        ({"kappa": 0}, "kappa must be a finite number above 0; received 0"),
        ({"estimate": "mean"}, "estimate must be one of 'vi', 'binder', 'best'; received 'mean'"),
        ({"workers": 0}, "workers must be a whole number of at least 1; received 0"),
        ({"channel_axis": "last"}, "channel_axis must be None, 'auto' or the number of an axis; received 'last'"),
        ({"channel_axis": 1.0}, "channel_axis must be None, 'auto' or the number of an axis; received 1.0"),
        ({"mask": np.zeros((5, 5), bool)}, "mask must leave some pixel inside; received 'all False'"),
        ({"mask": np.zeros((5, 5))}, "mask must be True inside and False outside; received 'float64'"),
        ({"mask": "no such mask.png"}, "no such mask.png must be a file that can be read"),
        ({"rng": -1}, "rng must be a whole number of at least 0, a Generator or None; received -1"),
        ({"rng": [1, 2]}, "rng must be a whole number of at least 0, a Generator or None; received [1, 2]"),
        ({"start_label": 1.0}, "start_label must be 0 or 1; received 1.0"),
        ({"beta": "contrast"}, "beta must be a number or \"signed\" where sites are not pixels; received 'contrast'"),
    ],
)
def test_settings_are_checked_before_the_picture_is_read(keywords, line):
    with pytest.raises((ValueError, OSError), match="^" + re.escape(line)) as error:
        ss.segment("no such picture.png", **keywords)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "keywords, line",
    [
        ({"sites": np.zeros((2, 2), int)}, "sites must have the image's shape (120, 160); received (2, 2)"),
        ({"sites": "pixels", "connectivity": 3}, "connectivity must be at most the 2 axes of the image; received 3"),
        ({"preset": "paper", "n_words": 100}, "n_words must be one of 30, 60, 120, 240, 480 for the general codebook"),
    ],
)
def test_what_does_not_fit_the_picture_is_told_before_sites_are_made(picture, keywords, line, monkeypatch):
    monkeypatch.setattr("spinseg.segmentation.problem.maps_for", lambda *_: 1 / 0)
    with pytest.raises(ValueError, match="^" + re.escape(line)):
        ss.segment(picture, **keywords)


@pytest.mark.parametrize(
    "keywords",
    [
        {"preset": "paper"},
        {"beta": 0.3, "regions": False},
        {"preset": "paper", "sites": "pixels", "init": "coarse"},
        {"sites": "pixels", "init": "one", "regions": False},
    ],
    ids=str,
)
@pytest.mark.parametrize("detail", [0.5, 0.9])
def test_a_detail_without_effect_is_refused(keywords, detail):
    with pytest.raises(ValueError, match=rf"^detail must be left out where .*; received {detail}$"):
        ss.segment("no such picture.png", detail=detail, **keywords)


@pytest.mark.parametrize(
    "keywords", [{"beta": 0.3}, {"regions": False}, {"preset": "paper", "regions": True}, {"sites": "pixels"}], ids=str
)
def test_a_detail_with_an_effect_is_not_refused(keywords):
    given = {"detail": 0.9, **keywords}
    assert settings_of(given.pop("preset", "photo"), given).detail == 0.9


def test_priors_by_name():
    assert prior_named(None, "photo") is None
    assert repr(prior_named("dp", "paper", concentration=2.0)) == "DirichletProcess(concentration=2.0)"
    assert repr(prior_named(None, "paper", min_size=3)) == "DirichletProcess(concentration=3.0, min_size=3)"
    assert repr(prior_named("py", "photo", discount=0.5)) == "PitmanYor(concentration=3.0, discount=0.5)"
    assert repr(prior_named("potts", "photo", n_labels=4, max_size=9)) == "Potts(n_labels=4, max_size=9)"
    assert repr(prior_named("finite", "photo", n_labels=4)) == "FiniteDirichlet(n_labels=4)"
    assert repr(prior_named("mfm", "photo", n_labels=6)) == "MixtureOfFiniteMixtures(mean_labels=6.0)"
    limited = prior_named(None, "photo", min_size=2)
    assert repr(limited) == repr(PHOTO.prior.with_limits(min_size=2)) != repr(PHOTO.prior)
    for others in ({"regions": False}, {"beta": 0.3}):
        assert repr(prior_named(None, "photo", min_size=2, others=others)) == "TemperedProcess(min_size=2)"
    for wrong in (
        {"name": "potts"},
        {"name": "dp", "discount": 0.1},
        {"name": "potts", "n_labels": 3, "concentration": 1},
    ):
        with pytest.raises(ValueError, match=r"must be (given|left out) for the prior"):
            prior_named(wrong.pop("name"), "photo", **wrong)


def test_the_tempered_process_weighs_sizes_less():
    log_v, log_w = ss.TemperedProcess(0.4).tables(50)
    assert log_v[3] == pytest.approx(3 * np.log(0.4)) and log_w[5] == pytest.approx(0.1 * np.log(24))
    assert ss.TemperedProcess().tables(1600)[1][5] == pytest.approx(0.05 * np.log(24))


@pytest.mark.parametrize(
    "init, line",
    [
        ("coarse", "init must be one of 'one', 'singletons', 'greedy', 'opposite', 'dispersed'; received 'coarse'"),
        ("two", "init must be one of 'one', 'singletons', 'greedy', 'opposite', 'dispersed'; received 'two'"),
        (("one",), "init must be one start, or one for each of 2 chains; received '1 starts'"),
    ],
)
def test_other_starts_get_one_line(picture, init, line):
    with pytest.raises(ValueError, match=re.escape(line)):
        segment(picture, init=init, chains=2, sweeps=2, rng=0)
