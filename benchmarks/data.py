"""Where the pictures with ground truth are."""

import os
from pathlib import Path


def data_root() -> Path:
    """The folder named by SPINSEG_DATA, else ../shared/data beside the repository."""
    return Path(os.environ.get("SPINSEG_DATA", Path(__file__).parents[2] / "shared" / "data"))
