"""Draw partitions from the posterior."""

import functools
import math
import os
import secrets
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinseg._checks import one_of, refuse, whole
from spinseg.inference import _kernels, exchangeable
from spinseg.inference._kernels import DONE, FULL, N_CLUSTERS, STOP, STOPPED, Plan, Record, Target
from spinseg.inference.bonds import Lam, bond_strengths
from spinseg.inference.chains import Chains, SamplingInterrupted
from spinseg.inference.pack import new_records, new_state, pack, resized
from spinseg.inference.progress import Progress, Report, reporting
from spinseg.inference.starts import starting_labels
from spinseg.model.priors import ExchangeablePrior
from spinseg.model.target import Model

MOVES = ("auto", "gsw")
ATTEMPTS = {"auto": 10, "gsw": 0}  # to split or merge after each sweep
CHUNK_SECONDS = 0.05  # how long the compiled code runs before it looks up for progress
TURN_SECONDS = 0.5  # how long a chain goes on before another one has its turn
LOADING_SECONDS = 1.5  # a sampler compiled before is loaded in less
MAX_DRAW_BYTES = 8 * 2**30


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
        {0, 1, 3, 10, 20} before each sweep, and tries ten splits and merges by sequential allocation after it: the
        paper's sampler alone hardly ever changes the number of large clusters.
    lam : float, (n_edges,) array, DataDriven or None
        Bond strengths: 0 is single-site Gibbs, 1 Swendsen-Wang. None is 10 with "gsw", and the set above with "auto".
    init : "one", "singletons", "greedy", labels, or one of these for each chain
        Where chains start.
    burn_in, thin : int
        Keep the labels of every `thin`-th sweep after the first `burn_in`. Traces cover every sweep.
    rng : int, Generator or None
        Seed. The same seed gives the same draws, whatever the number of workers.
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
    target = pack(model, strength)
    records = new_records(chains, sweeps, n_draws, model.graph.n_sites)
    starts, streams = _starts(model, target, init, chains), _generator(rng).spawn(chains)
    values = {id(start): model.log_posterior(start) for start in starts}
    plan = Plan(lams, ATTEMPTS[moves], 1.0, burn_in, thin)
    runners = [
        Chain(model, target, plan, starts[c], values[id(starts[c])], Record(*(a[c] for a in records)), streams[c])
        for c in range(chains)
    ]
    return _run_all(runners, records, sweeps, workers, progress)


def _generator(rng: int | np.random.Generator | None) -> np.random.Generator:
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
    _generator(rng)
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


class Chain:
    """One chain: its state, its generator and what is kept of it."""

    def __init__(
        self,
        model: Model,
        target: Target,
        plan: Plan,
        labels: NDArray[np.int32],
        log_posterior: float,
        record: Record,
        rng: np.random.Generator,
    ) -> None:
        self.target, self.plan, self.record, self.rng = target, plan, record, rng
        self.state = new_state(target, labels, log_posterior)
        self.record.best[:] = labels
        self.record.best_log_posterior[0] = self.log_posterior
        self.done = 0
        self.run: Callable[..., Any] = _kernels.run
        if isinstance(model.prior, ExchangeablePrior):
            self.run = functools.partial(exchangeable.run, model.prior.log_g)

    def advance(self, sweeps: int, seconds: float = math.inf) -> None:
        """Go on to `sweeps` sweeps, for about so many seconds, or until told to stop."""
        began, chunk, status = time.perf_counter(), 1, DONE
        while self.done < sweeps and status != STOPPED and time.perf_counter() - began < seconds:
            before, clock = self.done, time.perf_counter()
            until = min(self.done + chunk, sweeps)
            status, self.done = self.run(self.target, self.state, self.record, self.plan, self.done, until, self.rng)
            capacity = self.state.size.size
            if status == FULL or capacity > 64 + 8 * self.n_clusters:
                self.state = resized(self.state)
                assert status != FULL or self.state.size.size > capacity
            per_sweep = (time.perf_counter() - clock) / max(self.done - before, 1)
            chunk = min(max(int(CHUNK_SECONDS / max(per_sweep, 1e-9)), 1), 2 * chunk)

    def stop(self) -> None:
        """Make `advance` return soon."""
        self.state.number[STOP] = 1

    @property
    def stopped(self) -> bool:
        """Whether it was told to stop."""
        return bool(self.state.number[STOP])

    @property
    def n_clusters(self) -> int:
        """Number of clusters now."""
        return int(self.state.number[N_CLUSTERS])

    @property
    def log_posterior(self) -> float:
        """Log posterior now."""
        return float(self.state.real[_kernels.LOG_POSTERIOR])


def _run_all(
    runners: list[Chain], records: Record, sweeps: int, workers: int, progress: bool | Report | None
) -> Chains:
    """Advance all chains in threads; on any interruption stop them, and on Ctrl-C keep what is finished."""
    began = time.perf_counter()
    queue: SimpleQueue[Chain] = SimpleQueue()
    for chain in runners:
        queue.put(chain)

    def work() -> None:
        """Advance chains in turn, so that all of them come forward however few the workers are."""
        while (chain := _next(queue)) is not None:
            chain.advance(sweeps, TURN_SECONDS)
            if chain.done < sweeps and not chain.stopped:
                queue.put(chain)

    with reporting(progress) as report, ThreadPoolExecutor(workers) as pool:
        waiting: set[Future[None]] = set()
        try:
            waiting |= {pool.submit(work) for _ in range(workers)}
            while waiting:
                finished, waiting = wait(waiting, timeout=0.1, return_when=FIRST_EXCEPTION)
                slowest = min(runners, key=lambda chain: chain.done)
                total = sum(chain.done for chain in runners)
                compiled = total > 0 or getattr(_kernels.run, "signatures", True)
                compiling = not compiled and time.perf_counter() - began > LOADING_SECONDS
                state = (slowest.n_clusters, slowest.log_posterior)
                report(Progress(total, sweeps * len(runners), *state, compiling))
                for future in finished:
                    future.result()
        except BaseException as error:
            for chain in runners:
                chain.stop()
            wait(waiting)
            if isinstance(error, KeyboardInterrupt):
                raise SamplingInterrupted(_collect(runners, records, time.perf_counter() - began)) from None
            raise
    return _collect(runners, records, time.perf_counter() - began)


def _next(queue: "SimpleQueue[Chain]") -> Chain | None:
    """The chain whose turn it is, None if all are finished or being advanced."""
    try:
        return queue.get_nowait()
    except Empty:
        return None


def _collect(runners: list[Chain], records: Record, seconds: float) -> Chains:
    """What is kept of the sweeps that every chain has finished."""
    sweeps = min(chain.done for chain in runners)
    burn_in, thin = runners[0].plan.burn_in, runners[0].plan.thin
    best = int(np.argmax(records.best_log_posterior))
    return Chains(
        labels=records.draw[:, : max(sweeps - burn_in, 0) // thin],
        log_posterior=records.log_posterior[:, :sweeps],
        n_clusters=records.n_clusters[:, :sweeps],
        best_labels=records.best[best],
        best_log_posterior=float(records.best_log_posterior[best, 0]),
        seconds=seconds,
        burn_in=burn_in,
        thin=thin,
    )
