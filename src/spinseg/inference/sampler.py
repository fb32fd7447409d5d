"""Draw partitions from the posterior."""

import os
import secrets
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from spinseg._validation import check_int, check_real
from spinseg.inference.bonds import Lam
from spinseg.inference.chains import Chains, SamplingInterrupted
from spinseg.inference.checkpoint import write_chains
from spinseg.inference.progress import Report
from spinseg.inference.sampling import Sampling, generator
from spinseg.inference.workers import run_all
from spinseg.model.posterior import Model

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
        Seed. The same seed gives the same draws on one machine, whatever the number of workers. Other processors, and
        other versions of NumPy, round differently, and chains may then go another way.
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
    every = check_real("checkpoint_seconds", checkpoint_seconds, above=0)
    workers = None if workers is None else check_int("workers", workers, at_least=1)
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
    runners = sampling.runners
    if checkpoint is not None:
        for c in range(len(runners)):
            sampling.lay_down(c)

    def write() -> None:
        write_chains(checkpoint, *sampling.laid_down())  # type: ignore[arg-type]

    def finished() -> Chains:
        found = sampling.so_far()
        if checkpoint is not None:
            write()
        return found

    keeping = () if checkpoint is None else (sampling.lay_down, write, every)
    try:
        run_all(runners, int(sweeps), workers or min(len(runners), os.cpu_count() or 1), progress, *keeping)
    except KeyboardInterrupt:
        raise SamplingInterrupted(finished()) from None
    return finished()


def thin_to_fit(n_draws: int, n_labels: int) -> int:
    """Of how many draws of so many labels one is kept, so that they take a few hundred megabytes."""
    return max(1, -(-n_draws // max(FEW_DRAWS, MANY_LABELS // n_labels)))


def seed_of(rng: int | np.random.Generator | None) -> int:
    """A whole number that repeats what `rng` begins: itself, one that a Generator draws, or a fresh one for None."""
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(2**63))
    generator(rng)
    return secrets.randbits(63) if rng is None else int(rng)
