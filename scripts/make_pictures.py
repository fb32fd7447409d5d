"""Draw the pictures of the documentation: python scripts/make_pictures.py [NAME...]

Each name of `PICTURES` draws one, by default all of them, and prints the figures that stand beside it. Images are drawn
only where they are in the public domain: photographs and samples of scikit-image, a training image of BBBC038 (CC0),
and rendered ones; for others there are outlines alone. Nuclei, photographs of BSDS300 and a brain are under
SPINSEG_DATA or ../shared/data. Three need more: `gallery` the results.csv that `python -m studies evaluate bsds300
--methods spinseg` wrote in this folder, `web_app` Playwright and Debian's chromium, `napari` the extra [napari] and a
display (`xvfb-run`).
"""

import functools
import io
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import tifffile
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from skimage import data
from skimage.draw import line
from skimage.segmentation import find_boundaries

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import spinseg as ss  # noqa: E402
from spinseg.image.render import OUTLINE_COLORS, graded_boundaries, label_colors, outlined  # noqa: E402
from spinseg.pictures import PICTURES as BUNDLED  # noqa: E402
from spinseg.segmentation.report.pictures import spread_draws  # noqa: E402
from studies import scenes  # noqa: E402
from studies.evaluation import datasets, metrics  # noqa: E402
from studies.evaluation.baselines.objects import otsu_watershed  # noqa: E402
from studies.evaluation.benchmark import labels_path  # noqa: E402
from studies.evaluation.objects import object_scores  # noqa: E402
from studies.evaluation.results import read_rows  # noqa: E402
from studies.questions import field_images as images  # noqa: E402
from studies.questions import fields as recipes  # noqa: E402
from studies.questions.field_images import Sample  # noqa: E402
from studies.questions.outlines import segmented as with_outlines  # noqa: E402
from studies.questions.outlines import stay, twelve_megapixels  # noqa: E402

IMAGES, STATIC = ROOT / "docs" / "images", ROOT / "docs" / "_static"
ORIGINALS = {"coffee": data.coffee, "cat": data.chelsea, "astronaut": data.astronaut}
WIDTH, GAP, STRIP = 400, 6, 36
DETAILS = (0, 0.25, 0.5, 0.75, 1)
# Of the level of detail in motion: the side of a frame, its slider, frames, their time, and the level of the still one.
SIDE, SLIDER, STEPS, MILLISECONDS, STILL = 360, 56, 21, 220, 0.65
WINDOW_OF_OUTLINES = slice(1370, 1770), slice(2050, 2550)  # the spoon and the shadow of the saucer
WINDOW_OF_SEEDS = slice(10, 400), slice(70, 490)
# The corners of the stroke of each seed, as row and column.
SCRIBBLES: list[dict[int, list[tuple[int, int]]]] = [
    {1: [(395, 85), (310, 90), (372, 125), (395, 200), (395, 400), (380, 420), (345, 480)]},
    {
        1: [(82, 416), (140, 405), (205, 387), (240, 375), (290, 365)],
        2: [(110, 230), (45, 290), (90, 370), (150, 290), (190, 225), (199, 290), (188, 365), (222, 280), (270, 228)],
    },
]
NUCLEI = "4d4ebfcae437"  # the training image of BBBC038 that is drawn
# Random seeds of rendered images, other than those of `python -m studies fields`.
BANDS_SEED, MEMBRANE_SEED, PHANTOM_SEED, MATERIAL_SEEDS = 11, 21, 31, (41, 42, 43)
# Themes, images, and a place to click, of the web app; and seconds for which messages cover a part of the image.
VIEWS = (("light", "#example=astronaut", None), ("dark", "#example=coffee", (420, 265)))
NOTE_SECONDS = 9
NAPARI_SIZE, NAPARI_PLACE = (1240, 700), (180, 300)
Labels = NDArray[np.integer[Any]]
Pixels = NDArray[np.uint8]
Panel = tuple[str, Pixels]
LANCZOS = Image.Resampling.LANCZOS


def save(picture: Pixels | Image.Image, path: Path, **how: Any) -> None:
    """Save a picture, and print its path and size."""
    (Image.fromarray(picture) if isinstance(picture, np.ndarray) else picture).save(path, **how)
    print(f"{path}, {path.stat().st_size // 1000} kB")


