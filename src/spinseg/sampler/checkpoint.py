"""Checkpoints: the state of all chains, in one file or in memory, from which sampling resumes bit by bit."""

import hashlib
import json
import os
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from spinseg._errors import InvalidInput
from spinseg._run.atomic import atomic_write
from spinseg._validation import invalid
from spinseg.model.posterior import Model
from spinseg.sampler.chain import Arrays
from spinseg.sampler.kernels.state import Target

FORMAT = "spinseg chains 7"
DAMAGED = (OSError, ValueError, LookupError, TypeError, AttributeError, EOFError, zipfile.BadZipFile, zlib.error)


# What sampling is resumed from: facts about the run, and the state of each chain of each component. The facts are its
# settings, as far as they are plain values, seconds, the number of components, and the fingerprint of its targets. A
# state holds traces and draws, and everything that the next sweep depends on.
Checkpoint = tuple[Mapping[str, Any], list[Arrays]]


def check_resumable(checkpoint: Checkpoint, name: str, about: Mapping[str, Any], sweeps: int) -> None:
    """Refuse to resume where the facts `about` the new run differ, or more than its sweeps are done.

    `name` says where the checkpoint comes from.
    """
    run, states = checkpoint
    if run["fingerprint"] != about["fingerprint"]:
        was = {**about, **run, "fingerprint": about["fingerprint"]}
        differ = [f"{key} was {was[key]!r}, is {now!r}" for key, now in about.items() if was[key] != now]
        what = "; ".join(differ) or "its graph, likelihood, prior, beta or lam is another"
        rule = f"hold chains of this model, sampled in this way ({what})"
        raise InvalidInput(f"resume_from must {rule}: got {name!r}")
    longest = max(int(state["done"]) for state in states)
    if longest > sweeps:
        raise InvalidInput(f"sweeps must be at least the {longest} sweeps of resume_from: got {sweeps}")


def fingerprint(model: Model, targets: Sequence[Target], settings: Mapping[str, Any]) -> str:
    """A digest of the posterior, with a target for each component, and of the settings of its sampler."""
    settings = {**settings, "prior": _probed(model)}
    digest = hashlib.blake2b(json.dumps(settings, sort_keys=True).encode(), digest_size=16)
    shared = targets[0]._asdict()
    for target in targets:
        for name, array in target._asdict().items():
            if target is targets[0] or array is not shared[name]:
                digest.update(repr((array.shape, array.dtype.str)).encode())
                digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _probed(model: Model) -> list[float] | None:
    """log g of some partitions, to tell priors without tables apart; those with tables are part of the target."""
    if model.tables is not None:
        return None
    n_sites, rng = model.graph.n_sites, np.random.default_rng(0)
    shares = [rng.dirichlet(np.full(n_parts, 0.5)) for n_parts in (2, 3, 5, 8, 13) for _ in range(8)]
    even = [np.full(n_parts, 1 / n_parts) for n_parts in (1, 2, 3, 4, n_sites)]
    sizes = [np.diff(np.rint(np.cumsum([0.0, *share]) * n_sites)).astype(np.int64) for share in even + shares]
    return [model.prior.log_g(m[m > 0]) for m in sizes]


def write_checkpoint(path: str | os.PathLike[str], checkpoint: Checkpoint) -> None:
    """Write a checkpoint in NumPy's format."""
    run, states = checkpoint
    arrays = {f"chain{c}/{name}": array for c, state in enumerate(states) for name, array in state.items()}
    text = json.dumps({"format": FORMAT, "n_chains": len(states), **run})
    content: dict[str, Any] = {"about": np.array(text), **arrays}
    atomic_write(path, lambda file: np.savez(file, **content))


def read_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """The checkpoint in a file; a damaged or foreign file is refused."""
    try:
        with open(path, "rb") as file, np.load(file) as stored:  # NumPy leaves a damaged file open
            arrays = {name: stored[name] for name in stored.files}
        run = json.loads(str(arrays.pop("about")))
        known = run["format"] == FORMAT
        states: list[Arrays] = [{} for _ in range(int(run["n_chains"]))]
        for name, array in arrays.items():
            chain, _, own = name.partition("/")
            states[int(chain.removeprefix("chain"))][own] = array
    except FileNotFoundError:
        invalid("path", "be a file", os.fspath(path))
    except DAMAGED:
        known = False
    if not known:
        invalid("path", "be a whole file of chains that spinseg saved", os.fspath(path))
    return run, states
