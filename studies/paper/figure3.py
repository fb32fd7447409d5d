"""Figure 3: one sweep of the generalized Swendsen-Wang sampler on a 6 x 6 lattice."""

import copy
import itertools
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinseg._validation import generator
from spinseg.graph.site_graph import SiteGraph
from spinseg.model.likelihoods import Flat
from spinseg.model.posterior import Model
from spinseg.model.priors import DirichletProcess
from spinseg.sampler.chain import Chain, new_record
from spinseg.sampler.kernels.moves import attempts_at
from spinseg.sampler.kernels.spin_clusters import begin_sweep
from spinseg.sampler.kernels.state import Plan, Random
from spinseg.sampler.pack import pack
from spinseg.sampler.plan import bond_strengths
from spinseg.sampler.starts import starting_labels
from studies.paper import plots

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIDE = 6
START = "RRRRGG RRRGGB RBBBGG RBBBGG GGGRRR GGGRRR"  # the paper's partition: red, green and blue rows of sites
ALPHA, BETA, LAM = 3.0, 0.5, 2.0  # neighbors of one cluster are bonded with probability 1 - exp(-1) = 0.63
SEED = 636  # the first seed that `choose_sweep` tries
COLORS = (plots.VERMILION, plots.GREEN, plots.BLUE, plots.BLACK, plots.ORANGE, plots.PURPLE, plots.SKY)
INSET, ROUNDING = 0.1, 0.22  # of the outlines, in units of the lattice


class Sweep(NamedTuple):
    """One sweep: clusters before and after, as numbered by the sampler, bonds, and spin-clusters."""

    before: NDArray[np.int32]  # (n,)
    bonds: NDArray[np.int32]  # (any, 2), pairs of sites
    spin_cluster: NDArray[np.int32]  # (n,)
    after: NDArray[np.int32]  # (n,)


def reproduce(
    out: Path, root: Path | None = None, quick: bool = False, progress: plots.ProgressCallback | None = None
) -> list[Path]:
    """Write figure3.png, figure3.csv and figure3-bonds.csv to the folder `out`; return their paths."""
    plots.require_matplotlib()
    if progress is not None:
        progress(f"figure3: one sweep on {SIDE} x {SIDE} sites")
    found = choose_sweep()
    row, column = np.divmod(np.arange(SIDE * SIDE), SIDE)
    header = ("site", "row", "column", "before", "spin_cluster", "after")
    rows = np.stack([np.arange(SIDE * SIDE), row, column, found.before, found.spin_cluster, found.after], axis=1)
    return [
        draw(out / "figure3.png", found),
        plots.write_table(out / "figure3.csv", header, rows.tolist()),
        plots.write_table(out / "figure3-bonds.csv", ("site", "other_site"), found.bonds.tolist()),
    ]


def lattice_model() -> Model:
    """Return the Potts-Dirichlet prior on a lattice with four neighbors per site, without data."""
    return Model(SiteGraph.grid((SIDE, SIDE)), Flat(), DirichletProcess(ALPHA), BETA)


def paper_partition() -> NDArray[np.int32]:
    """Return the partition that the paper's figure starts from, row by row."""
    return np.array(["RGB".index(color) for color in START.replace(" ", "")], np.int32)


def choose_sweep() -> Sweep:
    """Return the first sweep, from SEED on, where several spin-clusters move, one founds a cluster, none vanishes."""
    for seed in itertools.count(SEED):
        found = one_sweep(lattice_model(), paper_partition(), LAM, seed)
        moved = found.before != found.after
        new = np.setdiff1d(found.after, found.before)
        kept = np.unique(found.before[~moved])  # a number that was freed and reused would denote another cluster
        if np.unique(found.spin_cluster[moved]).size >= 4 and new.size == 1 and np.isin(found.before, kept).all():
            return found
    raise AssertionError  # unreachable: itertools.count does not end


def one_sweep(model: Model, start: NDArray[np.integer], lam: float, seed: int) -> Sweep:
    """Return the one sweep of `sample(model, sweeps=1, chains=1, moves="gsw", lam=lam, init=start, rng=seed)`.

    The sampler keeps its spin-clusters until the next sweep, but not its bonds. These are found by repeating its bond
    step from the same state of the random generator: see `hit_edges`.
    """
    strength, lams = bond_strengths(model, lam, "gsw")
    record = new_record(1, model.graph.n_sites)
    plan = Plan(lams, attempts_at(), 1.0, 1, 1)
    target, stream = pack(model, strength), generator(seed).spawn(1)[0]
    before = starting_labels(model, target, start)
    chain = Chain(model, target, plan, before, model.log_posterior(before), record, stream)
    hit = hit_edges(model.graph, chain)
    chain.advance(1)
    bonds = model.graph.edges[hit]
    bonds = bonds[before[bonds[:, 0]] == before[bonds[:, 1]]]
    return Sweep(before, bonds, chain.state.spin.astype(np.int32), chain.state.label.astype(np.int32))


def hit_edges(graph: SiteGraph, chain: Chain) -> NDArray[np.bool_]:
    """Return which edges the next sweep of a chain bonds if their two sites share a cluster; the chain is not changed.

    The random numbers of the bond step do not depend on the partition. So it is repeated for each edge, with a copy of
    the generator, on the partition where the two sites of that edge are together and all others are singletons: the
    edge is hit if the two form a spin-cluster.
    """
    hit = np.zeros(graph.n_edges, bool)
    for e, (i, j) in enumerate(graph.edges):
        state, stream = copy.deepcopy(chain.state), copy.deepcopy(chain.rng)
        state.label[:] = np.arange(graph.n_sites)
        state.label[j] = state.label[i]
        begin_sweep(chain.target, state, chain.plan, Random(stream))
        hit[e] = state.spin[i] == state.spin[j]
    return hit


