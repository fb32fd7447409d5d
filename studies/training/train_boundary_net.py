"""Train the boundary networks from scratch, on one GPU, in minutes: one for photographs, one for measured images.

    python -m studies.training.pack_images training_data
    python -m studies.training.render_scenes training_data
    python -m studies.training.train_boundary_net training_data training_data/weights --folds 0 1 2 3 4 all
    python -m studies.training.train_boundary_net training_data training_data/weights --name measured_ \
        --crops photographs=6 nuclei=18 scenes=12 --steps 12000 --folds 0 1 2 3 4 all
    python -m studies.training.export_onnx training_data/weights/foldall.npz \
        src/spinseg/image/data/photograph_network.onnx
    python -m studies.training.export_onnx training_data/weights/measured_foldall.npz \
        src/spinseg/image/data/measured_network.onnx
    python -m studies.training.reference_output training_data/weights/foldall.npz tests/image/network_reference.npz
    python -m studies boundaries
    python -m studies measured_boundaries

The first network learns from photographs of BSDS300 train, the second also from nuclei of BBBC038 and from rendered
scenes (`studies.scenes`). A fold is trained without images i with i % 5 equal to its number, and judged on them as it
goes; "all" is trained on all. Six of the first at once take 610 s on one H200, three of the second 480 s. Needs
PyTorch, which using the network does not. The number of steps, the rate, the weight decay and the widths were chosen on
fold 0 (docs/evidence/notebook.md). The packaged network for photographs was trained before regions were pasted into
crops, which lowered the cross-entropy of pixels by 1.3 %, but improved neither edges nor segmentations.

The network is a U-Net whose finest layers work at half size: the picture's 2 x 2 blocks are its input, and the outputs
of a block its result. Every convolution is followed by a batch normalization, which is folded into it when it is
stored, so that what is stored are plain convolutions, and a picture can be done tile by tile. Its outputs are the
log-odds that a share of annotators has drawn a boundary within 1 and within 3 pixels.
"""

import argparse
import io
import math
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import nn

WIDTHS = (24, 48, 96, 160, 192)  # at 1/2, 1/4, .. of the picture's size
RADII = (1, 3)  # pixels, within which a boundary counts
N_FOLDS = 5
CROP = 256
MAX_JUDGED = 60  # images of a source that a fold is judged on
INVERTED_SHARE, SWAPPED_SHARE = 0.15, 0.5  # of the crops of measured images, that are inverted or swap channels
PAINTED_SHARE, MAX_SHAPES = 0.125, 5  # of the crops of a batch, and of shapes in each
PASTED_SHARE = 0.5  # of the crops of photographs and nuclei, that a region of another is pasted into
MEASURED = {"painted_share": PAINTED_SHARE, "is_measured": True}
PASTED_SIZES = 0.0005, 0.4  # smallest and largest share of a crop that such a region has


