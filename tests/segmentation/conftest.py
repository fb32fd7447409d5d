"""The picture that most tests of segmentations use, and its segmentation."""

import numpy as np
import pytest
from PIL import Image

import spinseg as ss
from spinseg.pictures import PICTURES


@pytest.fixture(scope="session")
def picture():
    with Image.open(PICTURES["coffee"].path) as image:
        return np.asarray(image)[100:220, 200:360]


@pytest.fixture(scope="session")
def found(picture):
    return ss.segment(picture, rng=3)
