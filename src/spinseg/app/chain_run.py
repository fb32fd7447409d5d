"""Chains under one posterior, and what the web app shows of them: labels, agreement and outlines."""

from base64 import b64encode
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinseg.app.controls import UserSettings
from spinseg.app.words import in_user_words
from spinseg.image.features import site_sizes
from spinseg.partition.contingency import contingency_table
from spinseg.sampler.chains import Chains
from spinseg.sampler.diagnostics import diagnose, is_enough
from spinseg.sampler.sampler import Sampler
from spinseg.sampler.starts import OPPOSITE_STARTS
from spinseg.segmentation.problem import Problem
from spinseg.segmentation.result import LAST_LABELS, Segmentation
from spinseg.segmentation.schedule import BURN_IN, ROUND_SWEEPS, Schedule, compared_partitions
from spinseg.segmentation.verdict import headline_of, shortfalls, unit_of, verdict_sentences

MAX_SWEEPS = 5000  # of one run
MAX_STORED_LABELS = 2**24  # sites x sweeps x chains of one run: 64 MB as int32
MAX_ESTIMATED_CLUSTERS = 200  # of a draw, for estimates while the chains run: they would take many seconds else
MAX_THINNED_DRAWS = 400  # of a chain, for diagnoses and maps on the page; exports use all draws
MAX_PACKED_LABELS = 2**16  # `packed` has two bytes for each
MAX_ESTIMATED_DRAWS = 100  # of a chain, for the partition that it alone gives


