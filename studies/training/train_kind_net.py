"""Train the small network that tells photographs from measured images, on one GPU, in two minutes.

    python -m studies.training.train_kind_net training_data training_data/weights
    cp training_data/weights/kind.npz src/spinseg/image/data/kind_network.npz

It sees a thumbnail of the image. A photograph is one of BSDS300 train, also in gray; a measured image is one of nuclei
(BBBC038) or a rendered scene. Six networks learn from the same batches: five without the images i of a fold, i % 5,
and one from all, which is stored. The five judge the images that they have not seen as the package does, by the mean
over views. LEAST_LOG_ODDS of the package is the lowest threshold that 98 % of nuclei and 98 % of scenes stay below.
"""

import argparse
import io
import math
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import nn

from spinseg.image.boundary.kinds import SIDE, thumbnail, thumbnails
from studies.scenes import in_three_channels
from studies.training.train_boundary_net import N_FOLDS, Block, recolored

WIDTHS = (24, 40, 64, 96, 128)  # at 1/2, 1/4, .. of the thumbnail's size
DROPPED = 0.2  # share of the means over the thumbnail, in training
SOURCES = {"photographs": (40, 20), "nuclei": (40, 10), "scenes": (5, 10)}  # views of an image; of a fold in a batch
SHARES = 0.25, 1.0  # of the sides of an image, that a part of it has
JUDGED_SHARES, N_JUDGED_PARTS = (0.3, 0.6), 3
JUDGED_SCENES = 4  # each so many-th scene is judged
MEASURED_SHARE = 0.98  # of nuclei and of scenes, that must be recognized
QUANTILES = (0, 0.005, 0.01, 0.02, 0.05, 0.5)

Pixels = np.ndarray


class KindNet(nn.Module):
    """Convolutions, each at half the size of the one before, and the mean of the last over the thumbnail."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Block(n_in, n) for n_in, n in zip((12, *WIDTHS[:-1]), WIDTHS, strict=True))
        self.head = nn.Linear(WIDTHS[-1], 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the log-odds that the image is a photograph, (n,)."""
        x = F.pixel_unshuffle(x - 0.5, 2)
        for level, layer in enumerate(self.layers):
            x = layer(x if level == 0 else F.max_pool2d(x, 2))
        return self.head(F.dropout(x.mean(dim=(2, 3)), DROPPED, self.training))[:, 0]

    def stored(self) -> dict[str, np.ndarray]:
        """Return the convolutions by name, in 16 bits."""
        arrays = {"head.weight": self.head.weight, "head.bias": self.head.bias}
        for level, layer in enumerate(self.layers):
            arrays[f"layers.{level}.weight"], arrays[f"layers.{level}.bias"] = layer.folded()
        return {name: array.detach().float().cpu().numpy().astype(np.float16) for name, array in arrays.items()}


def stretched(image: Pixels) -> Pixels:
    """Return an image in three channels that fill the range of 8 bits, as the package shows it to the network."""
    return np.rint(255 * in_three_channels(np.atleast_3d(image).astype(np.float64))).astype(np.uint8)


def part(rgb: Pixels, shares: tuple[float, float], rng: np.random.Generator) -> Pixels:
    """Return a random part of an image."""
    spans = []
    for length in rgb.shape[:2]:
        size = max(min(length, 64), int(length * rng.uniform(*shares)))
        start = int(rng.integers(length - size + 1))
        spans.append(slice(start, start + size))
    return rgb[tuple(spans)]


def under_water(rgb: Pixels, rng: np.random.Generator) -> Pixels:
    """Return a photograph with little red, with haze that grows up or down, and out of focus."""
    cast = rng.uniform((0.1, 0.5, 0.6), (0.5, 1, 1))
    haze = np.linspace(rng.uniform(0, 0.5), rng.uniform(0.3, 0.8), len(rgb))[:: rng.choice([-1, 1]), None, None]
    seen = Image.fromarray(np.rint(cast * (rgb * (1 - haze) + 255 * rng.uniform(0.3, 0.8) * haze)).astype(np.uint8))
    small = [int(side / rng.uniform(1, 3)) for side in seen.size]
    return np.asarray(seen.resize(small, Image.Resampling.BOX).resize(seen.size, Image.Resampling.BILINEAR))


