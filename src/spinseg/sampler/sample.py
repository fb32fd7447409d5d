"""Draw partitions from the posterior."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from spinseg._run.progress import Report, reporting
from spinseg._validation import check_int, check_real, invalid
from spinseg.model.posterior import Model
from spinseg.sampler.bonds import Lam
from spinseg.sampler.chains import Chains, SamplingInterrupted
from spinseg.sampler.checkpoint import write_checkpoint
from spinseg.sampler.reach import warn_of_unreachable
from spinseg.sampler.sampling import Sampling, generator
from spinseg.sampler.workers import advance_all

MAX_LABELS, MIN_DRAWS = 2**26, 4  # kept of all chains together: 256 MB, but at least a few draws


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
    until: Callable[[Chains], bool] | None = None,
    check_every: int = 100,
    workers: int | None = None,
    progress: bool | Report | None = None,
) -> Chains:
    """Chains that leave the posterior of `model` invariant.

    Parameters
    ----------
    model : Model
    sweeps, chains : int
        Sweeps of each chain, and the number of chains. A mixture runs `chains` chains for each of its components.
    moves : {"auto", "gsw"}
        "gsw" is the paper's generalized Swendsen-Wang sampler and nothing else. "auto" draws its lambda afresh from
        {0, 1, 3, 10, 20} before each sweep, and tries ten splits or merges by sequential allocation after it, then
        three regroupings of two clusters into three or back: the paper's sampler alone hardly ever changes the number
        of large clusters. Of more than 20,000 sites it tries one split or merge, and in nine of ten sweeps
        spin-clusters go only where they touch, or found a cluster. Where clusters must be connected, lambda comes from
        {0.25, 0.5, 1, 2, 4}, and after each sweep it tries splits, merges, redrawn borders and regroupings along growth
        orders, four and one more for each 80 sites. Where the prior forbids sizes or numbers of clusters, so that not
        all clusters may merge, it also tries to exchange two sites between clusters, once for every two sites.
    lam : float, (n_edges,) array, DataDriven or None
        Bond strengths: 0 is single-site Gibbs, 1 Swendsen-Wang. None is 10 with "gsw", and the set above with "auto".
    init : "opposite", "dispersed", or "one", "singletons", "greedy", labels, or one of the latter for each
        Where chains start. "opposite" is "one" and "singletons" in turn. So is "dispersed", but each component of a
        mixture starts from the greedy partitions of the components before and after it. Where clusters must be
        connected, labels must be, "one" is one cluster for each component of the graph, and "singletons" the smallest
        connected blocks that the prior allows.
    burn_in, thin : int
        Keep the labels of every `thin`-th sweep after the first `burn_in`. Traces cover every sweep: with a `burn_in`
        of `sweeps`, there are traces and no draws.
    rng : int, Generator or None
        Seed. The same seed gives the same draws on one machine, whatever the number of workers. Other processors, and
        other versions of NumPy, round differently, and chains may then differ.
    temperatures : sequence of float, optional
        Parallel tempering: rising temperatures from 1, between which partitions are exchanged after each sweep. The
        time of a chain grows with the number of temperatures; draws are those at temperature 1.
    concentration_prior : (shape, rate), optional
        Sample the concentration of a Dirichlet process or Pitman-Yor prior with the partition; its own prior is this
        gamma distribution. `log_posterior` is then the joint one, with the prior of the sizes normalized.
    checkpoint : path, optional
        Write the state of all chains to this file at the start, about every `checkpoint_seconds`, and at the end.
    resume_from : path or Chains, optional
        Continue a checkpoint or saved chains to `sweeps` sweeps in all. The draws are those of one uninterrupted run,
        bit by bit. The model and the settings must be the same; `init` and `rng` are then ignored.
    until : callable, optional
        Stop before `sweeps` sweeps where it returns true: it is called with the chains so far, as soon as there are
        draws and after every `check_every` sweeps.
    check_every : int
    workers : int, optional
        Threads; by default one for each chain, up to the number of processors.
    progress : bool or callable, optional
        True shows a bar on standard error; a callable is called with a `Progress`. By default only the first run on a
        machine prints a line, that it compiles; False prints nothing.

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
    every = check_real("checkpoint_seconds", checkpoint_seconds, above=0)
    workers = None if workers is None else check_int("workers", workers, at_least=1)
    check_every = check_int("check_every", check_every, at_least=1)
    sampling = Sampling(
        model,
        sweeps,
        chains,
        moves,
        lam,
        init,
        burn_in,
        thin,
        rng,
        temperatures=temperatures,
        concentration_prior=concentration_prior,
        resume_from=resume_from,
    )
    warn_of_unreachable(sampling.unreachable, stacklevel=3)
    runners = sampling.runners
    if checkpoint is not None:
        for c in range(len(runners)):
            sampling.snapshot(c)

    def write() -> None:
        write_checkpoint(checkpoint, sampling.checkpoint())  # type: ignore[arg-type]

    def finished() -> Chains:
        chains = sampling.chains_so_far()
        if checkpoint is not None:
            write()
        return chains

    saving = () if checkpoint is None else (sampling.snapshot, write, every)
    n_workers = workers or min(len(runners), os.cpu_count() or 1)
    try:
        with reporting(progress) as report:
            for stop in _stops(int(sweeps), int(burn_in) + int(thin), check_every if until else int(sweeps)):
                advance_all(runners, stop, n_workers, report, *saving, most_sweeps=int(sweeps))
                if until is not None and stop < sweeps and until(sampling.chains_so_far()):
                    break
    except KeyboardInterrupt:
        raise SamplingInterrupted(finished()) from None
    return finished()


def _stops(sweeps: int, first_draw: int, every: int) -> Iterator[int]:
    """The numbers of sweeps at which chains are looked at, the last of which is `sweeps`."""
    return (stop for stop in [*range(every, sweeps, every), sweeps] if stop >= first_draw or stop == sweeps)


def thin_to_fit(n_draws: int, n_labels: int) -> int:
    """The thinning at which the kept draws, of `n_labels` labels each, take at most about 256 MB."""
    return max(1, -(-n_draws // max(MIN_DRAWS, MAX_LABELS // n_labels)))


def seed_of(rng: int | np.random.Generator | None) -> int:
    """The seed itself, one drawn from a Generator, or a fresh one for None."""
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(2**63))
    if rng is None:
        return secrets.randbits(63)
    generator(rng)
    if not isinstance(rng, (int, np.integer)):
        invalid("rng", "be a whole number of at least 0, a Generator or None", rng)
    return int(rng)
