"""Draw partitions from the posterior."""

import os
import secrets
import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinseg._checks import finite_array, number, one_of, refuse, whole
from spinseg.inference._kernels import Plan, Record, Target
from spinseg.inference.anchors import near_sites
from spinseg.inference.bonds import Lam, bond_strengths
from spinseg.inference.chain import Arrays, Chain
from spinseg.inference.chains import Chains, SamplingInterrupted, collect
from spinseg.inference.checkpoint import fingerprint, read_chains, write_chains
from spinseg.inference.concentration import ConcentrationUpdate
from spinseg.inference.pack import new_records, pack
from spinseg.inference.progress import Report
from spinseg.inference.starts import starting_labels
from spinseg.inference.tempering import Ladder
from spinseg.inference.workers import run_all
from spinseg.model.target import Model

MOVES = ("auto", "gsw")
ATTEMPTS = {"auto": (10, 3), "gsw": (0, 0)}  # to split or merge, and to regroup, after each sweep
# An attempt costs as much as there are sites, and one that deals out thousands is hardly ever accepted.
MANY_SITES = 20_000
ATTEMPTS_OF_MANY = {"auto": (1, 0), "gsw": (0, 0)}
LOCAL_OF_MANY = {"auto": 0.9, "gsw": 0.0}  # share of sweeps in which spin-clusters only go where they touch
MAX_DRAW_BYTES = 8 * 2**30
MANY_LABELS, FEW_DRAWS = 2**26, 4  # to keep: 256 MB, but some draws in any case