def views(task: tuple[str, int, Pixels]) -> tuple[Pixels, dict[str, Pixels]]:
    """Return thumbnails of an image and its parts to learn from, and of images to judge, in color and in gray."""
    source, i, rgb = task
    rng = np.random.default_rng([11, list(SOURCES).index(source), i])
    learned = [rgb, *(part(rgb, SHARES, rng) for _ in range(SOURCES[source][0] - 1))]
    judged: dict[str, list[Pixels]] = {}
    if source != "scenes" or i % JUDGED_SCENES == 0:
        judged = {source: [rgb], f"parts of {source}": [part(rgb, JUDGED_SHARES, rng) for _ in range(N_JUDGED_PARTS)]}
    if source == "photographs":
        judged["under water"] = [under_water(rgb, rng)]
    judged |= {f"{name}, gray": [image.mean(axis=-1) for image in images] for name, images in judged.items()}
    shown = {name: np.stack([thumbnails(stretched(image)) for image in images]) for name, images in judged.items()}
    return np.stack([thumbnail(view) for view in learned]), shown


def tasks(folder: Path) -> list[tuple[str, int, Pixels]]:
    """Return source, number and pixels of each image."""
    stored, packed = np.load(folder / "photographs.npz"), np.load(folder / "nuclei.npz")
    found = []
    for i in range(sum(name.startswith("jpeg") for name in stored.files)):
        rgb = np.asarray(Image.open(io.BytesIO(stored[f"jpeg{i}"].tobytes())).convert("RGB"))
        found.append(("photographs", i, stretched(rgb)))
    found += [("nuclei", i, packed[f"image{i}"]) for i in range(sum(n.startswith("image") for n in packed.files))]
    return found + [("scenes", i, image) for i, image in enumerate(np.load(folder / "scenes.npz")["images"])]


def varied(images: torch.Tensor) -> torch.Tensor:
    """Return thumbnails with other light, focus, hue, cast, haze, saturation and contrast, and some in gray."""
    n, device = len(images), images.device

    def uniform(low: float, high: float, channels: int = 1) -> torch.Tensor:
        return torch.empty((n, channels, 1, 1), device=device).uniform_(low, high)

    def changed(share: float, others: torch.Tensor) -> torch.Tensor:
        return torch.where(uniform(0, 1) < share, others, images)

    light = F.interpolate(torch.randn((n, 1, 4, 4), device=device), size=(SIDE, SIDE), mode="bilinear")
    images = changed(0.3, images * torch.exp(uniform(0, 0.5) * light))
    soft = images
    for _ in range(int(torch.randint(1, 7, ()))):
        soft = F.avg_pool2d(F.pad(soft, (1, 1, 1, 1), mode="reflect"), 3, 1)
    images = changed(0.3, soft)
    images = changed(0.3, turned(images, uniform(-math.pi, math.pi)[:, 0, 0, 0]))
    images = changed(0.3, images * torch.exp(uniform(-1.2, 0.2, 3)))
    haze = uniform(0, 0.8)
    images = changed(0.25, images * (1 - haze) + haze * uniform(0, 1, 3))
    gray = images.mean(dim=1, keepdim=True)
    images = changed(0.15, gray + 0.3 * (images - gray))
    images = changed(0.4, gray.expand_as(images))
    images = recolored(images.clamp(0, 1), 0.6)
    low, high = (torch.quantile(images.flatten(1)[:, ::13], q, dim=1)[:, None, None, None] for q in (0.005, 0.998))
    return changed(0.6, ((images - low) / (high - low).clamp(min=0.02)).clamp(0, 1))


def turned(images: torch.Tensor, angle: torch.Tensor) -> torch.Tensor:
    """Return images with the hue turned by an angle each."""
    cos, sin = torch.cos(angle), torch.sin(angle) / 3**0.5
    same, after, before = cos + (1 - cos) / 3, (1 - cos) / 3 - sin, (1 - cos) / 3 + sin
    rows = [same, after, before, before, same, after, after, before, same]
    return torch.einsum("nij,njhw->nihw", torch.stack(rows, dim=1).view(-1, 3, 3), images)