def row_of(panels: list[Pixels], width: int | None = None, gap: int = GAP) -> Pixels:
    """Return pictures in a row, each of the given width, or as it is."""
    height = panels[0].shape[0] if width is None else round(width * panels[0].shape[0] / panels[0].shape[1])
    space, parts = np.full((height, gap, 3), 255, np.uint8), []
    for panel in panels:
        at_size = panel if width is None else np.asarray(Image.fromarray(panel).resize((width, height), LANCZOS))
        parts += [space, at_size]
    return np.hstack(parts[1:])


def column_of(rows: list[Pixels]) -> Pixels:
    """Return rows, one below the other."""
    gap = np.full((GAP, rows[0].shape[1], 3), 255, np.uint8)
    return np.vstack([part for row in rows for part in (gap, row)][1:])


def lines(rgb: Pixels | None, labels: Labels, width: int = 370) -> Pixels:
    """Return an image, or an empty sheet, with the outlines of labels, at a width at which lines are visible."""
    size = width, round(width * labels.shape[0] / labels.shape[1])
    at_size = np.asarray(Image.fromarray(labels.astype(np.int32)).resize(size, Image.Resampling.NEAREST))
    if rgb is None:
        sheet = np.where(find_boundaries(at_size, mode="inner"), 0, 255).astype(np.uint8)
        return np.repeat(sheet[..., None], 3, axis=-1)
    return ss.overlay(np.asarray(Image.fromarray(rgb).resize(size, LANCZOS)), at_size, start_label=0)


def draw(rows: list[list[Panel]], path: Path, side: float, **how: Any) -> None:
    """Draw rows of panels with titles as one picture, a panel `side` inches wide."""
    heights = [max(side * panel.shape[0] / panel.shape[1] for _, panel in row) + 0.3 for row in rows]
    figure = Figure(figsize=(side * len(rows[0]), sum(heights)), layout="constrained")
    grid = figure.subplots(len(rows), len(rows[0]), squeeze=False, height_ratios=heights)
    for axes, (title, panel) in zip(grid.flat, [panel for row in rows for panel in row], strict=True):
        axes.imshow(panel, cmap="gray", vmin=0, vmax=255)
        axes.set_title(title, fontsize=8)
        axes.set_xticks([])
        axes.set_yticks([])
    figure.savefig(path, dpi=110, pil_kwargs=how)
    print(f"{path}, {path.stat().st_size // 1000} kB")


def shown(panels: list[Panel]) -> list[Panel]:
    """Return panels, and print the titles of all but the first."""
    print(*("  " + title.replace("\n", ", ") for title, _ in panels[1:]), sep="\n", flush=True)
    return panels


# --- bundled photographs ---


def bundled() -> None:
    """Write src/spinseg/pictures/*.jpg from samples of scikit-image: by R. Michetti, S. van der Walt (CC0) and NASA."""
    for name, original in ORIGINALS.items():
        save(original(), BUNDLED[name].path, quality=90)


@functools.cache
def photograph(name: str) -> ss.Segmentation:
    """Return the segmentation of a bundled photograph by the default call, and print its verdict."""
    seg = ss.segment(BUNDLED[name].path, rng=0)
    print(f"  {name}: {seg.n_clusters} regions on {seg.model.graph.n_sites} sites. {seg.verdict}", flush=True)
    return seg


def of_photographs(path: Path, row: Callable[[ss.Segmentation], Pixels], titles: list[str] | tuple[()] = ()) -> None:
    """Save a row for each bundled photograph, below the titles of its columns."""
    drawn = column_of([row(photograph(name)) for name in ORIGINALS])
    if titles:
        strip = Image.new("RGB", (drawn.shape[1], STRIP), "white")
        for i, title in enumerate(titles):
            place = ((i + 0.5) * strip.width / len(titles), STRIP / 2)
            ImageDraw.Draw(strip).text(place, title, "black", ImageFont.load_default(22), anchor="mm")
        drawn = np.vstack([np.asarray(strip), drawn])
    save(drawn, path, quality=78, subsampling=0)


def segmentations() -> None:
    """Photographs with outlines of their regions, mean colors, and boundary probabilities."""

    def row(seg: ss.Segmentation) -> Pixels:
        rgb = seg.picture.rgb
        graded = graded_boundaries(rgb, seg.boundary_probability)
        return row_of([lines(rgb, seg.labels, WIDTH), ss.mean_colors(seg.picture, seg.labels), graded], WIDTH)

    titles = ["outlines of the regions", "mean colors", "boundary probability"]
    of_photographs(IMAGES / "segmentations.jpg", row, titles)


