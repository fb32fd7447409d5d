"""Train the network that sees evidence of boundaries, on one GPU, in minutes.

    python -m studies.training.pack_images training_data
    python -m studies.training.render_scenes training_data
    python -m studies.training.train_evidence_net training_data training_data/weights --folds 0 1 2 3 4 all
    python -m studies.training.export_onnx training_data/weights/foldall.pt src/spinseg/image/data/evidence.onnx

It learns from photographs of BSDS300 train, nuclei of BBBC038 and rendered scenes (`studies.scenes`), from an encoder
that knows ImageNet. A fold is trained without images i with i % 5 equal to its number, and judged on them as it goes;
"all" is trained on all. Needs PyTorch, which using the network does not.
"""

import argparse
import io
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import nn

from spinseg.image.boundary.readings import READINGS
from studies.training.crops import CROP, MAX_DEPTH, UNKNOWN, Changes, Images, boundary_share
from studies.training.evidence_net import OUTPUTS, EvidenceNet

N_FOLDS = 5
MAX_JUDGED = 60  # images of a source that a fold is judged on
ENCODER_RATE = 0.25  # of the encoder, relative to that of the decoder
HINT_WEIGHT = 0.25  # of the loss of coarser layers
OUTPUT_WEIGHTS = (1.0, 1.0, 0.5, 0.5)  # of the loss of each of OUTPUTS
MEASURED = {"gain": 0.6, "inverted": 0.15, "swapped": 0.5}
CHANGES = {
    "photographs": Changes(pasted=0.5),
    "nuclei": Changes(zoom=0.8, pasted=0.5, **MEASURED),
    "scenes": Changes(zoom=0.4, **MEASURED),
}


def photographs(stored: np.lib.npyio.NpzFile, device: str) -> Images:
    """Return the photographs that were packed."""
    n = sum(name.startswith("jpeg") for name in stored.files)
    images = [np.asarray(Image.open(io.BytesIO(stored[f"jpeg{i}"].tobytes())).convert("RGB"))[None] for i in range(n)]
    return Images(images, [stored[f"labels{i}"] for i in range(n)], CHANGES["photographs"], device)


def nuclei(stored: np.lib.npyio.NpzFile, device: str) -> Images:
    """Return the nuclei that were packed, in all readings."""
    n = sum(name.startswith("image") for name in stored.files)
    images = [in_readings(stored[f"image{i}"]) for i in range(n)]
    labels = [stored[f"labels{i}"] for i in range(n)]
    objects = [np.arange(drawn.max() + 1) > 0 for drawn in labels]
    return Images(images, [drawn[None] for drawn in labels], CHANGES["nuclei"], device, objects)


def scenes(stored: np.lib.npyio.NpzFile, device: str) -> Images:
    """Return the scenes that were rendered, with what is known of their objects."""
    images, labels = list(stored["images"]), list(stored["labels"][:, None])
    found = Images(images, labels, CHANGES["scenes"], device)
    found.about = torch.from_numpy(stored["about"]).to(device)
    return found


READERS = {reader.__name__: reader for reader in (photographs, nuclei, scenes)}


def in_readings(image: np.ndarray) -> np.ndarray:
    """Return an image in all readings, (readings, height, width, 3), in 8 bits."""
    return np.stack([np.rint(255 * reading(image.astype(np.float32))).astype(np.uint8) for reading in READINGS])


def cross_entropy(odds: torch.Tensor, target: torch.Tensor, known: torch.Tensor) -> torch.Tensor:
    """Return the mean cross-entropy of what is known of each output, (outputs,)."""
    loss = F.binary_cross_entropy_with_logits(odds.float(), target, reduction="none") * known
    return loss.sum(dim=(0, 2, 3)) / known.sum(dim=(0, 2, 3)).clamp(min=1)


