"""Figure 4: the effect of bond strengths on the search for a good partition, on photographs of LabelMe.

The paper gives the "percentage of increase" of the best log posterior over that of single-site Gibbs, lambda = 0. A log
posterior is known up to a constant, on which such a percentage depends. Here the constant is that of
`Model.log_posterior`, and the table also has the increase in nats, which does not depend on it.
"""

import zlib
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import wilcoxon

from spinseg._errors import TaskFailure
from spinseg._run.executor import CheckInterrupt, check_jobs, run_tasks
from spinseg._run.provenance import Provenance
from spinseg._validation import invalid
from spinseg._version import VERSION
from spinseg.model.posterior import Model
from spinseg.sampler.chains import Chains
from spinseg.sampler.sampler import sample
from spinseg.segmentation.presets.paper import Paper
from spinseg.segmentation.problem import prepare
from studies.evaluation.comparison import spread
from studies.evaluation.datasets import Example, labelme
from studies.evaluation.results import Key, ResultsFile, inputs_of
from studies.paper import plots

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PAPER = Paper()
N_PER_CATEGORY = 6  # of eight categories: 48 photographs, as in the paper, which does not name them
SWEEPS, N_QUICK, QUICK_SWEEPS = 1000, 4, 200
BASE, TYPICAL = "lambda=0", "lambda=10"
LINEAR_PERCENT = 1.0  # the scale is linear up to here, and logarithmic beyond
TICKS = (-100, -30, -10, -3, -1, 0, 1, 3, 10, 30, 100)
HIDDEN_FRACTION = 0.04  # of the sweeps: the first values are far below the others


class Sampler(NamedTuple):
    """Arguments `moves` and `lam` of `sample`, and a color."""

    moves: str
    lam: float | None
    color: str


SAMPLERS = {
    "lambda=0": Sampler("gsw", 0.0, plots.GRAY),
    "lambda=1": Sampler("gsw", 1.0, plots.SKY),
    "lambda=5": Sampler("gsw", 5.0, plots.GREEN),
    "lambda=10": Sampler("gsw", 10.0, plots.BLUE),
    "lambda=20": Sampler("gsw", 20.0, plots.VERMILION),
    "auto": Sampler("auto", None, plots.ORANGE),  # not in the paper
}


SUMMARY = ("sampler", "lower_percent", "median_percent", "upper_percent", "median_nats", "better", "of", "p_value")


class Run(NamedTuple):
    """The best that one sampler found on one photograph; increases are those over single-site Gibbs.

    `content` is the hash of the photograph's files.
    """

    image: str
    sampler: str
    best_log_posterior: float
    increase_nats: float
    increase_percent: float
    n_clusters: int
    seconds: float
    settings: str = ""
    content: str = ""
    version: str = VERSION

    @property
    def key(self) -> Key:
        """The photograph and the sampler, which no other run has."""
        return self.image, self.sampler

    @property
    def provenance(self) -> Provenance:
        """What the run was computed from."""
        return Provenance(inputs_of(self.image, self.content), self.version, None, {"settings": self.settings})


class RunsFile(ResultsFile[Run]):
    """The runs of the figure."""

    columns = Run._fields

    def from_cells(self, cells: dict[str, str]) -> Run:
        """The run of a line."""
        return Run(*(kind(cells[name]) for name, kind in Run.__annotations__.items()))

    def to_cells(self, row: Run) -> list[object]:
        """The cells of a run."""
        return [f"{value:.6f}" if isinstance(value, float) else value for value in row]


class Task(NamedTuple):
    """A photograph and a number of sweeps."""

    example: Example
    sweeps: int

    @property
    def about(self) -> tuple[str, str]:
        """The last entries of its runs: their settings, and the hash of the photograph's files."""
        settings: dict[str, object] = {"sweeps": self.sweeps, "beta": PAPER.beta, "count_weight": PAPER.count_weight}
        settings |= {"smoothing": PAPER.smoothing, "prior": repr(PAPER.prior)}
        return " ".join(f"{name}={value}" for name, value in settings.items()), self.example.content()


