"""Chains being sampled: set up from a model, advanced by the caller, collected at any time."""

import os
import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinseg._validation import check_choice, check_int, check_real, finite_array, invalid
from spinseg.model.mixture import Mixture
from spinseg.model.posterior import Model
from spinseg.model.priors import ExchangeablePrior
from spinseg.sampler.bonds import Lam, bond_strengths
from spinseg.sampler.chain import Arrays, Chain
from spinseg.sampler.chains import Chains, collect
from spinseg.sampler.checkpoint import Checkpoint, OtherChains, fingerprint, read_checkpoint
from spinseg.sampler.concentration import ConcentrationUpdate
from spinseg.sampler.kernels.moves import REGROUP, REGROW, attempts_at, attempts_for
from spinseg.sampler.kernels.state import Plan, Record, Target
from spinseg.sampler.pack import new_records, pack, recoupled
from spinseg.sampler.reach import is_limited, unreachable
from spinseg.sampler.similarity import similar_sites
from spinseg.sampler.starts import ALTERNATING_STARTS, OPPOSITE_STARTS, starting_labels
from spinseg.sampler.tempering import ParallelTempering

MOVES = ("auto", "gsw")
GROWTH_LIMIT = 500.0  # an attempt that takes m sites is made with probability min(1, GROWTH_LIMIT / m)^1.5
MANY_SITES, LOCAL_OF_MANY = 20_000, 0.9  # above, the share of sweeps in which spin-clusters move only to neighbors
MAX_DRAW_BYTES = 8 * 2**30


