"""The folder of the datasets."""

import os
from pathlib import Path


def data_root() -> Path:
    """Return the folder named by SPINSEG_DATA, by default ../shared/data beside the repository."""
    return Path(os.environ.get("SPINSEG_DATA", Path(__file__).parents[2] / "shared" / "data"))
