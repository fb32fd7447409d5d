"""Draw the pictures of images of other fields than photography, and print the figures that stand beside them.

    python scripts/make_field_pictures.py [microscopy] [rasters] [medical] [materials] [fields]

writes docs/images/NAME.jpg for each name, by default for all. The first four belong to pages of docs/howto: an image,
the recipe that people use, and spinseg. The last belongs to docs/evidence/fields.md: twelve images with the preset for
photographs, and with the default call. Images are drawn only where they are in the public domain: a training image of
BBBC038 (CC0), images of scikit-image (CC0), and rendered ones. For others there are outlines alone.
"""

import sys
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tifffile
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image
from skimage import data
from skimage.segmentation import find_boundaries

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import spinseg as ss  # noqa: E402
from spinseg.image.render import label_colors  # noqa: E402
from studies import scenes  # noqa: E402
from studies.evaluation.baselines.objects import otsu_watershed  # noqa: E402
from studies.evaluation.datasets import data_root, nuclei  # noqa: E402
from studies.evaluation.metrics import adjusted_rand_index  # noqa: E402
from studies.evaluation.objects import object_scores  # noqa: E402
from studies.questions import field_images as images  # noqa: E402
from studies.questions import fields as recipes  # noqa: E402
from studies.questions.field_images import Sample  # noqa: E402

FOLDER = ROOT / "docs" / "images"
SHOWN = "4d4ebfcae437"  # the training image of BBBC038 that is drawn
BANDS_SEED, MEMBRANE_SEED, PHANTOM_SEED = (
    11,
    21,
    31,
)  # of rendered images, other than those of `fields`
MATERIAL_SEEDS = (41, 42, 43)
Labels = NDArray[np.integer[Any]]
Panel = tuple[str, NDArray[np.uint8]]


class Example(NamedTuple):
    """One of the twelve: its name, the sample, the score against its truth ("" for none), and whether it is drawn."""

    name: str
    sample: Sample
    score: str = ""
    drawn: bool = True


def training_nuclei(name: str) -> Sample:
    """Return a training image of BBBC038 with its nuclei."""
    example = next(each for each in nuclei(data_root(), "train") if each.name == name)
    return Sample(example.image(), example.annotations()[0])


def membranes(seed: int) -> Sample:
    """Return rendered cells with stained walls."""
    scene = scenes.render("membranes", images.SHAPE, np.random.default_rng(seed))
    return Sample(scene.image.squeeze(), scene.labels + 1)


def without_truth(image: NDArray[Any]) -> Sample:
    """Return an image whose truth is unknown."""
    return Sample(image, np.full(image.shape[:2], -1))


def twelve() -> list[Example]:
    """Return two images of each of six fields."""
    found = [
        Example("nuclei, fluorescence", training_nuclei(SHOWN), "F1"),
        Example("nuclei, fluorescence", training_nuclei("8f6e49e474eb"), "F1", drawn=False),
        Example("nuclei, histology", training_nuclei("65c8527c16a0"), "F1", drawn=False),
        Example("nuclei, histology", training_nuclei("ed5be4b63e95"), "F1", drawn=False),
        Example("plant cells, maize", images.plant_cells(0), "F1", drawn=False),
        Example("cell walls, rendered", membranes(MEMBRANE_SEED), "F1"),
    ]
    for amount, looks in (("low", 30.0), ("high", 3.0)):
        name = f"six bands, {amount} speckle, rendered"
        found.append(Example(name, images.six_bands(BANDS_SEED, looks)[0], "ARI"))
    return [
        *found,
        Example("gravel", without_truth(data.gravel()[:256, :256])),
        Example("brick", without_truth(data.brick()[:256, :256])),
        Example("retina", without_truth(data.retina()[::3, ::3])),
        Example("microaneurysms", without_truth(data.microaneurysms())),
    ]


def scored(score: str, labels: Labels, truth: Labels) -> str:
    """Return the score of a label image with its name; empty for none."""
    if not score:
        return ""
    value = object_scores(labels, truth).f_50 if score == "F1" else adjusted_rand_index(labels, truth)
    return f"{score} {value:.2f}"


def segmented(image: NDArray[Any], *preset: str, **options: Any) -> ss.Segmentation:
    """Return the segmentation of an image, without a preset that of the default call, and print its verdict."""
    found = ss.segment(image, *preset, rng=0, **options)
    print(f"  {' '.join(preset) or 'default'}: {found.n_clusters} found. {found.verdict}", flush=True)
    return found


