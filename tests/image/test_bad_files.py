"""Files that cannot be read are rejected in one line; names, threads and permissions."""

import os
import struct
import tempfile
import threading
import warnings
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import tifffile
from image_files import DEEP, RGB, jpeg, npy, png, refusal, saved, tiff, webp
from PIL import Image

from spinseg._run.atomic import atomic_write
from spinseg.image.io import MAX_PIXELS, read_image, read_mask, write_png
from spinseg.image.stored import check_size

LIMIT = f"at most {MAX_PIXELS} pixels"


@pytest.mark.parametrize(
    "content, says",
    [
        (b"", "'an empty file'"),
        ("Grüße aus Köln ".encode() * 100, "'text'"),
        (b"BMW is a car", "'text'"),
        (bytes(1000), r"b'\x00"),
        (b"\0\0\0\x18ftypheic" + bytes(90), "ftypheic"),
        (b"RIFF\x10\0\0\0WAVEfmt " + bytes(90), "WebP"),
        (png(30000, 30000, 8, 2), f"{LIMIT}; received (30000, 30000)"),
        (png(11000, 11000, 8, 2), "whole PNG"),  # of a size for which Image.open would warn
        (b"GIF89a" + struct.pack("<HH", 30000, 30000) + b"\0\0\0,\0\0\0\0\1\0\1\0\0\2\0;", LIMIT),
        (b"BM" + struct.pack("<IIIIiiHHIIiiII", 0, 0, 54, 40, 30000, 30000, 1, 24, 0, 0, 0, 0, 0, 0), LIMIT),
        (webp(13000, 13000), "WebP"),
        (jpeg(30000, 30000), f"{LIMIT}; received (30000, 30000)"),
        (tiff(30000, 30000), f"{LIMIT}; received (30000, 30000)"),
        (tiff(0, 5), "at least one pixel"),
        (tiff(50, 50), "whole TIFF"),
        (b"II*\0\x08\0\0\0", "whole TIFF"),
        (b"MM\0*" + b"\xff" * 90, "whole TIFF"),
        (npy((2**40, 2**40)), LIMIT),
        (npy((50, 50)), "whole NPY"),
        (npy((2, 2), "<c8") + bytes(32), "hold numbers; received 'complex64'"),
        (npy((4,)) + bytes(4), "one picture or volume, with or without channels; received (4,)"),
        (b"\x93NUMPY\x01", "whole NPY"),
    ],
)
def test_what_is_no_picture_gets_one_line_and_no_warning_print_or_log(content, says, tmp_path, capfd, caplog):
    path = tmp_path / "some photo.jpg"
    path.write_bytes(content)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        text = refusal(read_image, path)
    assert text.startswith(f"{path} must ") and says in text
    assert not warned and capfd.readouterr() == ("", "") and not caplog.records


def test_a_pickle_is_not_run(tmp_path):
    (tmp_path / "x.npy").write_bytes(npy((1, 1), "|O") + f"cos\nmkdir\n(S'{tmp_path / 'made'}'\ntR.".encode())
    assert "must be a whole NPY file" in refusal(read_image, tmp_path / "x.npy")
    assert not (tmp_path / "made").exists()
    np.load(tmp_path / "x.npy", allow_pickle=True)
    assert (tmp_path / "made").exists()  # so the pickle works


def test_giants_are_refused_before_they_are_read(tmp_path):
    (tmp_path / "big.npy").write_bytes(npy((2**20, 2**20)))
    os.truncate(tmp_path / "big.npy", 128 + 2**40)  # a hole: no disk is used
    assert f"at most {MAX_PIXELS} pixels" in refusal(read_image, tmp_path / "big.npy")
    check_size("x", (2**13, 2**14, 4), MAX_PIXELS)
    refusal(check_size, "x", (2**13, 2**14, 5), MAX_PIXELS)


Image.init()
FORMS = ("PNG", "JPEG", "JPEG2000", "GIF", "WEBP", "BMP", "TIFF")  # Pillow may be built without one
STACK = np.stack([DEEP] * 5)
WHOLE = {form: partial(saved, image=RGB, form=form) for form in FORMS if Image.SAVE.get(form)}
for kind, options in {"plain": {}, "unnamed": {"metadata": None}, "big": {"bigtiff": True, "compression": 8}}.items():
    WHOLE[f"{kind} stack"] = partial(tifffile.imwrite, data=STACK, photometric="minisblack", **options)


@pytest.mark.parametrize("kind", WHOLE)
def test_a_truncated_file_is_refused(kind, tmp_path):
    path = tmp_path / "cut"
    WHOLE[kind](path)
    assert read_image(path).shape == (STACK if "stack" in kind else RGB).shape
    content = path.read_bytes()
    for kept in (0.1, 0.3, 0.6, 0.95):
        path.write_bytes(content[: int(kept * len(content))])
        assert "must be a whole " in refusal(read_image, path)


def test_missing_files_folders_and_pipes_are_refused(tmp_path):
    text = refusal(read_image, tmp_path / "none.jpg", kind=FileNotFoundError)
    assert text == f"cannot read {tmp_path / 'none.jpg'}: no such file or directory"
    assert "received 'a folder'" in refusal(read_mask, str(tmp_path))
    os.mkfifo(tmp_path / "pipe")
    assert "received 'a pipe or a device'" in refusal(read_image, tmp_path / "pipe")
    refusal(read_image, tmp_path / ("x" * 300), kind=OSError)
    assert "a?b" in refusal(read_image, tmp_path / "a\nb", kind=FileNotFoundError)


@contextmanager
def nobody():
    """Without the rights of root, for whom every file can be read."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


def test_without_permission_there_is_one_line():
    with tempfile.TemporaryDirectory() as folder:
        path = saved(Path(folder) / "secret.png", RGB, "PNG")
        path.chmod(0)
        Path(folder).chmod(0o555)
        with nobody():
            text = refusal(read_image, path, kind=PermissionError)
            assert text == f"cannot read {path}: permission denied"
            text = refusal(atomic_write, path, lambda file: None, kind=PermissionError)
            assert text == f"cannot write {path}: permission denied"
        Path(folder).chmod(0o755)


def test_names_may_have_spaces_and_any_letters(tmp_path):
    for name in ("a photo.png", "Füße 写真.png", os.fsdecode(b"caf\xe9.png")):
        write_png(tmp_path / name, RGB)
        np.testing.assert_array_equal(read_image(str(tmp_path / name)), RGB)
        (tmp_path / name).write_bytes(b"text")
        refusal(read_image, tmp_path / name).encode()  # can be printed


def test_pillow_is_left_as_it_was_and_threads_do_not_mind(tmp_path):
    before = Image.MAX_IMAGE_PIXELS
    paths = [saved(tmp_path / form, RGB, form) for form in ("PNG", "BMP", "TIFF")] * 20
    (tmp_path / "bomb").write_bytes(png(30000, 30000, 8, 2))
    found = []
    threads = [threading.Thread(target=lambda path=path: found.append(read_image(path))) for path in paths]
    for thread in threads:
        thread.start()
        refusal(read_image, tmp_path / "bomb")
    for thread in threads:
        thread.join()
    assert len(found) == 60 and all(np.array_equal(one, RGB) for one in found)
    assert before == Image.MAX_IMAGE_PIXELS
