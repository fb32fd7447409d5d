"""Chains under way: set up, advanced, and gathered."""

import os
import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinseg._validation import check_choice, check_int, check_real, finite_array, invalid
from spinseg.inference.anchors import near_sites
from spinseg.inference.bonds import Lam, bond_strengths
from spinseg.inference.chain import Arrays, Chain
from spinseg.inference.chains import Chains, collect
from spinseg.inference.checkpoint import fingerprint, read_chains
from spinseg.inference.concentration import ConcentrationUpdate
from spinseg.inference.kernels.state import Plan, Record, Target
from spinseg.inference.pack import new_records, pack
from spinseg.inference.starts import starting_labels
from spinseg.inference.tempering import Ladder
from spinseg.model.posterior import Model
from spinseg.model.priors import ExchangeablePrior

MOVES = ("auto", "gsw")
ATTEMPTS = {"auto": (10, 3), "gsw": (0, 0)}  # to split or merge, and to regroup, after each sweep
# An attempt costs as much as there are sites, and one that deals out thousands is hardly ever accepted.
MANY_SITES = 20_000
ATTEMPTS_OF_MANY = {"auto": (1, 0), "gsw": (0, 0)}
LOCAL_OF_MANY = {"auto": 0.9, "gsw": 0.0}  # share of sweeps in which spin-clusters only go where they touch
MAX_DRAW_BYTES = 8 * 2**30


class Sampling:
    """The chains of `sample` under way, for callers who look at them between sweeps; parameters as there.

    Attributes
    ----------
    runners : list of Chain or Ladder
        Each may be advanced in a thread of its own.
    records : Record
        Traces, draws, best partitions and the last spin-clusters, with a leading axis for the chains.
    """

    def __init__(
        self,
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
        resume_from: str | os.PathLike[str] | Chains | None = None,
    ) -> None:
        sweeps, chains = check_int("sweeps", sweeps, at_least=1), check_int("chains", chains, at_least=1)
        burn_in, thin = check_int("burn_in", burn_in, at_least=0), check_int("thin", thin, at_least=1)
        if burn_in > sweeps:
            invalid("burn_in", f"be at most sweeps, {sweeps}", burn_in)
        check_choice("moves", moves, MOVES)
        if not isinstance(model, Model):
            invalid("model", "be a Model", model)
        strength, lams = _bonds(model, lam, moves)
        n_draws = (sweeps - burn_in) // thin
        if 4 * chains * n_draws * model.graph.n_sites > MAX_DRAW_BYTES:
            invalid("thin", f"keep the draws below {MAX_DRAW_BYTES >> 30} GB ({chains} x {n_draws} draws)", thin)
        check_length(sweeps, chains)
        rungs = _rungs(temperatures)
        if concentration_prior is not None and len(rungs) > 1:
            invalid("concentration_prior", "be left out with temperatures", concentration_prior)
        law = None if concentration_prior is None else _gamma(concentration_prior)
        plan = _plan(model.graph.n_sites, moves, lams, burn_in, thin)
        target = pack(model, strength, near_sites(model) if plan.regroups else None)
        how = {
            "plan": [lams.tolist(), *plan[1:-1], plan.far_lams.tolist()],
            "temperatures": rungs,
            "concentration_prior": law,
            "chains": chains,
            "prior": _probed(model),
        }
        self._about: dict[str, Any] = {
            "burn_in": burn_in,
            "thin": thin,
            "seconds": 0.0,
            "fingerprint": fingerprint(target, how),
        }
        laid_down = None if resume_from is None else _to_resume(resume_from, self._about, sweeps)

        self.records = new_records(chains, sweeps, n_draws, model.graph.n_sites)
        starts = _starts(model, target, init if laid_down is None else "one", chains)
        values = {id(start): model.log_posterior(start) for start in starts}
        streams = generator(rng).spawn(chains)
        self.runners: list[Chain | Ladder] = []
        for c in range(chains):
            record = Record(*(array[c] for array in self.records))
            place = (starts[c], values[id(starts[c])], record, streams[c])
            if len(rungs) > 1:
                self.runners.append(_ladder(model, target, plan, rungs, *place))
            elif law is not None:
                self.runners.append(_with_concentration(model, target, plan, law, *place))
            else:
                self.runners.append(Chain(model, target, plan, *place))
            if laid_down is not None:
                self.runners[c].take_up(laid_down[c])

        self._began = time.perf_counter() - self._about["seconds"]
        self._kept: list[Arrays] = [{}] * chains

    def lay_down(self, c: int) -> None:
        """Note how far chain c has come; it must rest meanwhile."""
        self._kept[c] = self.runners[c].laid_down()

    def laid_down(self) -> tuple[dict[str, Any], list[Arrays]]:
        """What a checkpoint holds: facts, and each chain as it was last noted."""
        return {**self._about, "seconds": time.perf_counter() - self._began}, list(self._kept)

    def so_far(self) -> Chains:
        """The sweeps that all chains have finished; all of them must rest meanwhile."""
        for c in range(len(self.runners)):
            self.lay_down(c)
        return collect(*self.laid_down(), self.records._asdict())