@torch.no_grad()
def judged(net: EvidenceNet, data: Images, which: list[int]) -> dict[str, float]:
    """Return cross-entropies of whole images in their first reading, and the average precision of boundaries."""
    net.eval()
    losses, odds_all, share_all = [], [], []
    for i in which:
        height, width = data.shapes[i]
        image = F.pad(data.images[i, :1].float() / 255, (0, 31, 0, 31))
        image = image[..., : -(-height // 32) * 32, : -(-width // 32) * 32]
        odds = net(image)[0][..., :height, :width]
        labels, about = (x[i : i + 1, :, :height, :width] for x in (data.labels, data.about))
        share = boundary_share(labels.float())
        target = torch.cat([share, about / torch.tensor([1, MAX_DEPTH], device=about.device)[:, None, None]], dim=1)
        known = torch.cat([torch.ones_like(share, dtype=torch.bool), about != UNKNOWN], dim=1)
        losses.append(cross_entropy(odds, target.clamp(0, 1), known))
        odds_all.append(odds[0, 0].flatten()[::7])
        share_all.append(share[0, 0].flatten()[::7])
    net.train()
    odds, share, mean = torch.cat(odds_all), torch.cat(share_all), torch.stack(losses).mean(dim=0)
    hit = (share[odds.argsort(descending=True)] > 0.5).double()
    precision = hit.cumsum(0) / torch.arange(1, len(hit) + 1, device=hit.device)
    both = {"boundary": mean[:2].mean(), "inside": mean[2], "depth": mean[3]}
    scores = {name: float(value) for name, value in both.items() if value > 0}
    return scores | {"average precision": float((precision * hit).sum() / hit.sum())}


def train(sources: dict[str, Images], encoder: dict[str, np.ndarray], fold: str, options: argparse.Namespace) -> None:
    """Train one network, and store the running mean of its weights."""
    device, began, limit = options.device, time.time(), options.seconds
    torch.manual_seed(options.seed)
    held_out, used = {}, {}
    for name, data in sources.items():
        held_out[name] = [] if fold == "all" else [i for i in range(len(data.shapes)) if i % N_FOLDS == int(fold)]
        kept = sorted(set(range(len(data.shapes))) - set(held_out[name]))
        used[name] = torch.tensor(kept, device=device)
    net = EvidenceNet()
    net.encoder.load(encoder)
    net = net.to(device).to(memory_format=torch.channels_last)
    mean_net = torch.optim.swa_utils.AveragedModel(
        net, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(options.memory), use_buffers=True
    )
    encoded = list(net.encoder.parameters())
    others = [p for name, p in net.named_parameters() if not name.startswith("encoder.")]
    rates = [options.rate, ENCODER_RATE * options.rate]
    groups = [{"params": others}, {"params": encoded}]
    optimizer = torch.optim.AdamW(groups, lr=options.rate, weight_decay=options.decay)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rates, options.steps, pct_start=0.1)
    weights = torch.tensor(OUTPUT_WEIGHTS, device=device)
    running = torch.zeros(len(OUTPUTS), device=device)
    for step in range(1, options.steps + 1):
        drawn = [
            data.crops(used[name][torch.randint(len(used[name]), (options.crops[name],), device=device)])
            for name, data in sources.items()
        ]
        images, target, known = (torch.cat(parts) for parts in zip(*drawn, strict=True))
        with torch.autocast(device, dtype=torch.bfloat16, enabled=device == "cuda"):
            odds, hints, _ = net(images.contiguous(memory_format=torch.channels_last))
        found = cross_entropy(odds, target, known)
        running += found.detach()
        loss = (weights * found).sum()
        for hint in hints:
            factor = CROP // hint.shape[-1]
            coarse = F.max_pool2d(target, factor)
            loss = loss + HINT_WEIGHT * (weights * cross_entropy(hint, coarse, known[..., ::factor, ::factor])).sum()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        mean_net.update_parameters(net)
        if step % options.every == 0 or step == options.steps:
            line = f"{options.name}fold {fold} step {step} train " + " ".join(
                f"{x:.4f}" for x in (running / options.every).tolist()
            )
            for name, data in sources.items() if fold != "all" else ():
                scores = judged(mean_net.module, data, held_out[name][:MAX_JUDGED])
                line += f" | {name}:" + "".join(f" {what} {value:.4f}" for what, value in scores.items())
            running.zero_()
            print(f"{line} | {time.time() - began:.0f} s", flush=True)
            state = {name: x.half() if x.is_floating_point() else x for name, x in mean_net.module.state_dict().items()}
            torch.save(state, options.out / f"{options.name}fold{fold}.pt")
        if limit and time.time() - began > limit:
            return


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
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument(
        "--crops", type=crops_of, nargs="+", default=list({"photographs": 20, "nuclei": 10, "scenes": 12}.items())
    )
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--decay", type=float, default=0.02)
    parser.add_argument("--memory", type=float, default=0.999, help="of the running mean of weights")
    parser.add_argument("--every", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=0, help="after which training stops")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--name", default="")
    options = parser.parse_args()
    options.crops = dict(options.crops)
    torch.backends.cudnn.benchmark = True
    sources = {}
    for name in options.crops:
        with np.load(options.data / f"{name}.npz") as stored:
            sources[name] = READERS[name](stored, options.device)
    with np.load(options.data / "encoder.npz") as stored:
        encoder = dict(stored)
    options.out.mkdir(parents=True, exist_ok=True)
    for fold in options.folds:
        train(sources, encoder, fold, options)


if __name__ == "__main__":
    main()
