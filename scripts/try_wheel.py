"""Segment a bundled picture with an installed wheel, far from the sources: python scripts/try_wheel.py"""

import tempfile
from pathlib import Path

import numpy as np

import spinseg as ss
from spinseg.pictures import PICTURES

if __name__ == "__main__":
    seg = ss.segment(str(PICTURES["cat"].path), sweeps=20, rng=0)
    assert Path(ss.__file__).parent.parent.name == "site-packages", ss.__file__
    n_regions = int(seg.labels.max()) + 1
    assert 1 < n_regions < 1000 and np.isfinite(seg.chains.log_posterior).all()
    with tempfile.TemporaryDirectory() as folder:
        seg.save(folder, overwrite=True)
    print(f"{n_regions} regions")
