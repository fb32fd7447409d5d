"""`spinseg info`: how files would be read, without segmenting them."""

import json
from typing import Annotated, Any

import typer

from spinseg.cli.errors import WRONG_INPUT, print_error
from spinseg.cli.options import ChannelAxis, IntensityRange, Json, channel_axis_of


def info(
    images: Annotated[list[str], typer.Argument(help="Pictures, as for `spinseg segment`.")],
    channel_axis: ChannelAxis = "auto",
    intensity_range: IntensityRange = None,
    as_json: Json = False,
) -> None:
    """Say how files are read, and how to read them otherwise.

    That is: pixels, channels, number type and intensities.
    """
    from spinseg._errors import error_line, is_expected
    from spinseg._run.atomic import printable
    from spinseg.image.io import read_picture

    axis, failed = channel_axis_of(channel_axis), False
    rows: list[dict[str, Any]] = []
    for path in images:
        try:
            reading = read_picture(path, channel_axis=axis, intensity_range=intensity_range).reading
            assert reading is not None
        except Exception as error:
            if not is_expected(error):
                raise
            failed, line = True, error_line(error)
            print_error(line if printable(path) in line else f"{printable(path)}: {line}")
            rows.append({"source": path, "error": line})
            continue
        rows.append({"source": path, "error": None, **reading.to_json()})
        if not as_json:
            print(f"{printable(path)}: {reading}" + (f"; {reading.otherwise}" if reading.otherwise else ""))
    if as_json:
        print(json.dumps({"images": rows}))
    if failed:
        raise SystemExit(WRONG_INPUT)
