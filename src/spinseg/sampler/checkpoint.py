"""Checkpoints: chains in one file, from which sampling resumes bit by bit."""

import hashlib
import json
import os
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from spinseg._errors import InvalidInput
from spinseg._run.atomic import atomic_write
from spinseg._validation import invalid
from spinseg.sampler.chain import Arrays
from spinseg.sampler.kernels.state import Target

FORMAT = "spinseg chains 6"


class OtherChains(InvalidInput):
    """A checkpoint is of another model, or of another way to sample it, or has more sweeps than are wanted."""


class Checkpoint(NamedTuple):
    """What sampling is resumed from.

    Attributes
    ----------
    run : dict
        Facts about the run: its settings, as far as they are plain values, seconds, the number of components, and the
        fingerprint of its targets.
    states : list of dict of arrays
        One for each chain of each component: its traces and draws, and everything that its next sweep depends on.
    """

    run: Mapping[str, Any]
    states: list[Arrays]


def fingerprint(targets: Sequence[Target], settings: Mapping[str, Any]) -> str:
    """A digest of the posterior, with a target for each component, and of the settings of its sampler."""
    digest = hashlib.blake2b(json.dumps(settings, sort_keys=True).encode(), digest_size=16)
    shared = targets[0]._asdict()
    for target in targets:
        for name, array in target._asdict().items():
            if target is targets[0] or array is not shared[name]:
                digest.update(repr((array.shape, array.dtype.str)).encode())
                digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def write_checkpoint(path: str | os.PathLike[str], checkpoint: Checkpoint) -> None:
    """Write a checkpoint in NumPy's format."""
    states = checkpoint.states
    arrays = {f"chain{c}/{name}": array for c, state in enumerate(states) for name, array in state.items()}
    text = json.dumps({"format": FORMAT, "n_chains": len(states), **checkpoint.run})
    content: dict[str, Any] = {"about": np.array(text), **arrays}
    atomic_write(path, lambda file: np.savez(file, **content))


def read_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """The checkpoint in a file; a damaged or foreign file is refused."""
    try:
        text, arrays = _read_npz(path)
        run = json.loads(text)
        known = run["format"] == FORMAT
        states: list[Arrays] = [{} for _ in range(int(run["n_chains"]))]
        for name, array in arrays.items():
            chain, _, own = name.partition("/")
            states[int(chain.removeprefix("chain"))][own] = array
    except FileNotFoundError:
        invalid("path", "be a file", os.fspath(path))
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        EOFError,
        IndexError,
        zipfile.BadZipFile,
        zlib.error,
    ):
        known = False
    if not known:
        invalid("path", "be a whole file of chains that spinseg saved", os.fspath(path))
    return Checkpoint(run, states)


def _read_npz(path: str | os.PathLike[str]) -> tuple[str, Arrays]:
    """The text and the arrays of a NumPy file."""
    with open(path, "rb") as file, np.load(file) as stored:  # NumPy leaves a damaged file open
        arrays = {name: stored[name] for name in stored.files}
    return str(arrays.pop("about")), arrays