class Block(nn.Module):
    """A convolution, a batch normalization, and a rectifier."""

    def __init__(self, n_in: int, n_out: int, size: int = 3) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(n_in, n_out, size, padding=size // 2, bias=False)
        self.normalization = nn.BatchNorm2d(n_out)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the block's output."""
        return F.relu(self.normalization(self.convolution(x)))

    def folded(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return weights and biases of the one convolution that this block is."""
        norm = self.normalization
        scale = norm.weight / torch.sqrt(norm.running_var + norm.eps)
        return self.convolution.weight * scale[:, None, None, None], norm.bias - norm.running_mean * scale


class BoundaryNet(nn.Module):
    """The network; its input are values from 0 to 1, (n, 3, h, w), h and w multiples of 32."""

    def __init__(self, widths: tuple[int, ...] = WIDTHS) -> None:
        super().__init__()
        before = (12, *widths[:-1])
        self.down = nn.ModuleList(
            nn.Sequential(Block(n_in, n), Block(n, n)) for n_in, n in zip(before, widths, strict=True)
        )
        self.lateral = nn.ModuleList(Block(n_below, n, 1) for n, n_below in pairwise(widths))
        self.up = nn.ModuleList(Block(n, n) for n in widths[:-1])
        self.head = nn.Conv2d(widths[0], 4 * len(RADII), 1)
        self.hints = nn.ModuleList(nn.Conv2d(n, len(RADII), 1) for n in widths[1:4])  # in training only

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """Return log-odds, (n, radii, h, w), and those of coarser layers."""
        x, levels = F.pixel_unshuffle(x - 0.5, 2), []
        for level, down in enumerate(self.down):
            x = down(x if level == 0 else F.max_pool2d(x, 2))
            levels.append(x)
        hints = []
        for level in range(len(self.up) - 1, -1, -1):
            x = F.interpolate(self.lateral[level](x), scale_factor=2, mode="nearest") + levels[level]
            x = self.up[level](x)
            if level > 0:
                hints.append(self.hints[level - 1](x))
        return F.pixel_shuffle(self.head(x), 2), hints

    def stored(self) -> dict[str, np.ndarray]:
        """Return the convolutions by name, in 16 bits."""
        arrays: dict[str, torch.Tensor] = {"head.weight": self.head.weight, "head.bias": self.head.bias}
        for level, down in enumerate(self.down):
            for part in (0, 1):
                arrays[f"down{level}{part}.weight"], arrays[f"down{level}{part}.bias"] = down[part].folded()
        for level in range(len(self.up)):
            arrays[f"lateral{level}.weight"], arrays[f"lateral{level}.bias"] = self.lateral[level].folded()
            arrays[f"up{level}.weight"], arrays[f"up{level}.bias"] = self.up[level].folded()
        return {name: array.detach().float().cpu().numpy().astype(np.float16) for name, array in arrays.items()}


class Images:
    """Images and annotations on the GPU, padded to one size; crops are drawn there.

    `zoom` is the largest logarithm of the scale of a crop, `gain` that of its gamma, `painted_share` the share of crops
    with shapes painted on them, and `pasted_share` that of crops with a region of another. Measured images may have
    other colors, and be inverted.
    """

    def __init__(
        self,
        images: list[np.ndarray],
        labels: list[np.ndarray],
        device: str,
        zoom: float = 0.6,
        painted_share: float = 0.0,
        pasted_share: float = 0.0,
        gain: float = 0.35,
        is_measured: bool = False,
    ) -> None:
        n, self.side = len(images), max(max(image.shape[:2]) for image in images)
        self.shapes = [image.shape[:2] for image in images]
        self.zoom, self.gain, self.is_measured = zoom, gain, is_measured
        self.painted_share, self.pasted_share = painted_share, pasted_share
        self.images = torch.zeros((n, 3, self.side, self.side), dtype=torch.uint8)
        self.labels = torch.full((n, max(map(len, labels)), self.side, self.side), -1, dtype=torch.int16)
        for i, (image, drawn) in enumerate(zip(images, labels, strict=True)):
            height, width = image.shape[:2]
            self.images[i, :, :height, :width] = torch.from_numpy(np.moveaxis(image, -1, 0).copy())
            self.labels[i, : len(drawn), :height, :width] = torch.from_numpy(drawn.astype(np.int16))
        self.images, self.labels = self.images.to(device), self.labels.to(device)
        self.sizes = torch.tensor(self.shapes, device=device, dtype=torch.float32)
        self.device = device

    def crops(self, which: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return crops of images, changed at random; targets; and which pixels are inside."""
        n, device = len(which), self.device
        angle = torch.randn(n, device=device) * 0.12 + math.pi / 2 * torch.randint(0, 4, (n,), device=device)
        scale = torch.exp(torch.empty(n, device=device).uniform_(-self.zoom, self.zoom))
        flip = torch.randint(0, 2, (n,), device=device) * 2.0 - 1
        height, width = self.sizes[which].T
        center_y = torch.rand(n, device=device) * height
        center_x = torch.rand(n, device=device) * width
        step = torch.arange(CROP, device=device) - (CROP - 1) / 2
        y, x = torch.meshgrid(step, step, indexing="ij")
        cos, sin = torch.cos(angle) * scale, torch.sin(angle) * scale
        at_x = center_x[:, None, None] + flip[:, None, None] * (cos[:, None, None] * x - sin[:, None, None] * y)
        at_y = center_y[:, None, None] + sin[:, None, None] * x + cos[:, None, None] * y
        grid = torch.stack([at_x, at_y], dim=-1) * (2 / (self.side - 1)) - 1
        inside = (
            (at_x > -0.5) & (at_y > -0.5) & (at_x < width[:, None, None] - 0.5) & (at_y < height[:, None, None] - 0.5)
        )
        images = F.grid_sample(self.images[which].float() / 255, grid, mode="bilinear", align_corners=True)
        row, column = at_y.round().long().clamp(0, self.side - 1), at_x.round().long().clamp(0, self.side - 1)
        labels = self.labels.flatten(2)[which[:, None], :, (row * self.side + column).flatten(1)]
        labels = labels.movedim(-1, 1).reshape(n, -1, CROP, CROP)
        if self.pasted_share:
            images, labels = pasted(images, labels, self.pasted_share)
        k = round(self.painted_share * n)
        if k:
            images[:k], labels[:k] = painted(images[:k], labels[:k])
        if self.is_measured:  # any channel may be any color, and bright may be dark
            order = torch.rand((n, 3), device=device).argsort(dim=1)
            swapped = torch.gather(images, 1, order[:, :, None, None].expand_as(images))
            images = torch.where(torch.rand((n, 1, 1, 1), device=device) < SWAPPED_SHARE, swapped, images)
            images = torch.where(torch.rand((n, 1, 1, 1), device=device) < INVERTED_SHARE, 1 - images, images)
        return recolored(images, self.gain) * inside[:, None], target(labels), inside & (labels[:, 0] >= 0)


def photographs(path: Path, device: str) -> Images:
    """Return the photographs that were packed."""
    stored = np.load(path)
    n = sum(name.startswith("jpeg") for name in stored.files)
    images = [np.asarray(Image.open(io.BytesIO(stored[f"jpeg{i}"].tobytes())).convert("RGB")) for i in range(n)]
    shares = {"painted_share": PAINTED_SHARE, "pasted_share": PASTED_SHARE}
    return Images(images, [stored[f"labels{i}"] for i in range(n)], device, **shares)


def nuclei(path: Path, device: str) -> Images:
    """Return the nuclei that were packed."""
    stored = np.load(path)
    n = sum(name.startswith("image") for name in stored.files)
    images, labels = ([stored[f"{what}{i}"] for i in range(n)] for what in ("image", "labels"))
    how = {"zoom": 0.8, "gain": 0.7, "pasted_share": PASTED_SHARE}
    return Images(images, [drawn[None] for drawn in labels], device, **how, **MEASURED)


def scenes(path: Path, device: str) -> Images:
    """Return the scenes that were rendered."""
    stored = np.load(path)
    images, labels = list(stored["images"]), list(stored["labels"][:, None])
    return Images(images, labels, device, zoom=0.4, gain=0.5, **MEASURED)


def pasted(images: torch.Tensor, labels: torch.Tensor, share: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Return crops, a share of them with a region of the next crop pasted into it, as its first annotator drew it."""
    n, device = len(images), images.device
    others, drawn = images.roll(1, 0), labels.roll(1, 0)[:, 0]
    row, column = torch.randint(0, CROP, (2, n), device=device)
    region = drawn[torch.arange(n, device=device), row, column][:, None, None]
    within = (drawn == region) & (region >= 0)
    size = within.float().mean(dim=(1, 2))
    use = (size > PASTED_SIZES[0]) & (size < PASTED_SIZES[1]) & (torch.rand(n, device=device) < share)
    within = (within & use[:, None, None])[:, None]
    mixed = F.avg_pool2d(F.pad(within.float(), (1, 1, 1, 1), mode="reflect"), 3, 1)  # no sharper than photographs are
    return images + mixed * (others - images), torch.where(within & (labels >= 0), 30_000, labels)


def painted(images: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return crops with rectangles and ellipses of one color painted on them, half of them on a ground of one color.

    Photographs have no steps from black to white within a pixel; drawings, scans and test pictures do.
    """
    n, device = len(images), images.device
    step = torch.arange(CROP, device=device) - (CROP - 1) / 2
    y, x = torch.meshgrid(step, step, indexing="ij")

    def uniform(low: float, high: float, *shape: int) -> torch.Tensor:
        return torch.empty((n, *shape), device=device).uniform_(low, high)

    def color() -> torch.Tensor:
        any_color, extreme = uniform(0, 1, 3, 1, 1), (uniform(0, 1, 3, 1, 1) < 0.5).float()
        gray = uniform(0, 1, 1, 1, 1).expand(-1, 3, -1, -1)
        kind = uniform(0, 1, 1, 1, 1)
        return torch.where(kind < 0.4, any_color, torch.where(kind < 0.7, extreme, gray))

    flat = uniform(0, 1, 1, 1, 1) < 0.5
    images = torch.where(flat, color(), images)
    labels = torch.where(flat & (labels >= 0), 0, labels)
    for shape in range(MAX_SHAPES):
        angle = uniform(0, math.pi) * (uniform(0, 1) < 0.6)  # the others are upright
        cos, sin = torch.cos(angle)[:, None, None], torch.sin(angle)[:, None, None]
        dy, dx = y - uniform(-CROP / 2, CROP / 2, 1, 1), x - uniform(-CROP / 2, CROP / 2, 1, 1)
        u = (cos * dx - sin * dy).abs() / uniform(10, 90, 1, 1)
        v = (sin * dx + cos * dy).abs() / uniform(10, 90, 1, 1)
        within = torch.where(uniform(0, 1, 1, 1) < 0.5, torch.maximum(u, v), (u**2 + v**2) ** 0.5) < 1
        within = within[:, None] & (uniform(0, 1, 1, 1, 1) < 0.6)
        images = torch.where(within, color(), images)
        labels = torch.where(within & (labels >= 0), 20_000 + shape, labels)
    return images, labels


def target(labels: torch.Tensor) -> torch.Tensor:
    """Return the share of annotators with a boundary within each of RADII pixels, (n, radii, h, w)."""
    drawn = (labels >= 0).float()
    edge = torch.zeros_like(labels, dtype=torch.float32)
    across = ((labels[..., 1:] != labels[..., :-1]) & (labels[..., 1:] >= 0) & (labels[..., :-1] >= 0)).float()
    upper, lower = labels[..., :-1, :], labels[..., 1:, :]
    down = ((upper != lower) & (upper >= 0) & (lower >= 0)).float()
    edge[..., 1:] = torch.maximum(edge[..., 1:], across)
    edge[..., :-1] = torch.maximum(edge[..., :-1], across)
    edge[..., 1:, :] = torch.maximum(edge[..., 1:, :], down)
    edge[..., :-1, :] = torch.maximum(edge[..., :-1, :], down)
    shares = []
    for radius in RADII:
        near = F.max_pool2d(edge, 2 * radius - 1, 1, radius - 1) if radius > 1 else edge
        shares.append((near * drawn).sum(dim=1) / drawn.sum(dim=1).clamp(min=1))
    return torch.stack(shares, dim=1)


def recolored(images: torch.Tensor, gain: float) -> torch.Tensor:
    """Return pictures with other colors, gamma (by at most exp(gain)), noise and sharpness; some are gray."""
    n, device = len(images), images.device

    def uniform(low: float, high: float, channels: int = 1) -> torch.Tensor:
        return torch.empty((n, channels, 1, 1), device=device).uniform_(low, high)

    gray = images.mean(dim=1, keepdim=True)
    images = gray + (images - gray) * uniform(0.5, 1.5)
    images = torch.where(uniform(0, 1) < 0.15, gray.expand_as(images), images * uniform(0.85, 1.15, 3))
    mean = images.mean(dim=(1, 2, 3), keepdim=True)
    images = (mean + (images - mean) * uniform(0.6, 1.3) + uniform(-0.12, 0.12)).clamp(1e-3, 1)
    images = images ** torch.exp(uniform(-gain, gain))
    soft = F.avg_pool2d(F.pad(images, (1, 1, 1, 1), mode="reflect"), 3, 1)
    images = torch.where(uniform(0, 1) < 0.15, soft, images)
    noise = torch.randn_like(images) * uniform(0, 0.06) * (uniform(0, 1) < 0.35)
    return (images + noise).clamp(0, 1)


def cross_entropy(odds: torch.Tensor, share: torch.Tensor, inside: torch.Tensor) -> torch.Tensor:
    """Return the mean cross-entropy of pixels inside."""
    loss = F.binary_cross_entropy_with_logits(odds.float(), share, reduction="none")
    return (loss * inside[:, None]).sum() / (inside.sum() * odds.shape[1]).clamp(min=1)


@torch.no_grad()
def judged(net: BoundaryNet, data: Images, which: list[int]) -> dict[str, float]:
    """Return cross-entropy and average precision of pixels of whole images."""
    net.eval()
    found, odds_all, share_all = [], [], []
    for i in which:
        height, width = data.shapes[i]
        image = F.pad(data.images[i : i + 1].float() / 255, (0, 31, 0, 31))[
            ..., : -(-height // 32) * 32, : -(-width // 32) * 32
        ]
        odds = net(image)[0][..., :height, :width]
        share = target(data.labels[i : i + 1, :, :height, :width].float())
        found.append(F.binary_cross_entropy_with_logits(odds.float(), share).item())
        odds_all.append(odds[0, 0].flatten()[::7])
        share_all.append(share[0, 0].flatten()[::7])
    odds, share = torch.cat(odds_all), torch.cat(share_all)
    order = odds.argsort(descending=True)
    hit = (share[order] > 0.5).double()
    precision = hit.cumsum(0) / torch.arange(1, len(hit) + 1, device=hit.device)
    net.train()
    return {"cross-entropy": float(np.mean(found)), "average precision": float((precision * hit).sum() / hit.sum())}


def train(sources: dict[str, Images], fold: str, options: argparse.Namespace, out: Path) -> None:
    """Train one network, and store the running mean of its weights."""
    device, began = "cuda", time.time()
    torch.manual_seed(options.seed)
    held_out, used = {}, {}
    for name, data in sources.items():
        held_out[name] = [] if fold == "all" else [i for i in range(len(data.shapes)) if i % N_FOLDS == int(fold)]
        kept = sorted(set(range(len(data.shapes))) - set(held_out[name]))
        used[name] = torch.tensor(kept, device=device)
    net = BoundaryNet(tuple(options.widths)).to(device).to(memory_format=torch.channels_last)
    mean_net = torch.optim.swa_utils.AveragedModel(
        net, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.999), use_buffers=True
    )
    optimizer = torch.optim.AdamW(net.parameters(), lr=options.rate, weight_decay=options.decay)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, options.rate, options.steps, pct_start=0.1)
    running = torch.zeros((), device=device)
    for step in range(1, options.steps + 1):
        drawn = [
            data.crops(used[name][torch.randint(len(used[name]), (options.crops[name],), device=device)])
            for name, data in sources.items()
        ]
        images, share, inside = (torch.cat(parts) for parts in zip(*drawn, strict=True))
        with torch.autocast(device, dtype=torch.bfloat16):
            odds, hints = net(images.contiguous(memory_format=torch.channels_last))
        loss = cross_entropy(odds, share, inside)
        running += loss.detach()
        for hint in hints:
            factor = CROP // hint.shape[-1]
            coarse = F.max_pool2d(share, factor)
            loss = loss + 0.25 * cross_entropy(hint, coarse, inside[:, ::factor, ::factor])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        mean_net.update_parameters(net)
        if step % options.every == 0 or step == options.steps:
            line = (
                f"{options.name}fold {fold} seed {options.seed} step {step} train {running.item() / options.every:.4f}"
            )
            for name, data in sources.items() if fold != "all" else ():
                found = judged(mean_net.module, data, held_out[name][:MAX_JUDGED])
                line += f" {name}:" + "".join(f" {what} {value:.4f}" for what, value in found.items())
            running.zero_()
            print(f"{line} {time.time() - began:.0f} s", flush=True)
            np.savez(out / f"{options.name}fold{fold}.npz", **mean_net.module.stored())


def crops_of(text: str) -> tuple[str, int]:
    """Return the name of a source and the number of its crops in a batch."""
    name, number = text.split("=")
    return name, int(number)


def main() -> None:
    """Parse the arguments and train."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--folds", nargs="+", default=["0"])
    parser.add_argument("--steps", type=int, default=8000)
    parser.add_argument("--crops", type=crops_of, nargs="+", default=[("photographs", 36)])
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--decay", type=float, default=0.02)
    parser.add_argument("--every", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--widths", type=int, nargs=5, default=WIDTHS)
    parser.add_argument("--name", default="")
    options = parser.parse_args()
    options.crops = dict(options.crops)
    torch.backends.cudnn.benchmark = True
    readers = {
        "photographs": lambda: photographs(options.data / "photographs.npz", "cuda"),
        "nuclei": lambda: nuclei(options.data / "nuclei.npz", "cuda"),
        "scenes": lambda: scenes(options.data / "scenes.npz", "cuda"),
    }
    sources = {name: readers[name]() for name in options.crops}
    options.out.mkdir(parents=True, exist_ok=True)
    for fold in options.folds:
        train(sources, fold, options, options.out)


if __name__ == "__main__":
    main()
