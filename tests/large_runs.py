"""What the tests of images larger than memory share: the files of a run."""

from spinseg.segmentation.large.files import open_labels, open_picture

IMAGES = ("sites.zarr", "labels.zarr", "boundary_probability.zarr")


def open_array(*arguments, **keywords):
    """The Dask array of an image."""
    return open_picture(*arguments, **keywords).array


def pieces(folder):
    """Sites, labels and boundary probabilities that a run wrote."""
    return [open_labels(folder / name).compute() for name in IMAGES]


def times(folder):
    """When each tile of a run was written."""
    return {path.name: path.stat().st_mtime_ns for path in (folder / "tiles").iterdir()}


def contents(folder):
    """All files in a folder."""
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
