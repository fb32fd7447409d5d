"""Checkpoints: the state of all chains, in one file or in memory, from which sampling resumes bit by bit."""

import hashlib
import json
import os
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinseg._errors import InvalidInput
from spinseg._run.atomic import atomic_write
from spinseg._validation import check_int, check_real, invalid
from spinseg.model.posterior import Model
from spinseg.partition.numbering import by_first_appearance
from spinseg.sampler.chain import Arrays, with_prefix
from spinseg.sampler.kernels.moves import MOVES, PROPOSALS
from spinseg.sampler.kernels.state import (
    CONNECTED,
    LAM,
    N_CLUSTERS,
    N_COUNTERS,
    N_SPIN_CLUSTERS,
    NEXT_INDEX,
    REACH,
    STOP,
    Target,
)

FORMAT = "spinseg chains 8"
IN_FILES = (OSError, EOFError, zipfile.BadZipFile, zlib.error)
DAMAGED = (*IN_FILES, ValueError, LookupError, TypeError, AttributeError, OverflowError)  # what damaged chains raise


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


def check_whole(checkpoint: Checkpoint) -> None:
    """Raise one of DAMAGED unless facts and arrays have the types, shapes and ranges of those of chains.

    What depends on the model, `Chain.restore` checks.
    """
    run, states = checkpoint
    burn_in, thin, chains, n_components, n_sites = (
        check_int(name, run[name], at_least=least)
        for name, least in (("burn_in", 0), ("thin", 1), ("chains", 1), ("n_components", 1), ("n_sites", 1))
    )
    check_real("seconds", run["seconds"], at_least=0)
    for name in ("combined_after", "left_out"):
        check_int(name, run.get(name) or 0, at_least=0)
    _require(isinstance(run["fingerprint"], str), "a fingerprint")
    _require(len(states) == chains * n_components, "one state for each chain of each component")
    _require(len({state["best_kind"].size for state in states}) == 1, "kinds in all chains or in none")
    n_hotter, has_trace = len(run["temperatures"]) - 1, run["concentration_prior"] is not None
    for state in states:
        done = int(_checked(state, "done", "i8", ()))
        _check_chain(state, n_sites, max(done - burn_in, 0) // thin)
        drawn_at = burn_in + thin * np.arange(1, len(state["draw"]) + 1) - 1
        n_clusters = state["draw"].max(axis=1) + 1
        _require(np.array_equal(n_clusters, state["n_clusters"][drawn_at]), "draws of these numbers of clusters")
        if has_trace:
            trace = _checked(state, "after_sweep.trace", "f8", (done,), np.finfo(float).tiny)
            value = _checked(state, "after_sweep.value", "f8", (), np.finfo(float).tiny)
            _require(done == 0 or value == trace[-1], "the concentration after the last sweep")
        if n_hotter:
            for name in ("swaps_proposed", "swaps_accepted"):
                _checked(state, name, "i8", (n_hotter,))
            _checked(state, "swaps.rng", "u1", (None,))
        for r in range(1, n_hotter + 1):
            hotter = with_prefix(state, f"replica{r}.")
            _check_chain(hotter, n_sites, 0)
            _require(int(hotter["done"]) - done in (0, 1), "replicas after the same sweep")


def _check_chain(state: Arrays, n_sites: int, n_draws: int) -> None:
    """Check the arrays of a chain without what belongs to tempering and concentrations."""
    done = int(_checked(state, "done", "i8", ()))
    with_kinds = n_sites if state["best_kind"].size else 0
    _checked(state, "rng", "u1", (None,))
    _checked(state, "log_posterior", "f8", (done,), -np.inf)
    _checked(state, "best_log_posterior", "f8", (1,), -np.inf)
    _checked(state, "move_counts", "i8", (len(PROPOSALS), 2))
    _checked(state, "n_clusters", "i4", (done,), 1, n_sites)
    for name, shape in (("best", (n_sites,)), ("draw", (n_draws, n_sites))):
        _checked(state, name, "i4", shape, 0, n_sites - 1)
    for name, shape in (("best_kind", (with_kinds,)), ("kind", (n_draws, with_kinds))):
        _checked(state, name, "i4", shape, 0, n_sites - 1)
    _require(np.array_equal(by_first_appearance(state["best"]), state["best"]), "a best partition in order")

    k = _checked_partition(state, "state.label", n_sites)
    n_kinds = _checked_partition(state, "state.kind", k if with_kinds else 0)
    for prefix, number in (("state.", k), ("state.kinds.", n_kinds)) if with_kinds else (("state.", k),):
        _checked(state, f"{prefix}total", "f8", (number, None), -np.inf)
        _checked(state, f"{prefix}dense_value", "f8", (number,), -np.inf)
    _checked(state, "state.spin", "u4", (n_sites,), 0, n_sites - 1)
    _checked(state, "state.attempts_left", "i8", (len(MOVES),))
    scalars = _checked(state, "state.scalars", "f8", (2,), -np.inf)
    counters = _checked(state, "state.counters", "i8", (N_COUNTERS,))
    _require(counters[N_CLUSTERS] == k and counters[STOP] == 0 and counters[REACH] <= CONNECTED, "counters")
    _require(scalars[LAM] >= 0, "a lambda")
    _require(counters[NEXT_INDEX] <= counters[N_SPIN_CLUSTERS] <= n_sites, "a place in a sweep")


def _checked(
    state: Arrays, name: str, kind: str, shape: tuple[int | None, ...], lowest: float = 0, highest: float = np.inf
) -> NDArray[Any]:
    """An array of this type and shape (None: any length), whose numbers are finite and within bounds."""
    array = state[name]
    _require(array.dtype == np.dtype(kind) and array.ndim == len(shape), f"{name} of type {kind}")
    _require(all(want in (None, have) for want, have in zip(shape, array.shape, strict=True)), f"{name} of {shape}")
    in_range = np.isfinite(array).all() and (array >= lowest).all() and (array <= highest).all()
    _require(bool(in_range), f"{name} from {lowest} to {highest}")
    return array


def _checked_partition(state: Arrays, name: str, n_items: int) -> int:
    """The number of clusters of an array of labels, which has each of the labels 0..k-1."""
    labels = _checked(state, name, "i4", (n_items,), 0, n_items - 1)
    _require(bool((np.bincount(labels) > 0).all()), f"{name} with every label")
    return int(labels.max(initial=-1)) + 1


def _require(is_right: bool, what: str) -> None:
    if not is_right:
        raise ValueError(f"must have {what}")


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
        if known:
            check_whole((run, states))
    except FileNotFoundError:
        invalid("path", "be a file", os.fspath(path))
    except DAMAGED:
        known = False
    if not known:
        invalid("path", "be a whole file of chains that spinseg saved", os.fspath(path))
    return run, states
