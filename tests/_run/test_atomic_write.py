"""`atomic_write` leaves the whole new file or the old one, whatever happens meanwhile."""

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

from spinseg._run.atomic import atomic_write


def refusal(call, *args, kind=ValueError):
    """Return the one line of an error."""
    with pytest.raises(kind) as caught:
        call(*args)
    text = str(caught.value)
    assert "\n" not in text and " must " in text and "; received " in text
    return text


@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt, SystemExit, OSError])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(failure, tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("old")
    seen = []

    def write(file):
        file.write(b"half")
        file.flush()
        seen.extend(entry.name for entry in tmp_path.iterdir())
        raise failure

    with pytest.raises(failure):
        atomic_write(path, write)
    assert len(seen) == 2 and all(name == "out.txt" or name.startswith(".") for name in seen)
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_a_killed_process_leaves_the_old_file(tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("old")
    script = (
        "import os, signal, sys\n"
        "from spinseg._run.atomic import atomic_write\n"
        "def write(file):\n"
        "    file.write(b'half'); file.flush(); os.kill(os.getpid(), signal.SIGKILL)\n"
        "atomic_write(sys.argv[1], write)\n"
    )
    run = subprocess.run([sys.executable, "-c", script, str(path)], check=False)
    assert run.returncode == -signal.SIGKILL and path.read_text() == "old"


def test_a_full_disk_is_one_line_that_names_the_file(tmp_path):
    def write(file):
        raise OSError(28, "No space left on device")

    text = refusal(atomic_write, tmp_path / "out.tif", write, kind=OSError)
    assert text == f"{tmp_path / 'out.tif'} must be a file that can be written; received No space left on device"


def test_places_that_are_no_files_are_refused(tmp_path):
    assert "received 'a folder'" in refusal(atomic_write, tmp_path, lambda file: None)
    os.mkfifo(tmp_path / "pipe")
    assert "received 'a pipe or a device'" in refusal(atomic_write, tmp_path / "pipe", lambda file: None)
    refusal(atomic_write, tmp_path / "none" / "x", lambda file: None, kind=FileNotFoundError)


def test_what_is_written_can_be_read_by_others_and_links_stay(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there" / "file")
    before = os.umask(0o022)
    try:
        atomic_write(tmp_path / "link", lambda file: file.write(b"new"))
        atomic_write(tmp_path / ("n" * 255), lambda file: np.savez(file, a=np.eye(3)))  # a name as long as it may be
    finally:
        os.umask(before)
    assert (tmp_path / "link").is_symlink() and (tmp_path / "there" / "file").read_bytes() == b"new"
    assert (tmp_path / "there" / "file").stat().st_mode & 0o777 == 0o644
    with np.load(tmp_path / ("n" * 255)) as arrays:
        np.testing.assert_array_equal(arrays["a"], np.eye(3))


def test_threads_that_write_the_same_name_never_mix(tmp_path):
    path = tmp_path / "out"
    path.write_bytes(b"a" * 3000)
    errors = []

    def work(letter):
        def write(file):
            for _ in range(3):
                file.write(letter * 1000)
                file.flush()

        try:
            for _ in range(100):
                atomic_write(path, write)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(letter,)) for letter in (b"a", b"b")]
    for thread in threads:
        thread.start()
    seen = set()
    while any(thread.is_alive() for thread in threads):
        seen.add(path.read_bytes())
    assert not errors and seen <= {b"a" * 3000, b"b" * 3000}
    assert list(tmp_path.iterdir()) == [path]
