"""Pictures good and bad, for tests of the command."""

import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from spinseg.pictures import PICTURES


@pytest.fixture(scope="module")
def photo(tmp_path_factory):
    path = tmp_path_factory.mktemp("photos") / "a café.jpg"
    with Image.open(PICTURES["coffee"].path) as image:
        image.crop((150, 100, 270, 190)).save(path)
    return path


def header_of_a_bomb():
    """A PNG that claims 30,000 x 30,000 pixels and has none."""
    header = b"IHDR" + struct.pack(">IIBBBBB", 30_000, 30_000, 8, 2, 0, 0, 0)
    header = struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header))
    return b"\x89PNG\r\n\x1a\n" + header + b"\0\0\0\0IEND\xaeB`\x82"


@pytest.fixture(scope="module")
def album(tmp_path_factory, photo):
    """Pictures good and bad, by name: whether they can be segmented."""
    folder = tmp_path_factory.mktemp("album")
    with Image.open(photo) as image:
        image = image.convert("RGB")
    tiny = image.resize((40, 30))
    tiny.convert("CMYK").save(folder / "cmyk.jpg")
    tiny.convert("P").save(folder / "palette.png")
    tiny.save(folder / "moving.gif", save_all=True, append_images=[tiny.rotate(90)])
    exif = Image.Exif()
    exif[274] = 6
    tiny.save(folder / "turned.jpg", exif=exif)
    Image.new("RGB", (1, 1)).save(folder / "one.png")
    Image.new("RGB", (2, 2)).save(folder / "two.png")
    Image.new("RGB", (50, 40), "teal").save(folder / "constant.png")
    good = ["cmyk.jpg", "palette.png", "moving.gif", "turned.jpg", "one.png", "two.png", "constant.png"]
    (folder / "empty.jpg").write_bytes(b"")
    (folder / "cut.jpg").write_bytes(photo.read_bytes()[:1500])
    (folder / "text.jpg").write_text("this is no picture\n" * 9)
    (folder / "bomb.png").write_bytes(header_of_a_bomb())
    np.save(folder / "nan.npy", np.full((20, 20), np.nan))
    bad = ["empty.jpg", "cut.jpg", "text.jpg", "bomb.png", "nan.npy", "missing.jpg"]
    (folder / "folder").mkdir()
    return [str(folder / name) for name in good], [str(folder / name) for name in (*bad, "folder")]