def lines(rgb: NDArray[np.uint8] | None, labels: Labels, width: int = 370) -> NDArray[np.uint8]:
    """Return an image, or an empty sheet, with the outlines of labels, at a width at which lines are visible."""
    size = width, round(width * labels.shape[0] / labels.shape[1])
    at_size = np.asarray(Image.fromarray(labels.astype(np.int32)).resize(size, Image.Resampling.NEAREST))
    if rgb is None:
        sheet = np.where(find_boundaries(at_size, mode="inner"), 0, 255).astype(np.uint8)
        return np.repeat(sheet[..., None], 3, axis=-1)
    return ss.overlay(np.asarray(Image.fromarray(rgb).resize(size, Image.Resampling.BICUBIC)), at_size, start_label=0)


def tinted(labels: Labels, image: NDArray[Any]) -> NDArray[np.uint8]:
    """Return each label in a gray of its own, in the order of their mean intensities; negative ones in white."""
    values = image if image.ndim == 2 else image.mean(axis=-1)
    names = np.unique(labels[labels >= 0])
    order = names[np.argsort([values[labels == name].mean() for name in names])]
    shades = np.zeros(names.max() + 2, np.uint8)
    shades[order], shades[-1] = np.linspace(40, 225, len(names)), 255
    return np.repeat(shades[labels][..., None], 3, axis=-1)


def visible(image: NDArray[Any]) -> NDArray[np.uint8]:
    """Return colors as they are, and other images stretched, the first three bands as red, green and blue."""
    if image.dtype == np.uint8 and image.ndim == 3:
        return image
    bands = image[..., :3] if image.ndim == 3 else np.repeat(image[..., None], 3, axis=-1)
    low, high = np.percentile(bands, (0.5, 99.5))
    return np.rint(255 * np.clip((bands - low) / (high - low), 0, 1)).astype(np.uint8)


def colored(labels: Labels, truth: Labels) -> NDArray[np.uint8]:
    """Return each label in the color of the true kind that it shares most pixels with."""
    shared = np.zeros((int(labels.max()) + 1, int(truth.max()) + 1))
    np.add.at(shared, (labels, truth), 1)
    return label_colors(shared.shape[1])[shared.argmax(axis=1)[labels]]


def draw(rows: list[list[Panel]], name: str, side: float, quality: int = 85) -> None:
    """Draw rows of panels with titles as one picture, a panel `side` inches wide."""
    shapes = [row[0][1].shape for row in rows]
    heights = [side * shape[0] / shape[1] + 0.3 for shape in shapes]
    figure = Figure(figsize=(side * len(rows[0]), sum(heights)), layout="constrained")
    grid = figure.subplots(len(rows), len(rows[0]), squeeze=False, height_ratios=heights)
    for axes, (title, panel) in zip(grid.flat, [panel for row in rows for panel in row], strict=True):
        axes.imshow(panel)
        axes.set_title(title, fontsize=8)
        axes.set_xticks([])
        axes.set_yticks([])
    figure.savefig(FOLDER / f"{name}.jpg", dpi=110, pil_kwargs={"quality": quality})
    print(f"{FOLDER / name}.jpg, {(FOLDER / f'{name}.jpg').stat().st_size // 1000} kB")


# --- the pictures ---


def microscopy() -> None:
    """Nuclei that touch: the recipe and the default call."""
    image, truth, _ = training_nuclei(SHOWN)
    theirs, seg, rgb = otsu_watershed(image), segmented(image), visible(image)
    print(f"  {len(np.unique(truth)) - 1} nuclei, {seg.read_as}, taken for {seg.taken_for}")
    panels = [
        ("nuclei", rgb),
        (f"Otsu + watershed: {theirs.max()}, {scored('F1', theirs, truth)}", lines(rgb, theirs)),
        (f"spinseg: {seg.n_clusters - 1}, {scored('F1', seg.labels, truth)}", lines(rgb, seg.labels)),
    ]
    print(*(f"  {title}" for title, _ in panels[1:]), sep="\n")
    draw([panels], "microscopy", 3.4)


