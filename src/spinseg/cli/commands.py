"""`spinseg info`, `large` and `app`; and the options, exit codes and error lines that all commands share."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from spinseg._advice import Advice, Setting
from spinseg._errors import TaskFailure, is_expected
from spinseg._run.atomic import print_line, print_warning, printable
from spinseg._validation import invalid

WRONG_INPUT, BUG, INTERRUPTED = 2, 70, 130  # 70 is EX_SOFTWARE of sysexits.h
LARGE_FOLDER = Path("spinseg-large")


def _axis(text: str) -> int | str | None:
    """The axis of channels that an option names."""
    if text in ("auto", "none"):
        return None if text == "none" else text
    try:
        return int(text)
    except ValueError:
        invalid("channel_axis", "be auto, none or the number of an axis", text)


def _channels(text: str | None) -> tuple[int, ...] | str | None:
    """The channels that an option lists; other text as it is, which is refused later."""
    try:
        return None if text is None else tuple(map(int, text.split(",")))
    except ValueError:
        return text


ChannelAxis = Annotated[
    str,
    typer.Option(
        metavar="auto|none|AXIS",
        callback=_axis,
        help="Axis of the channels, in the order of the file, counted from 0; none for gray images and volumes.",
    ),
]
ChannelKind = Annotated[
    str,
    typer.Option(
        metavar="auto|color|measured",
        help="What three channels are: red, green and blue, or measured, as by a microscope or a satellite.",
    ),
]
IntensityRange = Annotated[
    tuple[float, float] | None,
    typer.Option(metavar="LOW HIGH", help="Black and white levels, instead of those inferred."),
]
Outlines = Annotated[
    str | None,
    typer.Option(
        metavar="CHANNELS",
        callback=_channels,
        help="Channels whose outlines count, such as 0 or 0,2, counted from 0; by default all.",
    ),
]
OneEach = Annotated[
    str | None,
    typer.Option(
        metavar="CHANNELS",
        callback=_channels,
        help="Channels with one bright blob for each object, such as a nucleus: no region holds two.",
    ),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Random seed; the same seed gives the same result.")]
Jobs = Annotated[int | None, typer.Option(help="Tasks at a time, one processor each; by default all processors.")]
Dask = Annotated[
    str | None,
    typer.Option(help="Address of a Dask scheduler. Its workers must see the files under the same absolute paths."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print errors only.")]


def print_error(line: str, name: str = "", *, bug: bool = False) -> None:
    """Print a line to standard error; an argument `name` that it is about, by its flag if that was given."""
    flag = flag_of(name)
    if flag in (word.partition("=")[0] for word in sys.argv):
        line = line.replace(f"{name} must ", f"{flag} must ", 1)
    hint = " (run it with --debug to see the traceback)" if bug else ""
    print_warning(f"{line}{hint}")


def flag_of(name: str) -> str:
    """The flag of an option."""
    return f"--{name.replace('_', '-')}"


def with_flags(advice: str | None) -> str:
    """Advice with options of the command in place of Python: --detail 0.9 for detail=0.9."""

    def write(setting: Setting) -> str:
        value = setting.value
        words = [f"{end:g}" for end in value] if isinstance(value, tuple) else ["none" if value is None else f"{value}"]
        return " ".join([flag_of(setting.name), *(words if value is not ... else [])])

    return advice.written(write) if isinstance(advice, Advice) else advice or ""


def print_doubt(source: str, read_as: str, otherwise: str | None) -> None:
    """Say how a file was read, and what to give if that is wrong, where it is in doubt."""
    if otherwise:
        print_line(f"{printable(source)} was read as {read_as}; {with_flags(otherwise)}")


def info(
    images: Annotated[list[str], typer.Argument(help="Files, or folders of them, as for `spinseg segment`.")],
    channel_axis: ChannelAxis = "auto",
    channel_kind: ChannelKind = "auto",
    intensity_range: IntensityRange = None,
    as_json: Json = False,
) -> None:
    """Say how files are read.

    This includes the pixels, channels, number type and intensities, and how to read the files differently.
    """
    from spinseg.image.io import read_picture
    from spinseg.segmentation.batch import listed

    rows = list[dict[str, Any]]()
    how: Any = {"channel_axis": channel_axis, "channel_kind": channel_kind, "intensity_range": intensity_range}
    for path in listed(images):
        try:
            reading = read_picture(path, **how).reading
            assert reading is not None
        except Exception as error:
            if not is_expected(error):
                raise
            failure = TaskFailure.from_exception(error)
            place = "" if printable(path) in failure.why else f"{printable(path)}: "
            print_error(place + failure.why, failure.name)
            rows.append({"source": path, "error": failure.why})
        else:
            rows.append({"source": path, "error": None, **reading.to_json()})
            if not as_json:
                print("; ".join([f"{printable(path)}: {reading}", *filter(None, [with_flags(reading.otherwise)])]))
    if as_json:
        print(json.dumps({"images": rows}))
    if any(row["error"] for row in rows):
        raise SystemExit(WRONG_INPUT)


def large(
    image: Annotated[
        Path, typer.Argument(help="Zarr or OME-Zarr folder, TIFF file, or any image that fits in memory.")
    ],
    out: Annotated[Path, typer.Option(help="Folder for the results, and for what resuming needs.")] = LARGE_FOLDER,
    n_sites: Annotated[
        int | None, typer.Option(help="About how many superpixels; by default one per 190 pixels, up to 200000.")
    ] = None,
    preset: Annotated[str, typer.Option(help="auto, photo or measured.")] = "auto",
    detail: Annotated[
        float | None, typer.Option(help="Level of detail, from 0 (coarse) to 1 (fine); finished tiles have them all.")
    ] = None,
    sweeps: Annotated[int | None, typer.Option(help="Sweeps per chain; by default until chains converge.")] = None,
    chains: Annotated[int | None, typer.Option(help="Number of chains, 2 by default.")] = None,
    channel_axis: ChannelAxis = "auto",
    channel_kind: ChannelKind = "auto",
    intensity_range: IntensityRange = None,
    geojson: Annotated[bool, typer.Option("--geojson", help="Write regions.geojson, the regions as polygons.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Write regions.csv, the table of regions.")] = False,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="Write boundary_probability.tif, the numbers of the map.")
    ] = False,
    tile: Annotated[int | None, typer.Option(help="Pixels along each side of a tile, without its margin.")] = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    dask: Dask = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Segment one image that may be larger than memory.

    The same command after an interruption resumes where it stopped; no tile that was finished is done again.
    """
    from spinseg.segmentation.large.segment_large import OPTIONAL_FILES, segment_large

    how: Any = {"channel_axis": channel_axis, "channel_kind": channel_kind, "intensity_range": intensity_range}
    how |= {name: value for name, value in (("n_sites", n_sites), ("detail", detail)) if value is not None}
    how |= {"sweeps": sweeps, "chains": chains, "tile": tile, "rng": seed, "jobs": jobs, "dask": dask}
    wanted = zip(OPTIONAL_FILES, (geojson, csv, probabilities), strict=True)
    how["also"] = [name for name, is_wanted in wanted if is_wanted]
    found = segment_large(image, out, preset, **how, progress=not quiet)
    if not quiet:
        print_doubt(str(image), str(found.reading), found.reading.otherwise)
    if as_json:
        print((out / "result.json").read_text(encoding="utf-8"))
    elif not quiet:
        print(f"{found.n_regions} regions of {found.graph.n_sites} sites")
        overview, labels = ((out / name).resolve() for name in ("overview.png", "labels.tif"))
        print(f"Look at {overview}; the labels are in {labels}, and in labels.zarr beside it")


def app(
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Port to listen at; any free one by default.")
    ] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the address only.")] = False,
) -> None:
    """Open the web app.

    Drop an image, move sliders, and watch the chains work.
    """
    from spinseg.app.server import serve

    serve(port, open_browser=not no_browser)
