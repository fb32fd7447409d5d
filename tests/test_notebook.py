"""The notebook runs from top to bottom, and shows what it promises."""

import base64
import io
from pathlib import Path

import pytest
from PIL import Image

from effort import exhaustive

NOTEBOOK = Path(__file__).parents[1] / "examples" / "first_steps.ipynb"


@exhaustive
@pytest.mark.filterwarnings("default")  # those of Jupyter are not ours
def test_the_notebook_runs_and_shows_pictures():
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbclient.NotebookClient(notebook, timeout=None, kernel_name="python3").execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    shown = [output["data"] for output in outputs if "data" in output]
    pages = [data["text/html"] for data in shown if "text/html" in data]
    assert pages[0].count("<img") == 2 and "<script" not in pages[0]  # the segmentation
    assert "dataframe" in pages[1] and "labels" in pages[2]  # its regions, and the dataset
    pictures = [data["image/png"] for data in shown if "image/png" in data]
    assert len(pictures) == 3
    for picture in pictures:
        assert min(Image.open(io.BytesIO(base64.b64decode(picture))).size) > 100
    assert not [output for output in outputs if output["output_type"] in ("error", "stream")]


def test_the_notebook_is_stored_without_its_output():
    assert '"outputs": []' in NOTEBOOK.read_text() and "image/png" not in NOTEBOOK.read_text()