def rasters() -> None:
    """Six bands with speckle: felzenszwalb and the default call for fields, k-means and `classes` for crops."""
    for looks in (30.0, 3.0):
        fields, crops = images.six_bands(BANDS_SEED, looks)
        raster = geotiff(fields.image)
        seg, kinds = ss.segment(raster, rng=0), ss.segment(raster, "classes", rng=0)
        finer = ss.segment(raster, detail=0.9, rng=0)
        theirs, clusters = recipes.bands_felzenszwalb(fields), recipes.k_means(crops)
        rgb = visible(fields.image)
        rows: list[list[Panel]] = [
            [
                ("three of six bands", rgb),
                (f"felzenszwalb, {scored('ARI', theirs, fields.truth)}", lines(rgb, theirs)),
                (f"spinseg, {scored('ARI', seg.labels, fields.truth)}", lines(rgb, seg.labels)),
            ],
            [
                ("crops, as rendered", colored(crops.truth, crops.truth)),
                (f"k-means of 8, {scored('ARI', clusters, crops.truth)}", colored(clusters, crops.truth)),
                (f'"classes", {scored("ARI", kinds.labels, crops.truth)}', colored(kinds.labels, crops.truth)),
            ],
        ]
        print(
            f"  speckle of variance 1/{looks:g}: {fields.truth.max() + 1} fields, {seg.n_clusters} found. {seg.warning}"
        )
        print(*(f"  {title}" for row in rows for title, _ in row[1:]), sep="\n")
        again = [scored("ARI", ss.segment(raster, rng=rng).labels, fields.truth) for rng in (1, 2)]
        print(f"  spinseg, two other random seeds: {again}")
        pieces, larger = (ss.segment(raster, "classes", regions=True, min_region=least, rng=0) for least in (1, 4))
        for name, each in (("detail .9", finer), ("regions of classes", pieces), ("min_region=4", larger)):
            print(f"  {name}: {scored('ARI', each.labels, fields.truth)}, {each.n_clusters} found")
    print(f"  {seg.read_as}; a corner: {seg.to_geojson()['features'][0]['geometry']['coordinates'][0][0]}")
    draw(rows, "rasters", 3.4)


def geotiff(image: NDArray[Any]) -> Path:
    """Return the path of a GeoTIFF of 16 bits, in pixels of 10 m in UTM zone 33."""
    path = Path(tempfile.mkdtemp()) / "fields.tif"
    keys = (1, 1, 0, 3, 1024, 0, 1, 1, 1025, 0, 1, 1, 3072, 0, 1, 32633)
    tags = [(33550, "d", 3, (10.0, 10.0, 0.0), True), (33922, "d", 6, (0, 0, 0, 500_000.0, 5_400_000.0, 0), True)]
    bands = np.moveaxis(np.rint(3000 * image).astype(np.uint16), -1, 0)
    tifffile.imwrite(
        path, bands, planarconfig="separate", photometric="minisblack", extratags=[*tags, (34735, "H", 16, keys, True)]
    )
    return path


def medical() -> None:
    """A slice of a phantom and a retina: a recipe and spinseg; and scores on a brain, which is not drawn."""
    volume, retina = phantom(), data.retina()[::3, ::3]
    middle = len(volume.image) // 2
    row: list[Panel] = [
        ("slice of a phantom", visible(volume.image[middle])),
        ("tissues, as rendered", tinted(volume.truth[middle], volume.image[middle])),
    ]
    for name, labels in tissues(volume).items():
        title = f"{name}\n{len(np.unique(labels)) - 1} found, {scored('ARI', labels, volume.truth)}"
        print("  " + title.replace("\n", ": "))
        row.append((title, tinted(labels[middle], volume.image[middle])))
    kinds, seg = segmented(retina, "classes"), segmented(retina)
    thresholds = recipes.multi_otsu(Sample(retina.mean(axis=-1) / 255, kinds.labels))
    second = [
        ("retina", retina),
        ("multi-Otsu of 3", tinted(thresholds, retina)),
        (f'"classes": {kinds.n_clusters} found', tinted(kinds.labels, retina)),
        (f"default call: {seg.n_clusters} found", lines(retina, seg.labels)),
    ]
    draw([row, second], "medical", 2.7)
    if (data_root() / "extra" / "mni152_brain").is_dir():
        brain_scores()


def tissues(sample: Sample) -> dict[str, Labels]:
    """Return the tissues inside the mask by each method; -1 outside."""
    labels = segmented(sample.image, "classes", mask=sample.mask).labels
    return {"Gaussian mixture of 3": recipes.mixture(sample), "classes": np.where(labels > 0, labels, -1)}