class Sampling:
    """The chains of `sample` while they run, for callers that look at them between sweeps; parameters as there.

    Attributes
    ----------
    runners : list of Chain or ParallelTempering
        Each may be advanced in a thread of its own. Of a mixture, `chains` for each component, one component after the
        other.
    records : Record
        Traces, draws, best partitions and the latest spin-clusters, with a leading axis for the runners.
    unreachable : str or None
        Why chains cannot reach every partition that the prior allows, and what to do.
    """

    def __init__(
        self,
        model: Model | Mixture,
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
        resume_from: str | os.PathLike[str] | Chains | None = None,
    ) -> None:
        if not isinstance(model, (Model, Mixture)):
            invalid("model", "be a Model or a Mixture", model)
        components = model.components if isinstance(model, Mixture) else (model,)
        n_sites = model.graph.n_sites
        check_choice("moves", moves, MOVES)
        sweeps, chains, burn_in, thin = _checked_lengths(sweeps, chains, burn_in, thin, n_sites, len(components))
        (strength, lams), *other_bonds = [_bonds(component, lam, moves) for component in components]
        replicas = _checked_temperatures(temperatures)
        gamma = None if concentration_prior is None else _checked_gamma(concentration_prior)
        if gamma is not None and len(replicas) > 1:
            invalid("concentration_prior", "be left out with temperatures", concentration_prior)
        plan = _plan(components[0], moves, lams, burn_in, thin)
        splits_only = plan.attempts[REGROUP] + plan.attempts[REGROW] == 0
        self.unreachable = unreachable(components[0], moves, splits_only)
        targets = [pack(components[0], strength, similar_sites(components[0]) if plan.attempts[REGROUP] else None)]
        for component, (strength, _) in zip(components[1:], other_bonds, strict=True):
            targets.append(recoupled(targets[0], component, strength))
        settings = {
            "plan": [np.asarray(part).tolist() for part in plan],
            "temperatures": replicas,
            "concentration_prior": gamma,
            "chains": chains,
            "prior": _probed(components[0]),
        }
        mark = fingerprint(targets, settings)
        about = {
            "n_sites": n_sites,
            "n_components": len(components),
            "chains": chains,
            "moves": moves,
            "burn_in": burn_in,
            "thin": thin,
            "temperatures": replicas,
            "concentration_prior": gamma and list(gamma),
        }
        before = None if resume_from is None else _checkpoint_of(resume_from, mark, about, sweeps)
        self._seconds_before = 0.0 if before is None else before.run["seconds"]
        self._run: dict[str, Any] = {**about, "fingerprint": mark}

        n_runners = len(components) * chains
        self.records = new_records(n_runners, sweeps, (sweeps - burn_in) // thin, n_sites)
        streams = iter(generator(rng).spawn(n_runners))
        self.runners: list[Chain | ParallelTempering] = []
        if before is None:
            all_starts = _starts(components, targets, init, chains)
        else:  # any partition that is allowed: the states of the runners are restored
            visited = [state["best"] for state in before.states]
            all_starts = [visited[d * chains : (d + 1) * chains] for d in range(len(components))]
        for component, target, starts in zip(components, targets, all_starts, strict=True):
            values = {id(start): component.log_posterior(start) for start in starts}
            for start in starts:
                record = Record(*(array[len(self.runners)] for array in self.records))
                place = (start, values[id(start)], record, next(streams))
                self.runners.append(_new_runner(component, target, plan, replicas, gamma, *place))
        if before is not None:
            for runner, state in zip(self.runners, before.states, strict=True):
                runner.restore(state)
        self._snapshots: list[Arrays] = [{}] * n_runners

    def snapshot(self, c: int) -> None:
        """Save the state of runner c for the next checkpoint; it must not be advancing."""
        self._snapshots[c] = self.runners[c].state_dict()

    def checkpoint(self) -> Checkpoint:
        """Each runner at its latest snapshot."""
        elapsed = max(time.perf_counter() - min(runner.began for runner in self.runners), 0.0)
        return Checkpoint({**self._run, "seconds": self._seconds_before + elapsed}, list(self._snapshots))

    def chains_so_far(self) -> Chains:
        """The sweeps that all runners have finished; none may be advancing."""
        for c in range(len(self.runners)):
            self.snapshot(c)
        return collect(self.checkpoint(), self.records._asdict())


def _checked_lengths(
    sweeps: int, chains: int, burn_in: int, thin: int, n_sites: int, n_components: int
) -> tuple[int, int, int, int]:
    """The first four as whole numbers, refused where draws and traces would not fit into memory."""
    sweeps, chains = check_int("sweeps", sweeps, at_least=1), check_int("chains", chains, at_least=1)
    burn_in, thin = check_int("burn_in", burn_in, at_least=0), check_int("thin", thin, at_least=1)
    if burn_in > sweeps:
        invalid("burn_in", f"be at most sweeps, {sweeps}", burn_in)
    n_draws = (sweeps - burn_in) // thin
    if 4 * n_components * chains * n_draws * n_sites > MAX_DRAW_BYTES:
        drawn = f"{chains} x {n_draws} draws" + (f" of {n_components} components" if n_components > 1 else "")
        invalid("thin", f"keep the draws below {MAX_DRAW_BYTES >> 30} GB ({drawn})", thin)
    check_length(sweeps, chains * n_components)
    return sweeps, chains, burn_in, thin


def check_length(sweeps: int, chains: int) -> None:
    """Refuse numbers of sweeps and chains that are not positive, or whose traces would not fit into memory."""
    sweeps, chains = check_int("sweeps", sweeps, at_least=1), check_int("chains", chains, at_least=1)
    if 12 * chains * sweeps > MAX_DRAW_BYTES:
        invalid("sweeps", f"keep the traces below {MAX_DRAW_BYTES >> 30} GB", sweeps)


def _bonds(model: Model, lam: Lam, moves: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The result of `bond_strengths`, refused where chains could not move."""
    strength, lams = bond_strengths(model, lam, moves)
    strongest = lams.max() * strength.max(initial=0.0)
    if not np.isfinite(strongest):
        invalid("lam", "keep lam * beta finite", lam)
    if moves == "gsw" and model.prior.min_size > 1 and strongest == 0.0:
        invalid("lam", "bond some sites where min_size > 1, since a single site cannot found a cluster", lam)
    return strength, lams


def _plan(model: Model, moves: str, lams: NDArray[np.float64], burn_in: int, thin: int) -> Plan:
    """The moves of one iteration, fewer for many sites."""
    n_sites, local, attempts = model.graph.n_sites, 0.0, attempts_at()
    if moves == "auto":
        many = n_sites > MANY_SITES
        purpose = "many" if many else "few"
        attempts = attempts_for(purpose, n_sites, connected=model.connected, limited=is_limited(model))
        if many and not model.connected and model.tables is not None:  # sizes are then weighed by tables
            local = LOCAL_OF_MANY
    global_lams = lams[lams > 0] if lams.max() > 0 else lams  # single sites rarely move far, and cost most
    return Plan(lams, attempts, 1.0, burn_in, thin, local, global_lams, model.connected, GROWTH_LIMIT)


def _probed(model: Model) -> list[float] | None:
    """log g of some partitions, to tell priors without tables apart; those with tables are part of the target."""
    if not isinstance(model.prior, ExchangeablePrior):
        return None
    n_sites, rng = model.graph.n_sites, np.random.default_rng(0)
    shares = [rng.dirichlet(np.full(n_parts, 0.5)) for n_parts in (2, 3, 5, 8, 13) for _ in range(8)]
    even = [np.full(n_parts, 1 / n_parts) for n_parts in (1, 2, 3, 4, n_sites)]
    sizes = [np.diff(np.rint(np.cumsum([0.0, *share]) * n_sites)).astype(np.int64) for share in even + shares]
    return [model.prior.log_g(m[m > 0]) for m in sizes]


def _checked_temperatures(temperatures: Sequence[float] | None) -> list[float]:
    """Temperatures of the replicas, from 1 upwards."""
    if temperatures is None:
        return [1.0]
    checked = finite_array("temperatures", temperatures, (None,)).tolist()
    if not checked or checked[0] != 1 or any(b <= a for a, b in pairwise(checked)):
        invalid("temperatures", "rise from 1", temperatures)
    return checked


def _checked_gamma(prior: tuple[float, float]) -> tuple[float, float]:
    """Shape and rate of a gamma distribution."""
    if not isinstance(prior, (tuple, list)) or len(prior) != 2:
        invalid("concentration_prior", "be (shape, rate)", prior)
    return check_real("shape", prior[0], above=0), check_real("rate", prior[1], above=0)


def _checkpoint_of(
    source: str | os.PathLike[str] | Chains, mark: str, about: dict[str, Any], sweeps: int
) -> Checkpoint:
    """The checkpoint to resume from, refused where its fingerprint is another or it has more sweeps already."""
    if isinstance(source, Chains):
        name, found = "Chains", source._checkpoint
        found = found._replace(run={**found.run, "seconds": source.seconds})
    else:
        name, found = os.fspath(source), read_checkpoint(source)
    if found.run["fingerprint"] != mark:
        was = {**about, **found.run}
        differ = [f"{key} was {was[key]!r}, is {now!r}" for key, now in about.items() if was[key] != now]
        what = "; ".join(differ) or "its graph, likelihood, prior, beta or lam is another"
        raise OtherChains(
            f"resume_from must hold chains of this model, sampled in this way ({what}); received {name!r}"
        )
    longest = max(int(state["done"]) for state in found.states)
    if longest > sweeps:
        raise OtherChains(f"sweeps must be at least the {longest} sweeps of resume_from; received {sweeps}")
    return found


def _new_runner(
    model: Model,
    target: Target,
    plan: Plan,
    temperatures: list[float],
    gamma: tuple[float, float] | None,
    start: NDArray[np.int32],
    value: float,
    record: Record,
    rng: np.random.Generator,
) -> Chain | ParallelTempering:
    """A chain before its first sweep, tempered or with its concentration sampled where asked."""
    sweeps = record.log_posterior.size
    if gamma is not None:
        update = ConcentrationUpdate(model.prior, gamma, start.size, sweeps)
        own = target._replace(log_v=update.table())
        k = int(start.max()) + 1
        return Chain(model, own, plan, start, value + own.log_v[k] - target.log_v[k], record, rng, update)
    if len(temperatures) == 1:
        return Chain(model, target, plan, start, value, record, rng)
    *streams, swaps = rng.spawn(len(temperatures) + 1)
    replicas = [Chain(model, target, plan, start, value, record, streams[0])]
    for temperature, stream in zip(temperatures[1:], streams[1:], strict=True):
        traces = Record(*(array[0] for array in new_records(1, sweeps, 0, start.size)))  # no draws are recorded
        hot = plan._replace(inv_temperature=1 / temperature, burn_in=sweeps)
        replicas.append(Chain(model, target, hot, start, value, traces, stream))
    return ParallelTempering(replicas, swaps)


def generator(rng: int | np.random.Generator | None) -> np.random.Generator:
    """`rng` as a Generator."""
    rule = "be a whole number of at least 0, a Generator or None"
    if isinstance(rng, bool):
        invalid("rng", rule, rng)
    try:
        generator = np.random.default_rng(rng)
        generator.bit_generator.seed_seq.spawn(0)  # type: ignore[attr-defined]
        return generator
    except (AttributeError, TypeError, ValueError):
        invalid("rng", rule, rng)


def _starts(
    components: Sequence[Model], targets: Sequence[Target], init: str | ArrayLike | Sequence[str], chains: int
) -> list[list[NDArray[np.int32]]]:
    """Starting labels of each chain of each component."""
    inits: list[Any]
    if isinstance(init, str) and init in ALTERNATING_STARTS:
        inits = [OPPOSITE_STARTS[c % 2] for c in range(chains)]
        if init == "dispersed" and len(components) > 1:
            return _starts_from_neighbors(components, targets, chains)
    elif (listed := listed_starts(init)) is None:
        return [[starting_labels(*pair, init)] * chains for pair in zip(components, targets, strict=True)]
    elif len(listed) != chains:
        invalid("init", f"be one start, or one for each of {chains} chains", f"{len(listed)} starts")
    else:
        inits = listed
    return [[starting_labels(*pair, one) for one in inits] for pair in zip(components, targets, strict=True)]


def _starts_from_neighbors(
    components: Sequence[Model], targets: Sequence[Target], chains: int
) -> list[list[NDArray[np.int32]]]:
    """The greedy partitions of the components before and after each, in turn; at the ends those of OPPOSITE_STARTS."""
    first, last = (starting_labels(components[d], targets[d], OPPOSITE_STARTS[d]) for d in (0, -1))
    greedy = [starting_labels(*pair, "greedy") for pair in zip(components, targets, strict=True)]
    around = [first, *greedy, last]
    return [[around[d + 2 * (c % 2)] for c in range(chains)] for d in range(len(components))]


def listed_starts(init: str | ArrayLike | Sequence[str]) -> list[Any] | None:
    """The starts of several chains as a list; None where all chains share one."""
    if isinstance(init, np.ndarray):
        return list(init) if init.ndim == 2 else None
    listed = isinstance(init, (list, tuple)) and any(isinstance(i, str) or np.ndim(i) > 0 for i in init)
    return list(init) if listed else None  # type: ignore[arg-type]