def sample(
    model: Model,
    sweeps: int = 1000,
    chains: int = 4,
    moves: str = "auto",
    lam: Lam = None,
    init: str | ArrayLike | Sequence[str] = "one",
    burn_in: int = 0,
    thin: int = 1,
    rng: int | np.random.Generator | None = None,
    *,
    temperatures: Sequence[float] | None = None,
    concentration_prior: tuple[float, float] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_seconds: float = 30.0,
    resume_from: str | os.PathLike[str] | Chains | None = None,
    workers: int | None = None,
    progress: bool | Report | None = None,
) -> Chains:
    """Chains that leave the posterior of `model` invariant.

    Parameters
    ----------
    model : Model
    sweeps, chains : int
        Sweeps of each chain, and the number of chains.
    moves : {"auto", "gsw"}
        "gsw" is the paper's generalised Swendsen-Wang sampler and nothing else. "auto" draws its lambda afresh from
        {0, 1, 3, 10, 20} before each sweep, and tries ten splits or merges by sequential allocation after it, then
        three regroupings of two clusters into three or back: the paper's sampler alone hardly ever changes the number
        of large clusters. Of more than 20,000 sites it tries one split or merge, and in nine of ten sweeps
        spin-clusters go only where they touch, or found a cluster.
    lam : float, (n_edges,) array, DataDriven or None
        Bond strengths: 0 is single-site Gibbs, 1 Swendsen-Wang. None is 10 with "gsw", and the set above with "auto".
    init : "one", "singletons", "greedy", labels, or one of these for each chain
        Where chains start.
    burn_in, thin : int
        Keep the labels of every `thin`-th sweep after the first `burn_in`. Traces cover every sweep.
    rng : int, Generator or None
        Seed. The same seed gives the same draws, whatever the number of workers.
    temperatures : sequence of float, optional
        Parallel tempering: rising temperatures from 1, between which partitions are exchanged after each sweep. Every
        chain then costs as much as there are temperatures; only the first is kept.
    concentration_prior : (shape, rate), optional
        Sample the concentration of a Dirichlet process or Pitman-Yor prior with the partition, under this gamma law.
        `log_posterior` is then that of both together, with the prior of the sizes normalised.
    checkpoint : path, optional
        Write all that is finished to this file, at the start, about every `checkpoint_seconds` and at the end.
    resume_from : path or Chains, optional
        Go on, to `sweeps` sweeps in all, where a checkpoint or saved chains ended; the same as one uninterrupted run,
        bit by bit. The model and what shapes its chains must be the same. `init` and `rng` have no say then.
    workers : int, optional
        Threads; by default one for each chain, up to the number of processors.
    progress : bool or callable, optional
        True shows a bar on standard error; a callable is called with a `Progress`.

    Raises
    ------
    SamplingInterrupted
        On Ctrl-C; a KeyboardInterrupt whose `chains` holds the sweeps finished so far.

    Examples
    --------
    >>> import spinseg as ss
    >>> graph = ss.SiteGraph(4, [[0, 1], [1, 2], [2, 3]])
    >>> model = ss.Model(graph, ss.PoissonGamma([1, 2, 40, 50]), ss.DirichletProcess(1.0), beta=0.5)
    >>> chains = ss.sample(model, sweeps=200, chains=2, rng=0)
    >>> chains.best_labels
    array([0, 0, 1, 1], dtype=int32)
    """
    sweeps, chains = whole("sweeps", sweeps, at_least=1), whole("chains", chains, at_least=1)
    burn_in, thin = whole("burn_in", burn_in, at_least=0), whole("thin", thin, at_least=1)
    workers = whole("workers", min(chains, os.cpu_count() or 1) if workers is None else workers, at_least=1)
    if burn_in > sweeps:
        refuse("burn_in", f"be at most sweeps, {sweeps}", burn_in)
    one_of("moves", moves, MOVES)
    if not isinstance(model, Model):
        refuse("model", "be a Model", model)
    strength, lams = bond_strengths(model, lam, moves)
    strongest = lams.max() * strength.max(initial=0.0)
    if not np.isfinite(strongest):
        refuse("lam", "keep lam * beta finite", lam)
    if moves == "gsw" and model.prior.min_size > 1 and strongest == 0.0:
        refuse("lam", "bond some sites where min_size > 1, since a single site cannot found a cluster", lam)
    n_draws = (sweeps - burn_in) // thin
    if 4 * chains * n_draws * model.graph.n_sites > MAX_DRAW_BYTES:
        refuse("thin", f"keep the draws below {MAX_DRAW_BYTES >> 30} GB ({chains} x {n_draws} draws)", thin)
    if 12 * chains * sweeps > MAX_DRAW_BYTES:
        refuse("sweeps", f"keep the traces below {MAX_DRAW_BYTES >> 30} GB", sweeps)
    rungs = _rungs(temperatures)
    if concentration_prior is not None and len(rungs) > 1:
        refuse("concentration_prior", "be left out with temperatures", concentration_prior)
    law = None if concentration_prior is None else _gamma(concentration_prior)
    many = model.graph.n_sites > MANY_SITES
    attempts, local = (ATTEMPTS_OF_MANY[moves], LOCAL_OF_MANY[moves]) if many else (ATTEMPTS[moves], 0.0)
    target = pack(model, strength, near_sites(model) if attempts[1] else None)
    far_lams = lams[lams > 0] if lams.max() > 0 else lams  # single sites need not go far, and would cost most
    plan = Plan(lams, *attempts, 1.0, burn_in, thin, local, far_lams)
    how = {
        "plan": [lams.tolist(), *plan[1:-1], far_lams.tolist()],
        "temperatures": rungs,
        "concentration_prior": law,
        "chains": chains,
    }
    about: dict[str, Any] = {"burn_in": burn_in, "thin": thin, "seconds": 0.0, "fingerprint": fingerprint(target, how)}
    laid_down = None if resume_from is None else _to_resume(resume_from, about, sweeps)

    records = new_records(chains, sweeps, n_draws, model.graph.n_sites)
    starts = _starts(model, target, init if laid_down is None else "one", chains)
    values = {id(start): model.log_posterior(start) for start in starts}
    streams = generator(rng).spawn(chains)
    runners: list[Chain | Ladder] = []
    for c in range(chains):
        record, start = Record(*(array[c] for array in records)), starts[c]
        if len(rungs) > 1:
            runners.append(_ladder(model, target, plan, rungs, start, values[id(start)], record, streams[c]))
        elif law is not None:
            runners.append(_with_concentration(model, target, plan, law, start, values[id(start)], record, streams[c]))
        else:
            runners.append(Chain(model, target, plan, start, values[id(start)], record, streams[c]))
        if laid_down is not None:
            runners[c].take_up(laid_down[c])

    began = time.perf_counter() - about["seconds"]

    def told() -> dict[str, Any]:
        return {**about, "seconds": time.perf_counter() - began}

    kept: list[Arrays] = [{} if checkpoint is None else runner.laid_down() for runner in runners]

    def lay_down(c: int) -> None:
        kept[c] = runners[c].laid_down()

    def write() -> None:
        write_chains(checkpoint, told(), list(kept))  # type: ignore[arg-type]

    def finished() -> Chains:
        for c in range(chains):
            lay_down(c)
        if checkpoint is not None:
            write()
        return collect(told(), kept, records._asdict())

    keeping = () if checkpoint is None else (lay_down, write, number("checkpoint_seconds", checkpoint_seconds, above=0))
    try:
        run_all(runners, sweeps, workers, progress, *keeping)
    except KeyboardInterrupt:
        raise SamplingInterrupted(finished()) from None
    return finished()