def reproduce(
    out: Path,
    root: Path | None = None,
    quick: bool = False,
    progress: plots.ProgressCallback | None = None,
    jobs: int | None = None,
) -> list[Path]:
    """Write figure4.png, figure4.csv, -trace.csv and -summary.csv to the folder `out`; return their paths.

    LabelMe's photographs must be in `root`. Each finished one is appended to figure4.csv, and those that it has already
    are not computed again. `jobs` is the number of photographs at a time, by default one for each processor.
    """
    plots.require_matplotlib()
    if root is None:
        invalid("root", "be the folder of LabelMe's photographs, which figure 4 needs", root)
    examples = choose_examples(labelme(root), N_PER_CATEGORY)
    if quick:
        examples = spread(examples, N_QUICK)
    tasks = [Task(example, QUICK_SWEEPS if quick else SWEEPS) for example in examples]
    table = out / "figure4.csv"
    out.mkdir(parents=True, exist_ok=True)
    runs = all_runs(tasks, table, check_jobs(jobs, None), progress)
    example, sweeps = tasks[[task.example.name for task in tasks].index(median_image(runs))]
    model = model_of(example)
    traces = {s: one_run(model, s, example.name, sweeps).trace("log_posterior")[0] for s in SAMPLERS if s != "auto"}
    header = ("sweep", *traces)
    rows = [(t + 1, *(f"{trace[t]:.3f}" for trace in traces.values())) for t in range(sweeps)]
    return [
        draw(out / "figure4.png", example.name, traces, runs),
        table,
        plots.write_table(out / "figure4-trace.csv", header, rows),
        plots.write_table(out / "figure4-summary.csv", SUMMARY, summary(runs)),
    ]


def summary(runs: Sequence[Run]) -> list[tuple[object, ...]]:
    """Return a row of `SUMMARY` for each sampler: increases over single-site Gibbs, and Wilcoxon's signed-rank test."""
    lines: list[tuple[object, ...]] = []
    for name in SAMPLERS:
        found = [(run.increase_percent, run.increase_nats) for run in runs if run.sampler == name]
        percent, nats = np.array(found).T
        quartiles = np.percentile(percent, [25, 50, 75]).round(3).tolist()
        p_value = wilcoxon(nats).pvalue if nats.any() else 1.0
        lines.append((name, *quartiles, round(float(np.median(nats)), 3), int((nats > 0).sum()), nats.size, p_value))
    return lines


def choose_examples(examples: Sequence[Example], n_per_category: int) -> list[Example]:
    """Return photographs evenly spaced over the names of each category, CATEGORY_NUMBER; all if there are too few."""
    groups = groupby(sorted(examples, key=lambda e: e.name), key=lambda example: example.name.partition("_")[0])
    return [example for _, group in groups for example in spread(list(group), n_per_category)]


def model_of(example: Example) -> Model:
    """Return the posterior of a photograph under the paper's settings, as in `segment(image, "paper")`."""
    return prepare(example.image_path, PAPER).model


def one_run(
    model: Model, sampler: str, image: str, sweeps: int, check_interrupt: CheckInterrupt | None = None
) -> Chains:
    """One chain from one cluster, seeded by the names of the photograph and of the sampler; no draws are kept."""
    moves, lam, _ = SAMPLERS[sampler]
    rng = np.random.default_rng(zlib.crc32(f"{image} {sampler}".encode()))
    return sample(
        model, sweeps, 1, moves, lam, PAPER.init, burn_in=sweeps, rng=rng, workers=1, progress=check_interrupt
    )


def runs_of(task: Task, check_interrupt: CheckInterrupt | None = None) -> list[Run] | None:
    """A run of every sampler on a photograph; None where Ctrl-C came before all were finished."""
    name = task.example.name
    try:
        model = model_of(task.example)
        chains = {sampler: one_run(model, sampler, name, task.sweeps, check_interrupt) for sampler in SAMPLERS}
    except KeyboardInterrupt:
        return None
    base, about = chains[BASE].best_log_posterior, task.about
    runs = []
    for sampler, drawn in chains.items():
        best, n_clusters = drawn.best_log_posterior, int(drawn.best_labels.max()) + 1
        nats, percent = round(best - base, 6), round(100 * (best - base) / abs(base), 6)  # as the table has them
        runs.append(Run(name, sampler, round(best, 6), nats, percent, n_clusters, round(drawn.seconds, 3), *about))
    return runs