class ChainRun(NamedTuple):
    """Chains that sample from one posterior, under the settings that it was made with.

    `earlier` has the sweeps and the Python of the runs that this one continues. `scene` counts how often sites were
    made, `stage` counts the runs of a session, and `note` says why this one could not continue.
    """

    problem: Problem
    sampler: Sampler
    settings: UserSettings
    starts: list[str]  # their names
    earlier: tuple[tuple[int, str], ...] = ()
    scene: int = 1
    stage: int = 1
    note: str | None = None

    @classmethod
    def create(
        cls,
        problem: Problem,
        settings: UserSettings,
        labels: NDArray[np.int32] | None = None,
        earlier: tuple[tuple[int, str], ...] = (),
        **about: Any,
    ) -> "ChainRun":
        """Make a run that starts as the settings say, or from `labels` of shape (n_chains, n_sites)."""
        model, chains = problem.model, settings.chains
        preset = settings.preset_for(problem.picture)
        init: Any = preset.init
        names = OPPOSITE_STARTS if init == "opposite" else [init] if isinstance(init, str) else init
        if labels is not None:
            preset = replace(preset, init=labels)
        max_sweeps = MAX_STORED_LABELS // (chains * model.n_components * model.graph.n_sites)
        how = (max(1, min(MAX_SWEEPS, max_sweeps)), chains, preset.moves, preset.lam, preset.init)
        sampler = Sampler(model, *how, rng=settings.seed + len(earlier), progress=False)
        starts = [names[c % len(names)] for c in range(chains)]
        return cls(replace(problem, preset=preset), sampler, settings, starts, earlier, **about)

    @property
    def seed(self) -> int:
        """The random seed: another one for each run that continues another."""
        return self.settings.seed + len(self.earlier)

    @property
    def n_sweeps(self) -> int:
        """The number of sweeps that every chain has finished."""
        return self.sampler.n_sweeps

    @property
    def n_left(self) -> int:
        """The number of sweeps that memory is left for."""
        return self.sampler.max_sweeps - self.n_sweeps

    @property
    def schedule(self) -> Schedule:
        """The schedule with which `segment` gives the same result."""
        return Schedule(len(self.starts), self.n_sweeps)

    @property
    def _shown(self) -> slice:
        """Which runners the web app shows: the chains of the middle component."""
        middle, chains = self.problem.model.n_components // 2, len(self.starts)
        return slice(middle * chains, (middle + 1) * chains)

    def labels(self) -> NDArray[np.int32]:
        """The present labels of the chains that are shown, of shape (n_chains, n_sites)."""
        records = self.sampler.records
        return (records.draw[:, self.n_sweeps - 1] if self.n_sweeps else records.best)[self._shown]

    def frame(self, labels: list[NDArray[np.int32]]) -> dict[str, Any]:
        """Where the chains are, as JSON; `labels` are those of each chain, in the numbers to show."""
        shown, spins = self.sampler.runners[self._shown], self.sampler.records.spin[self._shown]
        chains = [
            {
                "start": self.starts[c],
                "n_clusters": runner.n_clusters,
                "log_posterior": round(runner.log_posterior, 2),
                "labels": packed(labels[c]),
                "spins": packed(spins[c]),
            }
            for c, runner in enumerate(shown)
        ]
        facts = {"scene": self.scene, "stage": self.stage, "note": self.note, "sweeps": self.n_sweeps}
        facts |= {"began": sum(n_sweeps for n_sweeps, _ in self.earlier), "most_sweeps": self.sampler.max_sweeps}
        facts |= {"unit": unit_of(self.problem.preset.connected), "preset": self.problem.preset.name}
        return facts | {"n_details": self.problem.model.n_components, "chains": chains}

    def traces(self, first: int, end: int) -> dict[str, Any]:
        """The traces of the chains that are shown, over these sweeps."""
        found: dict[str, Any] = {"from": first}
        for name in ("log_posterior", "n_clusters"):
            found[name] = np.round(getattr(self.sampler.records, name)[self._shown, first:end], 2).tolist()
        return found

    def draws(self) -> Chains:
        """The chains without their first half, which `segment` discards as burn-in, too."""
        chains = self.sampler.chains
        return chains.after(chains.n_sweeps // 2)

    def is_quick_to_estimate(self, draws: Chains) -> bool:
        """Whether an estimate from these draws takes little time; those after a start from single sites do not."""
        if self.problem.preset.connected or self.problem.preset.estimate == "best":
            return True
        return bool(draws.n_clusters.max() <= MAX_ESTIMATED_CLUSTERS)

    def agreement(self, draws: Chains) -> dict[str, Any]:
        """Whether the regions and their probabilities have converged, as `segment` would say it of these draws."""
        problem, preset, area = self.problem, self.problem.preset, site_sizes(self.problem.sites)
        thinned = draws.thinned(MAX_THINNED_DRAWS * draws.n_components)
        few = thinned.thinned(MAX_ESTIMATED_DRAWS * draws.n_components)
        compared = compared_partitions(few, problem.model, preset, self.seed)
        found = diagnose(thinned, problem.model.graph, compared, area)
        converged = found.partition_converged, found.probabilities_converged
        unknown = preset.not_validated(problem.picture, problem.model.seeds is not None)
        taken_for = problem.provenance.get("taken_for")
        return {
            "ess": _json_number(found.ess),
            "r_hat": {name: _json_number(row.r_hat) for name, row in found.table.items()},
            "converged": found.converged,
            "enough": is_enough(found) and draws.n_sweeps >= BURN_IN + ROUND_SWEEPS,  # no sooner than `segment`
            "headline": headline_of(*converged, preset.connected)[1],
            "shortfalls": shortfalls(found),
            # Without a schedule: the user decides when to stop.
            "verdict": in_user_words(
                verdict_sentences(found, preset, draws.n_sweeps, taken_for=taken_for, not_validated=unknown)
            ),
        }

    def segmentation(self) -> Segmentation:
        """The segmentation that the Python code of the session gives."""
        code = tuple(line for _, line in self.earlier)
        return self.problem.segmentation(self.draws(), self.seed, self.schedule, preceding_code=code)

    def refined_sites(self, draws: Chains) -> NDArray[np.int32]:
        """The sites of the working image as an export would outline them, if the working image were the image."""
        problem = self.problem.at_working_size()
        return problem.outlined_sites(draws, problem.preset.partition(draws, problem, self.seed))

    def python_line(self, source: str) -> str:
        """The Python line that repeats this run; a run that continues another needs the line of that one."""
        preset, provenance = self.problem.preset, self.problem.provenance
        arguments = self.schedule.arguments(preset, self.n_sweeps, self.seed, provenance | {"mask": None})
        return f"found = {preset.call(source, arguments, **({'init': LAST_LABELS} if self.earlier else {}))}"


def _json_number(value: float | None) -> float | str | None:
    """A number as JSON can hold it."""
    return value if value is None or np.isfinite(value) else "inf"


def match_labels(labels: NDArray[np.int32], *references: NDArray[np.int32]) -> NDArray[np.int32]:
    """Renumber clusters so that they keep the numbers, and hence the colors, of similar clusters in the references.

    A cluster takes the number of a reference cluster if each shares more sites with the other than with any other
    cluster. Earlier references take precedence. The remaining clusters get the lowest free numbers. An
    optimal assignment would take time cubic in the number of clusters, of which there may be one for every site.
    """
    k = int(labels.max()) + 1
    number = np.full(k, -1)
    for reference in references:
        old, new, shared, *_ = contingency_table(reference, labels)
        order = np.argsort(shared, kind="stable")  # the last assignment wins: the largest overlap
        best_of_new, best_of_old = np.zeros(k, np.int64), np.zeros(int(reference.max()) + 1, np.int64)
        best_of_new[new[order]] = old[order]
        best_of_old[old[order]] = new[order]
        matched = (best_of_old[best_of_new] == np.arange(k)) & (number < 0) & ~np.isin(best_of_new, number)
        number[matched] = best_of_new[matched]
    free = np.setdiff1d(np.arange(2 * k), number)
    number[number < 0] = free[: np.count_nonzero(number < 0)]
    return number[labels].astype(np.int32)


def packed(labels: NDArray) -> str:
    """Labels below MAX_PACKED_LABELS as base64 of little-endian 16-bit integers."""
    return b64encode(labels.astype("<u2").tobytes()).decode()