def _rungs(temperatures: Sequence[float] | None) -> list[float]:
    """Temperatures of a ladder, from 1 upwards."""
    if temperatures is None:
        return [1.0]
    rungs = finite_array("temperatures", temperatures, (None,)).tolist()
    if not rungs or rungs[0] != 1 or any(b <= a for a, b in pairwise(rungs)):
        refuse("temperatures", "rise from 1", temperatures)
    return rungs


def _gamma(law: tuple[float, float]) -> tuple[float, float]:
    """Shape and rate of a gamma law."""
    if not isinstance(law, (tuple, list)) or len(law) != 2:
        refuse("concentration_prior", "be (shape, rate)", law)
    return number("shape", law[0], above=0), number("rate", law[1], above=0)


def _to_resume(source: str | os.PathLike[str] | Chains, about: dict[str, Any], sweeps: int) -> list[Arrays]:
    """The chains to go on with, refused where they are another model's; their seconds go into `about`."""
    before, laid_down = (source._about, source._laid_down) if isinstance(source, Chains) else read_chains(source)
    name = "Chains" if isinstance(source, Chains) else os.fspath(source)
    if before["fingerprint"] != about["fingerprint"]:
        refuse("resume_from", "hold chains of this model, sampled in this way", name)
    longest = max(int(chain["done"]) for chain in laid_down)
    if longest > sweeps:
        refuse("sweeps", f"be at least the {longest} sweeps of resume_from", sweeps)
    about["seconds"] = source.seconds if isinstance(source, Chains) else before["seconds"]
    return laid_down


def _ladder(
    model: Model,
    target: Target,
    plan: Plan,
    temperatures: list[float],
    start: NDArray[np.int32],
    value: float,
    record: Record,
    rng: np.random.Generator,
) -> Ladder:
    """A chain with hotter ones above it, of which no draws are kept."""
    *streams, own = rng.spawn(len(temperatures) + 1)
    rungs = []
    for temperature, stream in zip(temperatures, streams, strict=True):
        kept = record
        rung_plan = plan._replace(inv_temperature=1 / temperature)
        if temperature > 1:
            traces = new_records(1, record.log_posterior.size, 0, start.size)
            kept = Record(*(array[0] for array in traces))
            rung_plan = rung_plan._replace(burn_in=record.log_posterior.size)
        rungs.append(Chain(model, target, rung_plan, start, value, kept, stream))
    return Ladder(rungs, own)


def _with_concentration(
    model: Model,
    target: Target,
    plan: Plan,
    law: tuple[float, float],
    start: NDArray[np.int32],
    value: float,
    record: Record,
    rng: np.random.Generator,
) -> Chain:
    """A chain that samples the concentration of its prior, too."""
    update = ConcentrationUpdate(model.prior, law, start.size, record.log_posterior.size)
    own = target._replace(log_v=update.table())
    k = int(start.max()) + 1
    return Chain(model, own, plan, start, value + own.log_v[k] - target.log_v[k], record, rng, update)


def thin_to_fit(n_draws: int, n_labels: int) -> int:
    """Of how many draws of so many labels one is kept, so that they take a few hundred megabytes."""
    return max(1, -(-n_draws // max(FEW_DRAWS, MANY_LABELS // n_labels)))


def generator(rng: int | np.random.Generator | None) -> np.random.Generator:
    """`rng` as a Generator."""
    rule = "be a whole number of at least 0, a Generator or None"
    if isinstance(rng, bool):
        refuse("rng", rule, rng)
    try:
        generator = np.random.default_rng(rng)
        generator.bit_generator.seed_seq.spawn(0)  # type: ignore[attr-defined]
        return generator
    except (AttributeError, TypeError, ValueError):
        refuse("rng", rule, rng)


def seed_of(rng: int | np.random.Generator | None) -> int:
    """A whole number that repeats what `rng` begins: itself, one that a Generator draws, or a fresh one for None."""
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(2**63))
    generator(rng)
    return secrets.randbits(63) if rng is None else int(rng)


def _starts(
    model: Model, target: Target, init: str | ArrayLike | Sequence[str], chains: int
) -> list[NDArray[np.int32]]:
    """Starting labels of each chain."""
    if isinstance(init, np.ndarray):
        inits = list(init) if init.ndim == 2 else None
    else:
        listed = isinstance(init, (list, tuple)) and any(isinstance(i, str) or np.ndim(i) > 0 for i in init)
        inits = list(init) if listed else None  # type: ignore[arg-type]
    if inits is None:
        return [starting_labels(model, target, init)] * chains
    if len(inits) != chains:
        refuse("init", f"be one start, or one for each of {chains} chains", f"{len(inits)} starts")
    return [starting_labels(model, target, one) for one in inits]