def all_runs(tasks: Sequence[Task], table: Path, jobs: int, progress: plots.ProgressCallback | None) -> list[Run]:
    """The runs on all photographs, in order; those that the table has are not repeated, and others are added to it."""
    about = {task.example.name: task.about for task in tasks}
    default = tasks[0].about  # for photographs of other runs

    def provenance_of(image: str, sampler: str) -> Provenance:
        wanted = Run(image, sampler, 0.0, 0.0, 0.0, 0, 0.0, *about.get(image, default)).provenance
        return wanted if image in about else wanted._replace(inputs={})

    file = RunsFile(table, provenance_of)
    missing = [task for task in tasks if any((task.example.name, sampler) not in file.rows for sampler in SAMPLERS)]
    n_done = len(tasks) - len(missing)
    for index, runs in run_tasks(runs_of, missing, jobs=jobs):
        name = missing[index].example.name
        if runs is None:
            continue
        if isinstance(runs, TaskFailure):
            raise runs.to_exception(name)
        file.append(*runs)
        n_done += 1
        if progress is not None:
            progress(f"figure4: {n_done}/{len(tasks)} {name}")
    keys = [(task.example.name, sampler) for task in tasks for sampler in SAMPLERS]
    file.finish(keys)
    return [file.rows[key] for key in keys]


def median_image(runs: Sequence[Run]) -> str:
    """Return the photograph with the median increase at lambda = 10; of two the lower."""
    increases = sorted((run.increase_percent, run.image) for run in runs if run.sampler == TYPICAL)
    return increases[(len(increases) - 1) // 2][1]


def draw(path: Path, image: str, traces: dict[str, NDArray[np.float64]], runs: Sequence[Run]) -> Path:
    """Draw the figure; return the path."""
    figure, (left, right) = plots.new_figure(9.6, 4.3, (1.15, 1))
    n_sweeps = next(iter(traces.values())).size
    for name, trace in traces.items():
        label = name.replace("lambda=", "$\\lambda$ = ")
        label += {"lambda=0": " (single-site Gibbs)", "lambda=1": " (Swendsen-Wang)"}.get(name, "")
        left.plot(np.arange(1, n_sweeps + 1), trace, color=SAMPLERS[name].color, linewidth=0.8, label=label)
    begun = int(HIDDEN_FRACTION * n_sweeps)
    lowest, highest = (float(f([f(trace[begun:]) for trace in traces.values()])) for f in (np.min, np.max))
    left.set_ylim(lowest, highest + 0.03 * (highest - lowest))
    left.set_xlim(0, n_sweeps)
    left.legend(frameon=False, fontsize=plots.SMALL, loc="upper center", bbox_to_anchor=(0.45, -0.17), ncols=3)
    plots.style_axes(left, "sweep", "log posterior (nats, but for a constant)", f"(a) {image}")
    _boxes(right, runs)
    n_images = len({run.image for run in runs})
    note = f"compared with $\\lambda$ = 0; scale logarithmic beyond {LINEAR_PERCENT:g}%"
    title = f"(b) {n_images} photographs, {n_sweeps:,} sweeps each"
    plots.style_axes(right, note, "increase of the best log posterior (%)", title)
    return plots.save(figure, path)


def _boxes(axes: "Axes", runs: Sequence[Run]) -> None:
    """Draw the increases over single-site Gibbs: a box for each other sampler, and its photographs as points."""
    names = [name for name in SAMPLERS if name != BASE]
    jitter = np.random.default_rng(0)
    axes.set_yscale("symlog", linthresh=LINEAR_PERCENT)  # a few photographs are outliers
    axes.axhline(0, color=plots.GRAY, linewidth=1.0)
    for place, name in enumerate(names):
        values = np.array([run.increase_percent for run in runs if run.sampler == name])
        color = SAMPLERS[name].color
        ink = {"color": color, "linewidth": 1.2}
        axes.boxplot(
            values,
            positions=[place],
            widths=0.55,
            showfliers=False,
            patch_artist=True,
            boxprops={"facecolor": "none", "edgecolor": color, "linewidth": 1.2},
            medianprops={"color": color, "linewidth": 2.2},
            whiskerprops=ink,
            capprops=ink,
        )
        spots = place + jitter.uniform(-0.18, 0.18, values.size)
        axes.scatter(spots, values, s=10, color=color, alpha=0.6, linewidths=0, zorder=2)
    texts = [name.replace("lambda=", "$\\lambda$ = ") for name in names]
    texts[-1] += "\n(not in the paper)"
    axes.set_xticks(range(len(names)), texts)
    lowest, highest = axes.get_ylim()
    axes.set_yticks([tick for tick in TICKS if lowest <= tick <= highest], minor=False)
    axes.set_yticks([], minor=True)
    axes.yaxis.set_major_formatter("{x:g}")
