"""Every kind of file is read with its own pixels, channels and intensities, and docs/howto/files.md says so."""

from pathlib import Path

import numpy as np
import pytest
from kinds_of_files import KINDS, OPACITY, table

from spinseg.image.io import read_image, read_picture

DOCS = Path(__file__).parents[2] / "docs" / "howto" / "files.md"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.file)
def test_pixels_channels_and_intensities_are_those_of_the_file(kind, tmp_path):
    if kind.needs:
        pytest.importorskip(kind.needs, reason="an extra is not installed")
    kind.write(tmp_path / kind.file)
    stored = read_image(tmp_path / kind.file)
    np.testing.assert_array_equal(stored.reshape(kind.pixels.shape), kind.pixels, strict=True)
    picture = read_picture(tmp_path / kind.file)
    reading = picture.reading
    assert (*reading.shape, reading.n_channels) == kind.pixels.shape
    assert bool(reading.otherwise) == (kind.file in ("unnamed.tif", "first.tif"))  # short axes without a name
    np.testing.assert_allclose(reading.intensity_range, (kind.low, kind.high), rtol=1e-6)
    expected = np.rint(((kind.pixels.astype(np.float64) - kind.low) / (kind.high - kind.low)).clip(0, 1) * 65535)
    if reading.has_opacity:
        assert kind.name == "RGBA" and np.array_equal(picture.inside, OPACITY > 0)
        expected = np.where(OPACITY[..., None] > 0, expected[..., :3], 65535)
    assert np.array_equal(picture.codes, np.broadcast_to(expected, picture.codes.shape))


def test_the_table_in_the_documentation_is_what_is_read(tmp_path):
    for package in ("zarr", "nibabel"):
        pytest.importorskip(package, reason="an extra is not installed")
    text = DOCS.read_text(encoding="utf-8")
    assert table(tmp_path) in text and "python tests/image/kinds_of_files.py" in text


@pytest.mark.parametrize("given, shape, n_channels", [(0, (90, 120), 5), (None, (5, 90, 120), 1), (-3, (90, 120), 5)])
def test_a_given_axis_is_counted_in_the_order_of_the_file(given, shape, n_channels, tmp_path):
    """With and without names, and wherever the program itself would put the channels."""
    for kind in KINDS:
        if kind.file in ("five.tif", "five.ome.tif", "first.tif"):
            kind.write(tmp_path / kind.file)
            reading = read_picture(tmp_path / kind.file, channel_axis=given).reading
            assert (reading.shape, reading.n_channels) == (shape, n_channels) and reading.otherwise is None
