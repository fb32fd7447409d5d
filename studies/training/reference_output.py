"""Store what PyTorch computes with a trained boundary network, for the test of the exported one.

    python -m studies.training.reference_output training_data/weights/foldall.npz tests/image/network_reference.npz

The picture is a part of the bundled cat, continued by zeros to multiples of 32.
"""

import sys
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image

from spinseg.pictures import PICTURES
from studies.training.export_onnx import network_of

ROWS, COLUMNS = slice(20, 135), slice(150, 330)


def main() -> None:
    """Write the log-odds of each pixel, in 16 bits."""
    net, _ = network_of(Path(sys.argv[1]))
    picture = np.asarray(Image.open(PICTURES["cat"].path).convert("RGB"))[ROWS, COLUMNS]
    height, width = picture.shape[:2]
    x = torch.from_numpy(np.moveaxis(picture, -1, 0).astype(np.float32) / 255)[None]
    log_odds = net.eval()(F.pad(x, (0, -width % 32, 0, -height % 32)))[0][0, :, :height, :width].numpy()
    np.savez_compressed(sys.argv[2], picture=picture, log_odds=log_odds.astype(np.float16))


if __name__ == "__main__":
    with torch.no_grad():
        main()
