"""Fit of the weights of the boundary cues to rendered volumes, with cross-validation.

As `python -m studies measured_boundaries`, for volumes: with the sites of the preset `Measured`, in one stage. The
network learned from planes, and from none of these scenes. More than half of them are nuclei. The weights are written
to spinseg/image/data/boundary_weights.npz.
"""

from concurrent.futures import ProcessPoolExecutor

import numpy as np

from spinseg.image.boundary.log_odds import log_odds_of_standardized
from spinseg.image.boundary.volumes import volume_cues
from spinseg.image.picture import as_picture
from spinseg.image.working import working_copy
from spinseg.segmentation.presets.measured import Measured
from studies.questions import boundaries
from studies.questions.boundaries import ORIGINAL, WEIGHTS_PATH, Outcomes, quality
from studies.questions.held_out import N_FOLDS
from studies.volume_scenes import render_volume

N_SCENES, SHAPE, SEED = 84, (28, 64, 64), 21
KINDS = ("balls", "balls", "cells", "balls", "grains", "balls", "phases")  # in turn


def edges_of(i: int) -> Outcomes:
    """Return cues and outcomes of the edges of the i-th scene."""
    scene = render_volume(KINDS[i % len(KINDS)], SHAPE, np.random.default_rng([SEED, i]))
    preset, volume = Measured(), as_picture(scene.image[..., 0], channel_axis=None)
    image = preset.analyzed(working_copy(volume, None, None))
    maps = preset.maps(image)
    assert maps is not None
    sites = preset.make_sites(image, maps)
    graph = preset.graph(sites, image)
    apart = boundaries.lie_apart(sites, graph, scene.labels)
    fold = i // len(KINDS) % N_FOLDS
    return Outcomes(ORIGINAL, fold, graph, volume_cues(image.picture, sites, graph, maps), apart.astype(float))


def study() -> dict[str, object]:
    """Fit and write the weights; return their quality in cross-validation."""
    with ProcessPoolExecutor() as pool:
        found = list(pool.map(edges_of, range(N_SCENES)))
    kinds, images = zip(*((KINDS[i % len(KINDS)], e) for i, e in enumerate(found) if e.adjacency.n_edges), strict=True)
    tables = [np.stack(list(edges.local.values()), axis=1) for edges in images]
    tables, mean, deviation = boundaries.standardize(tables, np.ones(tables[0].shape[1], bool))
    fits, log_odds = boundaries.cross_validate(images, tables, boundaries.network, log_odds_of_standardized)
    weights = {"mean": mean, "deviation": deviation, **fits[-1]}
    boundaries.write_weights({f"volume {name}": np.asarray(values) for name, values in weights.items()}, [])
    figures: dict[str, object] = {"sites": f"{np.mean([each.adjacency.n_sites for each in images]):.0f} a volume"}
    for kind in dict.fromkeys(("all", *KINDS)):
        chosen = [i for i, each in enumerate(kinds) if kind in ("all", each)]
        figures[kind] = quality([images[i] for i in chosen], [log_odds[i] for i in chosen])
    return figures | {"written to": str(WEIGHTS_PATH)}