def train(groups: list[tuple[str, torch.Tensor]], x: torch.Tensor, options: argparse.Namespace) -> list[KindNet]:
    """Return networks that have learned without each fold, and one that has learned from all.

    `groups` has the rows of `x` of each source in each fold, fold by fold; a batch has as many of each fold.
    """
    torch.manual_seed(options.seed)
    nets = [KindNet().cuda() for _ in range(N_FOLDS + 1)]
    weights = [weight for net in nets for weight in net.parameters()]
    optimizer = torch.optim.AdamW(weights, lr=options.rate, weight_decay=0.05, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, options.rate, options.steps, pct_start=0.1)
    sizes = [SOURCES[source][1] for source, _ in groups]
    n_fold = sum(sizes) // N_FOLDS
    y = torch.from_numpy(np.repeat([source == "photographs" for source, _ in groups], sizes)).float().cuda()
    without = [[*range(k * n_fold), *range((k + 1) * n_fold, sum(sizes))] for k in range(N_FOLDS)]
    used = [torch.tensor(rows).cuda() for rows in (*without, range(sum(sizes)))]
    running = torch.zeros((), device="cuda")
    for step in range(1, options.steps + 1):
        drawn = [
            rows[torch.randint(len(rows), (n,), device="cuda")] for (_, rows), n in zip(groups, sizes, strict=True)
        ]
        images = x[torch.cat(drawn)].float() / 255
        images = images.flip(-1) if torch.rand(()) < 0.5 else images
        images = images.transpose(-1, -2) if torch.rand(()) < 0.5 else images
        images = varied(images)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            odds = [net(images[rows]) for net, rows in zip(nets, used, strict=True)]
        losses = [F.binary_cross_entropy_with_logits(o.float(), y[rows]) for o, rows in zip(odds, used, strict=True)]
        optimizer.zero_grad()
        torch.stack(losses).sum().backward()
        optimizer.step()
        schedule.step()
        running += torch.stack(losses).detach().mean()
        if step % options.every == 0:
            print(f"step {step} of {options.steps}: cross-entropy {running.item() / options.every:.4f}", flush=True)
            running.zero_()
    return [net.eval() for net in nets]


@torch.no_grad()
def judge(nets: list[KindNet], shown: list[tuple[str, int, Pixels]]) -> dict[str, np.ndarray]:
    """Return the cross-validated log-odds of images by what they are, each the mean over its views."""
    found: dict[str, list[np.ndarray]] = {}
    for name in dict.fromkeys(name for name, _, _ in shown):
        for fold, net in enumerate(nets[:N_FOLDS]):
            own = np.concatenate([images for what, i, images in shown if what == name and i % N_FOLDS == fold])
            for some in torch.from_numpy(own).split(64):
                seen = some.cuda().flatten(0, 1).permute(0, 3, 1, 2).float() / 255
                found.setdefault(name, []).append(net(seen).view(len(some), -1).mean(dim=1).cpu().numpy())
    return {name: np.concatenate(parts) for name, parts in found.items()}


def is_photograph(name: str) -> bool:
    """Return whether images that are judged under this name are photographs."""
    return "photographs" in name or "water" in name


def report(odds: dict[str, np.ndarray]) -> None:
    """Print quantiles of the log-odds of images that were not seen, the threshold, and the shares that it takes."""
    print(f"log-odds for a photograph, against it for others: quantiles {QUANTILES}")
    for name, values in odds.items():
        signed = values if is_photograph(name) else -values
        print(f"{name}, {len(values)}: {' '.join(f'{q:.2f}' for q in np.quantile(signed, QUANTILES))}")
    threshold = max(np.quantile(odds[name], MEASURED_SHARE) for name in ("nuclei", "scenes"))
    print(f"LEAST_LOG_ODDS {threshold:.1f}; least of a photograph {odds['photographs'].min():.2f}. Recognized by it:")
    threshold = round(threshold, 1)
    for name, values in odds.items():
        right = values > threshold if is_photograph(name) else values <= threshold
        print(f"{name}: {right.sum()} of {len(right)}, {right.mean():.4f}")


def main() -> None:
    """Make views, train, judge and store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--every", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    torch.backends.cudnn.benchmark = True
    began, images = time.time(), tasks(options.data)
    with ProcessPoolExecutor() as pool:
        found = list(pool.map(views, images, chunksize=8))
    ends = np.cumsum([len(learned) for learned, _ in found])
    rows: dict[tuple[int, str], list[np.ndarray]] = {(k, source): [] for k in range(N_FOLDS) for source in SOURCES}
    for (source, i, _), (learned, _), end in zip(images, found, ends, strict=True):
        rows[i % N_FOLDS, source].append(np.arange(end - len(learned), end))
    x = torch.from_numpy(np.concatenate([learned for learned, _ in found])).cuda().permute(0, 3, 1, 2)
    groups = [(source, torch.from_numpy(np.concatenate(parts)).cuda()) for (_, source), parts in rows.items()]
    print(f"{len(x)} views in {time.time() - began:.0f} s", flush=True)
    nets = train(groups, x, options)
    shown = [(name, i, seen) for (_, i, _), (_, sets) in zip(images, found, strict=True) for name, seen in sets.items()]
    report(judge(nets, shown))
    np.savez(options.out / "kind.npz", **nets[-1].stored())
    print(f"{time.time() - began:.0f} s")


if __name__ == "__main__":
    main()
