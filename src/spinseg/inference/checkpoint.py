"""Chains in one file, whole or not at all, from which sampling can go on bit by bit."""

import hashlib
import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinseg._errors import MissingExtra
from spinseg._validation import invalid
from spinseg.inference.chain import Arrays
from spinseg.inference.kernels.state import Target
from spinseg.parallel.atomic import atomic_write

FORMAT = "spinseg chains 2"


def fingerprint(target: Target, how: Mapping[str, Any]) -> str:
    """A short text that differs where the posterior, or how it is sampled, differs."""
    digest = hashlib.blake2b(json.dumps(how, sort_keys=True).encode(), digest_size=16)
    for array in target._asdict().values():
        digest.update(repr((array.shape, array.dtype.str)).encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def write_chains(path: str | os.PathLike[str], about: Mapping[str, Any], chains: list[Arrays]) -> None:
    """Write facts about a run and the arrays of its chains: NetCDF where the name ends in .nc, else NumPy's format."""
    arrays = {f"chain{c}/{name}": array for c, chain in enumerate(chains) for name, array in chain.items()}
    text = json.dumps({"format": FORMAT, "n_chains": len(chains), **about})
    if Path(path).suffix == ".nc":
        _write_netcdf(path, text, arrays)
        return
    content: dict[str, Any] = {"about": np.array(text), **arrays}
    atomic_write(path, lambda file: np.savez(file, **content))


def read_chains(path: str | os.PathLike[str]) -> tuple[dict[str, Any], list[Arrays]]:
    """What `write_chains` wrote; a damaged or foreign file is refused."""
    try:
        text, arrays = _read_netcdf(path) if Path(path).suffix == ".nc" else _read_npz(path)
        about = json.loads(text)
        known = about["format"] == FORMAT
        chains: list[Arrays] = [{} for _ in range(int(about["n_chains"]))]
        for name, array in arrays.items():
            place, _, own = name.partition("/")
            chains[int(place.removeprefix("chain"))][own] = array
    except FileNotFoundError:
        invalid("path", "be a file", os.fspath(path))
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        EOFError,
        IndexError,
        zipfile.BadZipFile,
        zlib.error,
    ):
        known = False
    if not known:
        invalid("path", "be a whole file of chains that spinseg saved", os.fspath(path))
    return about, chains


def _read_npz(path: str | os.PathLike[str]) -> tuple[str, Arrays]:
    """The text and the arrays of a NumPy file."""
    with open(path, "rb") as file, np.load(file) as stored:  # NumPy leaves a damaged file open
        arrays = {name: stored[name] for name in stored.files}
    return str(arrays.pop("about")), arrays


def _write_netcdf(path: str | os.PathLike[str], text: str, arrays: Mapping[str, NDArray[Any]]) -> None:
    """The same as NetCDF, one variable an array."""
    xarray = _xarray()
    variables = {
        name.replace("/", "__"): ([f"{name.replace('/', '__')}_{i}" for i in range(array.ndim)], array)
        for name, array in arrays.items()
    }
    content = xarray.Dataset(variables, attrs={"about": text}).to_netcdf(engine="h5netcdf")
    atomic_write(path, lambda file: file.write(content))


def _read_netcdf(path: str | os.PathLike[str]) -> tuple[str, Arrays]:
    """The text and the arrays of a NetCDF file."""
    with _xarray().open_dataset(path, engine="h5netcdf", decode_cf=False) as stored:
        arrays = {str(name).replace("__", "/", 1): value.values for name, value in stored.variables.items()}
        return str(stored.attrs["about"]), arrays


def _xarray() -> Any:
    """xarray, with what it needs for NetCDF."""
    try:
        import h5netcdf  # noqa: F401
        import h5py  # noqa: F401
        import xarray
    except ImportError:
        raise MissingExtra(
            'NetCDF needs xarray, h5netcdf and h5py: pip install "spinseg[diagnostics]"; or use .npz'
        ) from None
    return xarray