def check_length(sweeps: int, chains: int) -> None:
    """Refuse what are no numbers of sweeps and chains, or too many for their traces."""
    sweeps, chains = check_int("sweeps", sweeps, at_least=1), check_int("chains", chains, at_least=1)
    if 12 * chains * sweeps > MAX_DRAW_BYTES:
        invalid("sweeps", f"keep the traces below {MAX_DRAW_BYTES >> 30} GB", sweeps)


def _bonds(model: Model, lam: Lam, moves: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Bond strengths and lambdas, as `bond_strengths` gives them, refused where chains could not move."""
    strength, lams = bond_strengths(model, lam, moves)
    strongest = lams.max() * strength.max(initial=0.0)
    if not np.isfinite(strongest):
        invalid("lam", "keep lam * beta finite", lam)
    if moves == "gsw" and model.prior.min_size > 1 and strongest == 0.0:
        invalid("lam", "bond some sites where min_size > 1, since a single site cannot found a cluster", lam)
    return strength, lams


def _plan(n_sites: int, moves: str, lams: NDArray[np.float64], burn_in: int, thin: int) -> Plan:
    """What an iteration is, for so many sites."""
    many = n_sites > MANY_SITES
    attempts, local = (ATTEMPTS_OF_MANY[moves], LOCAL_OF_MANY[moves]) if many else (ATTEMPTS[moves], 0.0)
    far_lams = lams[lams > 0] if lams.max() > 0 else lams  # single sites need not go far, and would cost most
    return Plan(lams, *attempts, 1.0, burn_in, thin, local, far_lams)


def _probed(model: Model) -> list[float] | None:
    """log g of some partitions, which tells priors without tables apart: those with tables are in the target."""
    if not isinstance(model.prior, ExchangeablePrior):
        return None
    n_sites, rng = model.graph.n_sites, np.random.default_rng(0)
    shares = [rng.dirichlet(np.full(n_parts, 0.5)) for n_parts in (2, 3, 5, 8, 13) for _ in range(8)]
    even = [np.full(n_parts, 1 / n_parts) for n_parts in (1, 2, 3, 4, n_sites)]
    sizes = [np.diff(np.rint(np.cumsum([0.0, *share]) * n_sites)).astype(np.int64) for share in even + shares]
    return [model.prior.log_g(m[m > 0]) for m in sizes]


def _rungs(temperatures: Sequence[float] | None) -> list[float]:
    """Temperatures of a ladder, from 1 upwards."""
    if temperatures is None:
        return [1.0]
    rungs = finite_array("temperatures", temperatures, (None,)).tolist()
    if not rungs or rungs[0] != 1 or any(b <= a for a, b in pairwise(rungs)):
        invalid("temperatures", "rise from 1", temperatures)
    return rungs


def _gamma(law: tuple[float, float]) -> tuple[float, float]:
    """Shape and rate of a gamma law."""
    if not isinstance(law, (tuple, list)) or len(law) != 2:
        invalid("concentration_prior", "be (shape, rate)", law)
    return check_real("shape", law[0], above=0), check_real("rate", law[1], above=0)


def _to_resume(source: str | os.PathLike[str] | Chains, about: dict[str, Any], sweeps: int) -> list[Arrays]:
    """The chains to go on with, refused where they are another model's; their seconds go into `about`."""
    before, laid_down = (source._about, source._laid_down) if isinstance(source, Chains) else read_chains(source)
    name = "Chains" if isinstance(source, Chains) else os.fspath(source)
    if before["fingerprint"] != about["fingerprint"]:
        invalid("resume_from", "hold chains of this model, sampled in this way", name)
    longest = max(int(chain["done"]) for chain in laid_down)
    if longest > sweeps:
        invalid("sweeps", f"be at least the {longest} sweeps of resume_from", sweeps)
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
    model: Model, target: Target, init: str | ArrayLike | Sequence[str], chains: int
) -> list[NDArray[np.int32]]:
    """Starting labels of each chain."""
    inits = listed_starts(init)
    if inits is None:
        return [starting_labels(model, target, init)] * chains
    if len(inits) != chains:
        invalid("init", f"be one start, or one for each of {chains} chains", f"{len(inits)} starts")
    return [starting_labels(model, target, one) for one in inits]


def listed_starts(init: str | ArrayLike | Sequence[str]) -> list[Any] | None:
    """The starts of several chains, one by one; None where all have one."""
    if isinstance(init, np.ndarray):
        return list(init) if init.ndim == 2 else None
    listed = isinstance(init, (list, tuple)) and any(isinstance(i, str) or np.ndim(i) > 0 for i in init)
    return list(init) if listed else None  # type: ignore[arg-type]
