"""Train the small network that tells photographs from measured images, on one GPU, in a minute.

    python -m studies.training.train_kind_net training_data training_data/weights

It sees a thumbnail of the image. A photograph is one of BSDS300 train, also in gray; a measured image is one of nuclei
(BBBC038) or a rendered scene. Images i with i % 5 = 0 are kept aside and judged; then a network learns from all.
"""

import argparse
import io
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import nn

from studies.scenes import in_three_channels
from studies.training.train_boundary_net import recolored

SIDE = 128  # pixels of a thumbnail
WIDTHS = (24, 40, 64, 96)
N_FOLDS = 5
SHARES = 0.3, 1.0  # of the sides of an image, that a part of it has


class KindNet(nn.Module):
    """Four convolutions, each at half the size of the one before, and the mean of the last over the thumbnail."""

    def __init__(self) -> None:
        super().__init__()
        before = (12, *WIDTHS[:-1])
        self.layers = nn.ModuleList(nn.Conv2d(n_in, n, 3, padding=1) for n_in, n in zip(before, WIDTHS, strict=True))
        self.head = nn.Linear(WIDTHS[-1], 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the log-odds that the image is a photograph, (n,)."""
        x = F.pixel_unshuffle(x - 0.5, 2)
        for level, layer in enumerate(self.layers):
            x = F.relu(layer(x if level == 0 else F.max_pool2d(x, 2)))
        return self.head(x.mean(dim=(2, 3)))[:, 0]


def thumbnail(rgb: np.ndarray) -> np.ndarray:
    """Return an image of 8 bits in SIDE x SIDE pixels, whatever its shape."""
    return np.asarray(Image.fromarray(rgb).resize((SIDE, SIDE), Image.Resampling.BOX))


def views(rgb: np.ndarray, n: int, seed: int) -> list[np.ndarray]:
    """Return thumbnails of an image and of random parts of it."""
    rng, found = np.random.default_rng([11, seed]), [thumbnail(rgb)]
    for _ in range(n - 1):
        spans = []
        for length in rgb.shape[:2]:
            size = max(min(length, 64), int(length * rng.uniform(*SHARES)))
            start = int(rng.integers(length - size + 1))
            spans.append(slice(start, start + size))
        found.append(thumbnail(np.ascontiguousarray(rgb[tuple(spans)])))
    return found


def examples(folder: Path) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return thumbnails, which of them are photographs, and the number of the image of each."""
    stored, packed = np.load(folder / "photographs.npz"), np.load(folder / "nuclei.npz")
    photographs = []
    for i in range(sum(name.startswith("jpeg") for name in stored.files)):
        rgb = np.asarray(Image.open(io.BytesIO(stored[f"jpeg{i}"].tobytes())).convert("RGB"))
        photographs.append(np.rint(255 * in_three_channels(rgb.astype(np.float64))).astype(np.uint8))
    nuclei = [packed[f"image{i}"] for i in range(sum(name.startswith("image") for name in packed.files))]
    sources = ((photographs, 12, 1), (nuclei, 14, 0), (np.load(folder / "scenes.npz")["images"], 4, 0))
    found = [
        (part, kind, i)
        for images, n_views, kind in sources
        for i, image in enumerate(images)
        for part in views(image, n_views, i)
    ]
    thumbnails, kinds, numbers = zip(*found, strict=True)
    return torch.from_numpy(np.stack(thumbnails)).permute(0, 3, 1, 2), torch.tensor(kinds), torch.tensor(numbers)


def train(x: torch.Tensor, y: torch.Tensor, steps: int) -> KindNet:
    """Return a network that has learned from these thumbnails."""
    torch.manual_seed(0)
    net = KindNet().cuda()
    optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, steps, pct_start=0.1)
    groups = [torch.nonzero(y == kind)[:, 0] for kind in (0, 1)]
    for _ in range(steps):
        chosen = torch.cat([group[torch.randint(len(group), (96,), device="cuda")] for group in groups])
        images = x[chosen].float() / 255
        images = images.flip(-1) if torch.rand(()) < 0.5 else images
        images = images.transpose(-1, -2) if torch.rand(()) < 0.5 else images
        gray = torch.rand((len(chosen), 1, 1, 1), device="cuda") < 0.4
        images = recolored(torch.where(gray, images.mean(dim=1, keepdim=True), images), 0.6)
        loss = F.binary_cross_entropy_with_logits(net(images), y[chosen].float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return net


@torch.no_grad()
def judge(net: KindNet, x: torch.Tensor, y: torch.Tensor) -> str:
    """Return how many thumbnails are taken for what they are, in color and in gray, and the least log-odds for it."""
    lines = []
    for name, images in (("as is", x.float() / 255), ("gray", (x.float() / 255).mean(1, keepdim=True).expand_as(x))):
        odds = torch.cat([net(part) for part in images.split(256)])
        right = (odds > 0) == (y > 0)
        signed = torch.where(y > 0, odds, -odds)
        for kind in (1, 0):
            low = torch.quantile(signed[y == kind], torch.tensor([0.0, 0.01, 0.05], device="cuda")).tolist()
            share = right[y == kind].float().mean()
            lines.append(f"{name} {'photographs' if kind else 'others'} {share:.4f} {[round(q, 1) for q in low]}")
    return "; ".join(lines)


def main() -> None:
    """Train without a fold, judge, train on all and store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--steps", type=int, default=8000)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    x, y, number = (array.cuda() for array in examples(options.data))
    kept_aside = number % N_FOLDS == 0
    is_whole = torch.cat([number[:1] * 0 + 1, (number[1:] != number[:-1]).long()]) > 0  # views of an image follow it
    net = train(x[~kept_aside], y[~kept_aside], options.steps)
    print("kept aside:", judge(net, x[kept_aside], y[kept_aside]), flush=True)
    whole = kept_aside & is_whole
    print("whole images kept aside:", judge(net, x[whole], y[whole]), flush=True)
    net = train(x, y, options.steps)
    print("all:", judge(net, x, y), flush=True)
    stored = {name: array.detach().cpu().numpy().astype(np.float16) for name, array in net.state_dict().items()}
    np.savez(options.out / "kind.npz", **stored)


if __name__ == "__main__":
    main()
