"""Tissues of a brain: `segment` with the preset "classes" on a volume.

    python examples/brain_volume.py [FOLDER [SWEEPS]]

reads the ICBM 152 template (T1, every second voxel) under SPINSEG_DATA or ../shared/data, and draws three slices of the
volume and of the clusters. How many tissues there are is inferred. The template's maps of gray and white matter are
printed for comparison, but not used.
"""

import gzip
import os
import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

import spinseg as ss
from spinseg.image.render import probability_picture

DATA = Path(os.environ.get("SPINSEG_DATA", Path(__file__).parents[2] / "shared" / "data")) / "extra" / "mni152_brain"
FOLDER, SWEEPS = Path([*sys.argv, "examples-out"][1]), int([*sys.argv, 0, 0][2] or 120)
SIDE, ZOOM = 120, 4  # of a panel in voxels, and pixels to a voxel


def volume(name: str) -> np.ndarray:
    """Return every second voxel of a NIfTI file of bytes; its shape is in the header, before the values."""
    content = gzip.decompress((DATA / f"mni_icbm152_{name}_tal_nlin_sym_09a_converted.nii.gz").read_bytes())
    shape = np.frombuffer(content, "<i2", 3, offset=42)
    return np.frombuffer(content, np.uint8, offset=352).reshape(shape, order="F")[::2, ::2, ::2]


def slices(colors: np.ndarray) -> np.ndarray:
    """Return the slices x = 48, y = 55 and z = 45 of a volume of colors, side by side on white."""
    row = np.full((SIDE, 3 * SIDE, 3), 255, np.uint8)
    for i, plane in enumerate(map(np.rot90, (colors[48], colors[:, 55], colors[:, :, 45]))):
        row[: plane.shape[0], i * SIDE : i * SIDE + plane.shape[1]] = plane
    return row.repeat(ZOOM, axis=0).repeat(ZOOM, axis=1)


if not DATA.is_dir():
    sys.exit(f"There is no folder {DATA}: set SPINSEG_DATA to the folder that holds extra/mni152_brain.")
t1, gray, white = volume("t1"), volume("gm") / 255, volume("wm") / 255
brain = t1 > 0  # the template has no skull
found = ss.segment(t1, "classes", mask=brain, channel_axis=None, sweeps=SWEEPS, rng=0)
print(f"{found.n_clusters} clusters of {found.model.graph.n_sites} sites, {brain.sum()} voxels. {found.verdict}")
means = np.array([t1[found.labels == k].mean() for k in range(1, found.n_clusters + 1)])
for k in np.argsort(means):
    here = found.labels == k + 1
    tissue = f"gray matter {gray[here].mean():.2f}, white matter {white[here].mean():.2f}"
    print(f"mean T1 {means[k]:5.1f}, {here.sum() / brain.sum():6.1%} of the brain; in the template's maps {tissue}")
heat = probability_picture(0.15 + 0.8 * (means - means.min()) / max(np.ptp(means), 1))
painted = np.vstack([[[255] * 3], heat]).astype(np.uint8)[found.labels]  # the outside, 0, is white
picture = Image.fromarray(np.vstack([slices(np.where(brain, t1, 255)[..., None].repeat(3, -1)), slices(painted)]))
for i, caption in enumerate(("T1", f"{found.n_clusters} clusters, colored by their mean T1")):
    ImageDraw.Draw(picture).text((12, 6 + i * SIDE * ZOOM), caption, fill="black", font_size=24)
FOLDER.mkdir(parents=True, exist_ok=True)
picture.save(FOLDER / "brain_volume.png")
print(FOLDER / "brain_volume.png")
