"""Store what PyTorch computes with the packaged boundary network, for the test of its NumPy implementation.

    python studies/training/reference_output.py tests/image/network_reference.npz

The picture is a part of the bundled cat, continued by zeros to multiples of 32.
"""

import sys
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image

PACKAGE = Path(__file__).parents[2] / "src" / "spinseg"
ROWS, COLUMNS = slice(20, 135), slice(150, 330)


def main() -> None:
    """Write the log-odds of each pixel, in 16 bits."""
    stored = np.load(PACKAGE / "image" / "data" / "photograph_network.npz")
    weights = {name: torch.from_numpy(stored[name].astype(np.float32)) for name in stored.files}

    def block(name: str, x: torch.Tensor) -> torch.Tensor:
        weight = weights[f"{name}.weight"]
        return F.conv2d(x, weight, weights[f"{name}.bias"], padding=weight.shape[-1] // 2)

    picture = np.asarray(Image.open(PACKAGE / "pictures" / "cat.jpg").convert("RGB"))[ROWS, COLUMNS]
    height, width = picture.shape[:2]
    x = torch.from_numpy(np.moveaxis(picture, -1, 0).astype(np.float32) / 255)[None]
    x, levels = F.pixel_unshuffle(F.pad(x, (0, -width % 32, 0, -height % 32)) - 0.5, 2), []
    for level in range(5):
        x = x if level == 0 else F.max_pool2d(x, 2)
        x = F.relu(block(f"down{level}1", F.relu(block(f"down{level}0", x))))
        levels.append(x)
    for level in range(3, -1, -1):
        below = F.interpolate(F.relu(block(f"lateral{level}", x)), scale_factor=2, mode="nearest")
        x = F.relu(block(f"up{level}", below + levels[level]))
    log_odds = F.pixel_shuffle(block("head", x), 2)[0, :, :height, :width].numpy()
    np.savez_compressed(sys.argv[1], picture=picture, log_odds=log_odds.astype(np.float16))


if __name__ == "__main__":
    with torch.no_grad():
        main()