def detail() -> None:
    """Photographs in the mean colors of their regions, from coarse to fine."""

    def row(seg: ss.Segmentation) -> Pixels:
        each = [seg.at(level) for level in DETAILS]
        print(f"  {[at.n_clusters for at in each]} regions at detail {DETAILS}")
        return row_of([ss.mean_colors(at.picture, at.labels) for at in each], WIDTH * 3 // 5)

    of_photographs(IMAGES / "detail.jpg", row, [f"detail {level:g}" for level in DETAILS])


def answers() -> None:
    """Ten draws of each photograph, from coarse to fine, in two rows."""

    def row(seg: ss.Segmentation) -> Pixels:
        drawn = [seg.chains.labels[place] for place in spread_draws(seg.chains)]
        print(f"  {[int(labels.max()) + 1 for labels in drawn]} regions in draws")
        panels = [lines(seg.picture.rgb, labels[seg.sites], WIDTH * 3 // 5) for labels in drawn]
        return column_of([row_of(panels[:5]), row_of(panels[5:])])

    of_photographs(IMAGES / "answers.jpg", row)


def front() -> None:
    """What `seg.plot()` of the three lines on the front page draws."""
    photograph("coffee").plot()
    how = {"quality": 82, "subsampling": 0}  # thin lines keep their color
    plt.savefig(IMAGES / "front.jpg", dpi=125, bbox_inches="tight", pil_kwargs=how)
    plt.close()


def levels() -> None:
    """The level of detail from 0 to 1 and back, and a still picture for readers who switched off motion."""
    seg, path = photograph("astronaut"), STATIC / "levels.webp"
    up = [frame(seg, float(level)) for level in np.linspace(0, 1, STEPS)]
    rest = [*up[1:], *up[-2:0:-1]]
    save(up[0], path, save_all=True, append_images=rest, duration=MILLISECONDS, loop=0, quality=45, method=6)
    save(frame(seg, STILL), STATIC / "levels.jpg", quality=85, subsampling=0)


def frame(seg: ss.Segmentation, level: float) -> Image.Image:
    """Return the regions at a level of detail, as outlines and in their mean colors, over a slider."""
    at = seg.at(level)
    drawn = Image.new("RGB", (2 * SIDE, SIDE + SLIDER), "white")
    for i, panel in enumerate((outlined(at.picture.rgb, at.labels), ss.mean_colors(at.picture, at.labels))):
        drawn.paste(Image.fromarray(panel).resize((SIDE, SIDE), LANCZOS), (i * SIDE, 0))
    pen, y, left, right = ImageDraw.Draw(drawn), SIDE + SLIDER // 2, 285, 2 * SIDE - 170
    font = ImageFont.load_default(24)
    x = left + level * (right - left)
    pen.text((12, y), f"Level of detail {level:.2f}", "#222832", font, anchor="lm")
    pen.line((left, y, right, y), "#c0c5cc", 5)
    pen.line((left, y, x, y), "#2260bd", 5)
    pen.ellipse((x - 9, y - 9, x + 9, y + 9), "#2260bd")
    pen.text((2 * SIDE - 12, y), f"{at.n_clusters} regions", "#222832", font, anchor="rm")
    return drawn


def seeds() -> None:
    """A segmentation, scribbles over it, and the segmentation that keeps them.

    In the first row one scribble joins a shadow with the table; in the second two make a cup and a spoon of parts.
    """
    before = photograph("coffee")
    image, (rows, columns) = before.picture.rgb, WINDOW_OF_SEEDS
    figure = Figure(figsize=(11.0, 3.6 * len(SCRIBBLES)), layout="constrained")
    for row, strokes in zip(figure.subplots(len(SCRIBBLES), 3), SCRIBBLES, strict=True):
        pixels = {
            seed: np.concatenate([np.stack(line(*first, *second), axis=1) for first, second in pairwise(corners)])
            for seed, corners in strokes.items()
        }
        after = ss.segment(image, seeds=pixels, rng=0)
        titles = ("without seeds", "two scribbles" if len(strokes) > 1 else "one scribble", "with seeds")
        for axes, seg, title in zip(row, (before, before, after), titles, strict=True):
            gray = np.repeat(image.mean(axis=-1, keepdims=True), 3, axis=-1)
            colors = label_colors(int(seg.labels.max()))[seg.labels - 1]
            mixed = np.rint(0.55 * gray + 0.45 * colors).astype(np.uint8)
            axes.imshow(ss.overlay(mixed, seg.labels)[WINDOW_OF_SEEDS])
            axes.set_title(title, fontsize=10)
            axes.set_axis_off()
            for seed, corners in strokes.items() if title == titles[1] else ():
                y, x = np.transpose(corners)
                color = "white" if seed == 1 else "black"
                axes.plot(x - columns.start, y - rows.start, color=color, linewidth=3)
    figure.savefig(IMAGES / "seeds.jpg", dpi=100, pil_kwargs={"quality": 88})


def outlines() -> None:
    """A part of an image of 12 megapixels, pixel for pixel, without refined outlines and with them."""
    image = twelve_megapixels()
    seg, panels = ss.segment(image, rng=0), []
    for labels in (with_outlines(image, stay)[0], seg.labels):
        panels.append(seg.picture.rgb[WINDOW_OF_OUTLINES].copy())
        panels[-1][find_boundaries(labels[WINDOW_OF_OUTLINES])] = OUTLINE_COLORS[2][:3]
    save(row_of(panels, gap=8), IMAGES / "outlines.jpg", quality=85)


def gallery() -> None:
    """Outlines of twelve test photographs at evenly spaced ranks of the Rand index.

    gallery.jpg, beside results.csv, has them over the photographs, beside the outlines of the closest annotator. It is
    not part of the repository, since the photographs are for research use only.
    """
    results = Path("results.csv")
    rows = [row for row in read_rows(results) if row.method == "spinseg" and row.scores is not None]
    rows.sort(key=lambda row: -row.scores.probabilistic_rand_index)
    photographs = {example.name: example for example in datasets.bsds(datasets.data_root(), "test")}
    alone: list[Panel] = []
    pairs: list[Panel] = []
    for rank in [int((i + 0.5) * len(rows) / 12) for i in range(12)]:
        row = rows[rank]
        rand, information = row.scores.probabilistic_rand_index, row.scores.variation_of_information
        title = f"{rank + 1}: {row.image}\nRand {rand:.2f}, VoI {information:.2f}"
        title += f", covering {row.scores.segmentation_covering:.2f}"
        labels = datasets.read_labels(labels_path(results, row))[0]
        image, annotations = photographs[row.image].image(), photographs[row.image].annotations()
        closest = max(annotations, key=lambda truth: metrics.probabilistic_rand_index(labels, [truth]))
        alone.append((title, np.where(find_boundaries(labels), 40, 255).astype(np.uint8)))
        pairs += [(title, ss.overlay(image, labels, start_label=0))]
        pairs += [("the closest annotator", ss.overlay(image, closest, start_label=0))]
        print("  " + title.replace("\n", ", "))
    for panels, path in ((alone, IMAGES / "gallery.png"), (pairs, results.with_name("gallery.jpg"))):
        draw([panels[i : i + 4] for i in range(0, len(panels), 4)], path, 3.2)


# --- other fields than photography ---


class Example(NamedTuple):
    """One of twelve images: its name, the sample, the score against its truth (or none), and whether it is drawn."""

    name: str
    sample: Sample
    score: str = ""
    drawn: bool = True


def training_nuclei(name: str) -> Sample:
    """Return a training image of BBBC038 with its nuclei."""
    example = next(each for each in datasets.nuclei(datasets.data_root(), "train") if each.name == name)
    return Sample(example.image(), example.annotations()[0])


def twelve() -> list[Example]:
    """Return two images of each of six fields, chosen by their look before they were segmented."""
    walls = scenes.render("membranes", images.SHAPE, np.random.default_rng(MEMBRANE_SEED))
    cases = [
        Example("nuclei, fluorescence", training_nuclei(NUCLEI), "F1"),
        Example("nuclei, fluorescence", training_nuclei("8f6e49e474eb"), "F1", drawn=False),
        Example("nuclei, histology", training_nuclei("65c8527c16a0"), "F1", drawn=False),
        Example("nuclei, histology", training_nuclei("ed5be4b63e95"), "F1", drawn=False),
        Example("plant cells, maize", images.plant_cells(0), "F1", drawn=False),
        Example("cell walls, rendered", Sample(walls.image.squeeze(), walls.labels + 1), "F1"),
    ]
    for amount, looks in (("low", 30.0), ("high", 3.0)):
        name = f"six bands, {amount} speckle, rendered"
        cases.append(Example(name, images.six_bands(BANDS_SEED, looks)[0], "ARI"))
    others = {
        "gravel": data.gravel()[:256, :256],
        "brick": data.brick()[:256, :256],
        "retina": data.retina()[::3, ::3],
        "microaneurysms": data.microaneurysms(),
    }
    return cases + [Example(name, Sample(image, np.full(image.shape[:2], -1))) for name, image in others.items()]


def scored(score: str, labels: Labels, truth: Labels) -> str:
    """Return the score of a label image with its name; empty for none."""
    if not score:
        return ""
    value = object_scores(labels, truth).f_50 if score == "F1" else metrics.adjusted_rand_index(labels, truth)
    return f"{score} {value:.2f}"


def segmented(image: NDArray[Any], *preset: str, **options: Any) -> ss.Segmentation:
    """Return the segmentation of an image, without a preset that of the default call, and print its verdict."""
    seg = ss.segment(image, *preset, rng=0, **options)
    print(f"  {' '.join(preset) or 'default'}: {seg.n_clusters} found. {seg.verdict}", flush=True)
    return seg


def tinted(labels: Labels, image: NDArray[Any]) -> Pixels:
    """Return each label in a gray of its own, in the order of their mean intensities; negative ones in white."""
    values = image if image.ndim == 2 else image.mean(axis=-1)
    names = np.unique(labels[labels >= 0])
    order = names[np.argsort([values[labels == name].mean() for name in names])]
    shades = np.zeros(names.max() + 2, np.uint8)
    shades[order], shades[-1] = np.linspace(40, 225, len(names)), 255
    return np.repeat(shades[labels][..., None], 3, axis=-1)


def visible(image: NDArray[Any]) -> Pixels:
    """Return colors as they are, and other images stretched, the first three bands as red, green and blue."""
    if image.dtype == np.uint8 and image.ndim == 3:
        return image
    bands = image[..., :3] if image.ndim == 3 else np.repeat(image[..., None], 3, axis=-1)
    low, high = np.percentile(bands, (0.5, 99.5))
    return np.rint(255 * np.clip((bands - low) / (high - low), 0, 1)).astype(np.uint8)


def colored(labels: Labels, truth: Labels) -> Pixels:
    """Return each label in the color of the true kind that it shares most pixels with."""
    shared = np.zeros((int(labels.max()) + 1, int(truth.max()) + 1))
    np.add.at(shared, (labels, truth), 1)
    return label_colors(shared.shape[1])[shared.argmax(axis=1)[labels]]


def microscopy() -> None:
    """Nuclei that touch: the recipe and the default call."""
    image, truth, _ = training_nuclei(NUCLEI)
    theirs, seg, rgb = otsu_watershed(image), segmented(image), visible(image)
    print(f"  {len(np.unique(truth)) - 1} nuclei, {seg.read_as}, taken for {seg.taken_for}")
    panels: list[Panel] = [
        ("nuclei", rgb),
        (f"Otsu + watershed: {theirs.max()}, {scored('F1', theirs, truth)}", lines(rgb, theirs)),
        (f"spinseg: {seg.n_clusters - 1}, {scored('F1', seg.labels, truth)}", lines(rgb, seg.labels)),
    ]
    draw([shown(panels)], IMAGES / "microscopy.jpg", 3.4, quality=85)


def rasters() -> None:
    """Six bands with speckle: felzenszwalb and the default call for fields, k-means and `classes` for crops."""
    for looks in (30.0, 3.0):
        fields, crops = images.six_bands(BANDS_SEED, looks)
        raster, rgb = geotiff(fields.image), visible(fields.image)
        seg, kinds = ss.segment(raster, rng=0), ss.segment(raster, "classes", rng=0)
        theirs, clusters = recipes.bands_felzenszwalb(fields), recipes.k_means(crops)
        print(f"  variance 1/{looks:g}: {fields.truth.max() + 1} fields, {seg.n_clusters} found. {seg.warning}")
        above: list[Panel] = [
            ("three of six bands", rgb),
            (f"felzenszwalb, {scored('ARI', theirs, fields.truth)}", lines(rgb, theirs)),
            (f"spinseg, {scored('ARI', seg.labels, fields.truth)}", lines(rgb, seg.labels)),
        ]
        below: list[Panel] = [
            ("crops, as rendered", colored(crops.truth, crops.truth)),
            (f"k-means of 8, {scored('ARI', clusters, crops.truth)}", colored(clusters, crops.truth)),
            (f'"classes", {scored("ARI", kinds.labels, crops.truth)}', colored(kinds.labels, crops.truth)),
        ]
        rows = [shown(above), shown(below)]
        others: dict[str, dict[str, Any]] = {"seed 1": {"rng": 1}, "seed 2": {"rng": 2}, "detail .9": {"detail": 0.9}}
        of_classes = {"preset": "classes", "regions": True}
        others |= {f"classes, min_region={least}": of_classes | {"min_region": least} for least in (1, 4)}
        for name, options in others.items():
            each = ss.segment(raster, **{"rng": 0} | options)
            print(f"  {name}: {scored('ARI', each.labels, fields.truth)}, {each.n_clusters} found", flush=True)
    print(f"  {seg.read_as}; a corner: {seg.to_geojson()['features'][0]['geometry']['coordinates'][0][0]}")
    draw(rows, IMAGES / "rasters.jpg", 3.4, quality=85)


def geotiff(image: NDArray[Any]) -> Path:
    """Return the path of a GeoTIFF of 16 bits, in pixels of 10 m in UTM zone 33."""
    path = Path(tempfile.mkdtemp()) / "fields.tif"
    keys = (1, 1, 0, 3, 1024, 0, 1, 1, 1025, 0, 1, 1, 3072, 0, 1, 32633)
    tags = [(33550, "d", 3, (10.0, 10.0, 0.0), True), (33922, "d", 6, (0, 0, 0, 500_000.0, 5_400_000.0, 0), True)]
    bands = np.moveaxis(np.rint(3000 * image).astype(np.uint16), -1, 0)
    how: dict[str, Any] = {"planarconfig": "separate", "photometric": "minisblack"}
    tifffile.imwrite(path, bands, **how, extratags=[*tags, (34735, "H", 16, keys, True)])
    return path


def medical() -> None:
    """A slice of a phantom and a retina: a recipe and spinseg; and scores on a brain, which is not drawn."""
    volume, retina = phantom(), data.retina()[::3, ::3]
    middle = len(volume.image) // 2
    slices: list[Panel] = [
        ("slice of a phantom", visible(volume.image[middle])),
        ("tissues, as rendered", tinted(volume.truth[middle], volume.image[middle])),
    ]
    for name, labels in tissues(volume).items():
        title = f"{name}\n{len(np.unique(labels)) - 1} found, {scored('ARI', labels, volume.truth)}"
        slices.append((title, tinted(labels[middle], volume.image[middle])))
    kinds, seg = segmented(retina, "classes"), segmented(retina)
    thresholds = recipes.multi_otsu(Sample(retina.mean(axis=-1) / 255, kinds.labels))
    second: list[Panel] = [
        ("retina", retina),
        ("multi-Otsu of 3", tinted(thresholds, retina)),
        (f'"classes": {kinds.n_clusters} found', tinted(kinds.labels, retina)),
        (f"default call: {seg.n_clusters} found", lines(retina, seg.labels)),
    ]
    draw([shown(slices), second], IMAGES / "medical.jpg", 2.7, quality=85)
    if (datasets.data_root() / "extra" / "mni152_brain").is_dir():
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
    """Gravel: the recipe and the default call; and the scores of phases and stones."""
    image = data.gravel()[:256, :256]
    seg, theirs = segmented(image), recipes.bright_basins(Sample(image / 255, image))
    rgb = seg.picture.rgb
    panels: list[Panel] = [
        ("gravel", rgb),
        (f"h-maxima watershed: {theirs.max() + 1}", lines(rgb, theirs)),
        (f"spinseg: {seg.n_clusters}", lines(rgb, seg.labels)),
    ]
    draw([shown(panels)], IMAGES / "materials.jpg", 3.4, quality=85)
    cases: list[tuple[str, Callable[[int], Sample], str, Callable[[Sample], Labels], list[str]]] = [
        (
            f"phases, noise {noise}",
            functools.partial(images.three_phases, noise=noise),
            "ARI",
            recipes.multi_otsu,
            ["classes"],
        )
        for noise in (0.05, 0.12)
    ]
    for name, render, score, recipe, preset in [*cases, ("stones", images.stones, "F1", recipes.bright_basins, [])]:
        for sample in map(render, MATERIAL_SEEDS):
            each = ss.segment(sample.image, *preset, rng=0)
            ours, their = (scored(score, labels, sample.truth) for labels in (each.labels, recipe(sample)))
            print(f"  {name}: spinseg {ours}, found {each.n_clusters}; recipe {their}", flush=True)


def fields() -> None:
    """Twelve images with the preset for photographs, and with the default call."""
    panels: list[Panel] = []
    for place, (name, sample, score, drawn) in enumerate(twelve(), start=1):
        for when, preset in (("before", ["photo"]), ("after", [])):
            seg = segmented(sample.image, *preset)
            facts = ", ".join(filter(None, [when, scored(score, seg.labels, sample.truth)]))
            print(f"  {place}. {name}, {facts}, regions: {seg.n_clusters}, taken for {seg.taken_for}")
            rgb = visible(sample.image) if drawn else None
            panels.append((f"{place}. {name}\n{facts}", lines(rgb, seg.labels, 270)))
    draw([panels[i : i + 4] for i in range(0, len(panels), 4)], IMAGES / "fields.jpg", 2.5, quality=68)


# --- windows ---


def web_app() -> None:
    """The web app in Debian's chromium, light beside dark: when the chains have converged, and after a click."""
    from playwright.sync_api import sync_playwright

    from studies.speed.app import server

    shots = []
    with server() as (port, _), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for scheme, link, place in VIEWS:
            page = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme=scheme)  # type: ignore[arg-type]
            page.goto(f"http://127.0.0.1:{port}/{link}")
            page.wait_for_selector('body[data-enough="true"][data-state="paused"]', timeout=300_000)
            page.wait_for_timeout(NOTE_SECONDS * 1000)
            if place is not None:
                page.click("#canvas", position={"x": place[0], "y": place[1]})
                page.wait_for_selector("#legend", state="visible")
                page.wait_for_timeout(1000)
            shots.append(np.asarray(Image.open(io.BytesIO(page.screenshot())).convert("RGB")))
            page.close()
        browser.close()
    both = Image.fromarray(row_of(shots, gap=24))
    save(both.resize((both.width * 3 // 4, both.height * 3 // 4), LANCZOS), IMAGES / "web_app.jpg", quality=88)


def napari() -> None:
    """The panel in napari; without a graphics card, LIBGL_ALWAYS_SOFTWARE=1 draws the canvas in software."""
    import napari
    from qtpy.QtWidgets import QApplication

    from spinseg.napari_plugin.widget import SegmentationPanel

    def work_until(true: Callable[[], bool]) -> None:
        """Let Qt work until a condition holds, and then for a second more, in which the canvas is drawn."""
        until = None
        while until is None or time.monotonic() < until:
            QApplication.processEvents()
            time.sleep(0.01)
            if until is None and true():
                until = time.monotonic() + 1

    viewer = napari.Viewer()
    viewer.window.resize(*NAPARI_SIZE)
    viewer.open_sample("spinseg", "coffee")
    _, panel = viewer.window.add_plugin_dock_widget("spinseg", "Segmentation")
    assert isinstance(panel, SegmentationPanel)
    work_until(lambda: True)
    panel.start()
    work_until(lambda: panel.worker is None)
    shots = []
    for place in (None, NAPARI_PLACE):
        if place:
            panel.show_together(place)
        viewer.reset_view(margin=0.02)
        work_until(lambda: True)
        shots.append(viewer.screenshot(canvas_only=False, flash=False)[..., :3])
    both = Image.fromarray(row_of(shots, gap=24))
    save(both.resize((1800, both.height * 1800 // both.width), LANCZOS), IMAGES / "napari.jpg", quality=82)
    viewer.close()


OF_PHOTOGRAPHS = (bundled, segmentations, detail, answers, front, levels, seeds, outlines, gallery)
OF_FIELDS = (microscopy, rasters, medical, materials, fields)
PICTURES = {each.__name__: each for each in (*OF_PHOTOGRAPHS, *OF_FIELDS, web_app, napari)}


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # that chains do not agree, say: the verdict is printed
    if unknown := set(sys.argv[1:]) - set(PICTURES):
        sys.exit(f"no picture {', '.join(sorted(unknown))}: there are {', '.join(PICTURES)}")
    for wanted in sys.argv[1:] or PICTURES:
        print(wanted)
        PICTURES[wanted]()