Point = tuple[float, float]


def outlines(sites: NDArray[np.integer], side: int) -> list[list[Point]]:
    """Return the corners (x, y) of the outlines of a set of lattice sites, slightly inset; y increases downwards.

    Outlines are clockwise on the page, so that the sites are on their right.
    """
    cells = {divmod(int(site), side) for site in sites}
    steps: dict[Point, list[Point]] = {}  # directions of the outlines from each corner of the lattice
    for row, column in cells:
        x, y = column - 0.5, row - 0.5
        for (dx, dy), start in zip(
            ((1, 0), (0, 1), (-1, 0), (0, -1)), ((x, y), (x + 1, y), (x + 1, y + 1), (x, y + 1)), strict=True
        ):
            if (row - dx, column + dy) not in cells:  # the cell to the left of this side
                steps.setdefault(start, []).append((dx, dy))
    lines = []
    while steps:
        start = at = min(steps, key=lambda corner: (len(steps[corner]), corner))  # where one outline passes, not two
        heading = steps[start][0]
        line: list[tuple[Point, Point]] = []
        while not line or at != start:
            right = (-heading[1], heading[0])
            ways = steps[at]
            heading = right if right in ways else ways[0]  # where two sites share only a corner, stay with this one
            ways.remove(heading)
            if not ways:
                del steps[at]
            line.append((at, heading))
            at = (at[0] + heading[0], at[1] + heading[1])
        lines.append(_inset_corners(line))
    return lines


def _inset_corners(line: list[tuple[Point, Point]]) -> list[Point]:
    """Return the corners of a closed line of unit steps, moved to the right of the line."""
    corners = []
    for ((_, before)), (at, heading) in pairwise([line[-1], *line]):
        if before != heading:
            right = (-before[1] - heading[1], before[0] + heading[0])
            corners.append((at[0] + INSET * right[0], at[1] + INSET * right[1]))
    return corners


def _rounded(corners: list[Point]) -> Any:
    """Return a closed Matplotlib path with rounded corners."""
    from matplotlib.path import Path as Line

    places = np.array(corners)
    vertices, codes = [], []
    for q, corner in enumerate(places):
        ends = []
        for other in (places[q - 1], places[(q + 1) % len(places)]):
            ends.append(corner + ROUNDING * (other - corner) / np.abs(other - corner).sum())
        vertices += [ends[0], corner, ends[1]]
        codes += [Line.LINETO if q else Line.MOVETO, Line.CURVE3, Line.CURVE3]
    return Line([*vertices, vertices[0]], [*codes, Line.CLOSEPOLY])


def draw(path: Path, found: Sweep) -> Path:
    """Draw the figure; return the path."""
    figure, panels = plots.new_figure(9.0, 2.8, (1, 1, 1, 1))
    titles = ("(a) partition", "(b) bonds", "(c) spin-clusters", "(d) new partition")
    moved = found.before != found.after
    for axes, title in zip(panels, titles, strict=True):
        last = axes is panels[3]
        lattice = SiteGraph.grid((SIDE, SIDE)).edges
        _pairs(axes, lattice, plots.LIGHT_GRAY, 0.8)
        if axes in panels[1:3]:
            _pairs(axes, found.bonds, plots.BLACK, 2.0)
        if axes in panels[2:]:
            _outline(axes, found.spin_cluster, moved if last else np.ones_like(moved))
        _sites(axes, found.after if last else found.before)
        axes.set_title(title, fontsize=plots.SIZE, color=plots.BLACK)
        axes.set_xlim(-0.6, SIDE - 0.4)
        axes.set_ylim(SIDE - 0.4, -0.6)
        axes.set_aspect("equal")
        axes.axis("off")
    n_moved = np.unique(found.spin_cluster[moved]).size
    n_new = np.setdiff1d(found.after, found.before).size
    note = f"{found.spin_cluster.max() + 1} spin-clusters, of which {n_moved} moved (black in (d))"
    note += f" and founded {n_new} new cluster" if n_new == 1 else ""
    figure.supxlabel(note, fontsize=plots.SMALL, color=plots.GRAY)
    return plots.save(figure, path)


def _pairs(axes: "Axes", pairs: NDArray[np.int32], color: str, width: float) -> None:
    rows, columns = np.divmod(pairs, SIDE)
    axes.plot(columns.T, rows.T, color=color, linewidth=width, zorder=1 + width / 10, solid_capstyle="butt")


def _sites(axes: "Axes", clusters: NDArray[np.int32]) -> None:
    rows, columns = np.divmod(np.arange(SIDE * SIDE), SIDE)
    colors = [COLORS[cluster % len(COLORS)] for cluster in clusters]
    axes.scatter(columns, rows, s=66, c=colors, zorder=3, linewidths=0)


def _outline(axes: "Axes", spin_cluster: NDArray[np.int32], strong: NDArray[np.bool_]) -> None:
    from matplotlib.patches import PathPatch

    for c in range(int(spin_cluster.max()) + 1):
        sites = np.flatnonzero(spin_cluster == c)
        color = plots.BLACK if strong[sites[0]] else "#AAAAAA"
        for corners in outlines(sites, SIDE):
            axes.add_patch(PathPatch(_rounded(corners), fill=False, edgecolor=color, linewidth=1.1, zorder=2))