def phantom() -> Sample:
    """Return a rendered head: white matter, a folded ribbon of gray matter, and fluid; 6 % noise, and uneven light."""
    shape = (40, 110, 110)
    rng = np.random.default_rng(PHANTOM_SEED)
    radius = np.sqrt(sum(np.linspace(-1.1, 1.1, n).reshape(np.roll((-1, 1, 1), i)) ** 2 for i, n in enumerate(shape)))
    depth = radius + 0.06 * scenes.smooth_noise(shape, 3.5, rng)
    tissue = np.digitize(-depth, (-0.92, -0.74, -0.2)) % 3  # fluid, gray, white, and fluid in the middle
    image = np.array([0.25, 0.55, 0.8])[tissue] * scenes.light(shape[1:], 0.4, rng)
    inside = radius < 1
    image = np.maximum(image + rng.normal(0, 0.06, shape), 0) * inside
    return Sample(image, np.where(inside, tissue, -1), inside)


def brain_scores() -> None:
    """Print the scores of tissues in every second voxel of the ICBM 152 brain, with noise and uneven light."""
    from studies.questions.volumes import brain  # which needs extras

    t1, inside, tissue = (each[::2, ::2, ::2] for each in brain())
    for noise, bias in ((0.0, 0.0), (0.05, 0.2), (0.05, 0.4), (0.09, 0.2)):
        rng = np.random.default_rng(0)
        field = (1 + bias / 2) * scenes.light(t1.shape[:2], np.log((1 + bias / 2) / (1 - bias / 2)), rng)[..., None]
        image = np.maximum(t1 * field + rng.normal(0, noise, t1.shape), 0) * inside
        sample = Sample(image, np.where(inside, tissue, -1), inside)
        for name, labels in tissues(sample).items():
            facts = f"{len(np.unique(labels)) - 1} found, {scored('ARI', labels, sample.truth)}"
            print(f"  brain, noise {noise:.0%}, bias {bias:.0%}, {name}: {facts}", flush=True)


def materials() -> None:
    """Gravel: the recipe and the default call; and the scores of phases."""
    image = data.gravel()[:256, :256]
    seg = segmented(image)
    theirs = recipes.bright_basins(Sample(image / 255, image))
    rgb = seg.picture.rgb
    panels = [
        ("gravel", rgb),
        (f"h-maxima watershed: {theirs.max() + 1}", lines(rgb, theirs)),
        (f"spinseg: {seg.n_clusters}", lines(rgb, seg.labels)),
    ]
    draw([panels], "materials", 3.4)
    for noise in (0.05, 0.12):
        sample = partial(images.three_phases, noise=noise)
        three("phases", f"noise {noise}", sample, "ARI", recipes.multi_otsu, "classes")
    three("stones", "rendered", images.stones, "F1", recipes.bright_basins)


def three(
    what: str, how: str, sample: Callable[[int], Sample], score: str, recipe: Callable[[Sample], Labels], *preset: str
) -> None:
    """Print the scores of spinseg and of a recipe on three rendered images."""
    for seed in MATERIAL_SEEDS:
        image, truth, _ = each = sample(seed)
        seg = ss.segment(image, *preset, rng=0)
        ours, theirs = (scored(score, labels, truth) for labels in (seg.labels, recipe(each)))
        print(f"  {what}, {how}: spinseg {ours}, found {seg.n_clusters}; recipe {theirs}", flush=True)


def fields() -> None:
    """Twelve images with the preset for photographs, and with the default call."""
    rows: list[list[Panel]] = []
    for place, (name, sample, score, drawn) in enumerate(twelve()):
        print(name)
        panels = []
        for when, preset in (("before", ["photo"]), ("after", [])):
            seg = segmented(sample.image, *preset)
            rgb = visible(sample.image) if drawn else None
            facts = ", ".join(filter(None, [when, scored(score, seg.labels, sample.truth)]))
            print(f"  {facts}, regions: {seg.n_clusters}, taken for {seg.taken_for}")
            panels.append((f"{place + 1}. {name}\n{facts}", lines(rgb, seg.labels, 270)))
        if place % 2:
            rows[-1] += panels
        else:
            rows.append(panels)
    draw(rows, "fields", 2.5, quality=68)


PICTURES: dict[str, Callable[[], None]] = {
    picture.__name__: picture for picture in (microscopy, rasters, medical, materials, fields)
}


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # that chains do not agree, say: the verdict is printed
    for wanted in sys.argv[1:] or PICTURES:
        print(wanted)
        PICTURES[wanted]()
