"""Provenance: whether a stored result is still that of these settings, this seed, input and version."""

import json

import pytest

from spinseg._run.provenance import Provenance


def provenance(**changes):
    keywords = {"settings": {"sweeps": 9, "cells": (2, 3)}, "seed": 0}
    keywords |= {"inputs": {"picture": {"source": "/a.png", "bytes": 5}, "mask": None}}
    return Provenance.of_run(**keywords | changes)


def test_a_record_comes_back_from_json_without_a_difference(monkeypatch):
    again = Provenance.from_json(json.loads(json.dumps(provenance().to_json())))
    assert again == provenance() and again.differences(provenance()) == []
    assert again.settings["cells"] == [2, 3]  # as JSON has it
    monkeypatch.setattr("spinseg._run.provenance.VERSION", "99.0")
    assert again.differences(provenance()) == [f"spinseg {again.version}, not 99.0"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"seed": 1}, ["seed 0, not 1"]),
        ({"settings": {"sweeps": 9}}, []),  # what nobody asks for is no difference
        ({"settings": {"sweeps": 8, "detail": 1}}, ["sweeps 9, not 8", "detail None, not 1"]),
        ({"inputs": {"picture": {"source": "/b.png", "bytes": 6}}}, ["picture /a.png, not /b.png"]),
        ({"inputs": {"picture": {"source": "/a.png", "bytes": 6}}}, ["picture has changed since"]),
        ({"inputs": {"picture": None, "mask": {"source": "/m"}}}, ["picture /a.png, not None", "mask None, not /m"]),
    ],
)
def test_differences_are_told_in_words(changes, words):
    assert provenance().differences(provenance(**changes)) == words


@pytest.mark.parametrize("record", [[], {}, {"spinseg": "1"}, {"spinseg": 1, "seed": 0, "inputs": [], "settings": {}}])
def test_what_is_no_record_raises(record):
    with pytest.raises((KeyError, TypeError, AttributeError)):
        Provenance.from_json(record)
