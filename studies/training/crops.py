"""Images and annotations on the machine that trains, and the crops of them that the network learns from."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from scipy import ndimage

CROP = 256
RADII = (1, 3)  # pixels, within which a boundary counts
UNKNOWN = 255  # of what an image has about objects
MAX_DEPTH = 250  # of the depth inside an object, which is stored in whole numbers
MAX_SHAPES = 5  # in a crop with painted shapes
PASTED_SIZES = 0.0005, 0.4  # smallest and largest share of a crop that a region of another has in it


@dataclass(frozen=True)
class Changes:
    """How the crops of a source are changed at random.

    `zoom` is the largest logarithm of the scale of a crop and `gain` that of its gamma. `painted` is the share of crops
    with shapes painted on them, `pasted` that of crops with a region of another, `inverted` and `swapped` those that
    are inverted or have other colors.
    """

    zoom: float = 0.6
    gain: float = 0.35
    painted: float = 0.125
    pasted: float = 0.0
    inverted: float = 0.0
    swapped: float = 0.0


class Crops(NamedTuple):
    """Crops, (n, 3, h, w), what the network is to predict, and which of it is known, (n, outputs, h, w)."""

    images: torch.Tensor
    target: torch.Tensor
    known: torch.Tensor


class Images:
    """Images and annotations on one device, padded to one size; crops are drawn there.

    An image may have several readings, of which a crop shows one. Regions that are `objects` have an inside.
    """

    def __init__(
        self,
        images: list[np.ndarray],
        labels: list[np.ndarray],
        changes: Changes,
        device: str,
        objects: list[np.ndarray] | None = None,
    ) -> None:
        """Take images (readings, height, width, 3), labels (annotators, height, width), and a bool for each region."""
        n, self.side = len(images), max(max(image.shape[1:3]) for image in images)
        self.shapes, self.changes, self.device = [image.shape[1:3] for image in images], changes, device
        shape = (self.side, self.side)
        self.images = torch.zeros((n, len(images[0]), 3, *shape), dtype=torch.uint8)
        self.labels = torch.full((n, max(map(len, labels)), *shape), -1, dtype=torch.int16)
        self.about = torch.full((n, 2, *shape), UNKNOWN, dtype=torch.uint8)
        for i, (image, drawn) in enumerate(zip(images, labels, strict=True)):
            height, width = self.shapes[i]
            self.images[i, ..., :height, :width] = torch.from_numpy(np.moveaxis(image, -1, 1).copy())
            self.labels[i, : len(drawn), :height, :width] = torch.from_numpy(drawn.astype(np.int16))
            if objects is not None:
                self.about[i, :, :height, :width] = torch.from_numpy(inside_and_depth(drawn[0], objects[i]))
        self.images, self.labels, self.about = (x.to(device) for x in (self.images, self.labels, self.about))
        self.sizes = torch.tensor(self.shapes, device=device, dtype=torch.float32)

    def crops(self, which: torch.Tensor) -> Crops:
        """Return crops of images, changed at random."""
        n, device, changes = len(which), self.device, self.changes
        at_y, at_x = self._places(which)
        height, width = (size[:, None, None] for size in self.sizes[which].T)
        inside = (at_x > -0.5) & (at_y > -0.5) & (at_x < width - 0.5) & (at_y < height - 0.5)
        reading = torch.randint(self.images.shape[1], (n,), device=device)
        grid = torch.stack([at_x, at_y], dim=-1) * (2 / (self.side - 1)) - 1
        seen = self.images[which, reading].float() / 255
        images = F.grid_sample(seen, grid, mode="bilinear", align_corners=True)
        row, column = at_y.round().long().clamp(0, self.side - 1), at_x.round().long().clamp(0, self.side - 1)
        pixel = (row * self.side + column).flatten(1)
        labels, about = (
            x.flatten(2)[which[:, None], :, pixel].movedim(-1, 1).reshape(n, -1, CROP, CROP)
            for x in (self.labels, self.about)
        )
        if changes.pasted:
            images, labels, about = pasted(images, labels, about, changes.pasted)
        k = round(changes.painted * n)
        if k:
            images[:k], labels[:k] = painted(images[:k], labels[:k])
            about[:k] = UNKNOWN
        if changes.swapped:  # any channel may be any color
            order = torch.rand((n, 3), device=device).argsort(dim=1)
            swapped = torch.gather(images, 1, order[:, :, None, None].expand_as(images))
            images = torch.where(torch.rand((n, 1, 1, 1), device=device) < changes.swapped, swapped, images)
        if changes.inverted:
            images = torch.where(torch.rand((n, 1, 1, 1), device=device) < changes.inverted, 1 - images, images)
        drawn = (inside & (labels[:, 0] >= 0))[:, None].expand(-1, len(RADII), -1, -1)
        target = torch.cat(
            [boundary_share(labels), about.float() / torch.tensor([1, MAX_DEPTH], device=device)[:, None, None]], dim=1
        )
        known = torch.cat([drawn, inside[:, None] & (about != UNKNOWN)], dim=1)
        return Crops(recolored(images, changes.gain) * inside[:, None], target.clamp(0, 1), known)

    def _places(self, which: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the row and the column in the image of each pixel of each crop: turned, scaled and mirrored."""
        n, device, zoom = len(which), self.device, self.changes.zoom
        angle = torch.randn(n, device=device) * 0.12 + math.pi / 2 * torch.randint(0, 4, (n,), device=device)
        scale = torch.exp(torch.empty(n, device=device).uniform_(-zoom, zoom))
        flip = torch.randint(0, 2, (n,), device=device) * 2.0 - 1
        center_y, center_x = (torch.rand(n, device=device) * size for size in self.sizes[which].T)
        step = torch.arange(CROP, device=device) - (CROP - 1) / 2
        y, x = torch.meshgrid(step, step, indexing="ij")
        cos, sin = ((f(angle) * scale)[:, None, None] for f in (torch.cos, torch.sin))
        at_x = center_x[:, None, None] + flip[:, None, None] * (cos * x - sin * y)
        return center_y[:, None, None] + sin * x + cos * y, at_x


def inside_and_depth(labels: np.ndarray, objects: np.ndarray) -> np.ndarray:
    """Return whether pixels lie in an object, and their depth there in 0..MAX_DEPTH, (2, height, width)."""
    inside = objects[labels]
    outline = np.zeros(labels.shape, bool)
    for axis in (0, 1):
        apart = np.diff(labels, axis=axis) != 0
        first, second = ([slice(None)] * 2 for _ in range(2))
        first[axis], second[axis] = slice(None, -1), slice(1, None)
        outline[tuple(first)] |= apart
        outline[tuple(second)] |= apart
    depth = ndimage.distance_transform_edt(~outline) if outline.any() else np.ones(labels.shape)
    deepest = ndimage.maximum(depth, labels, np.arange(labels.max() + 1))
    depth = np.where(inside, depth / np.maximum(deepest, 1)[labels], 0)
    return np.stack([inside, np.rint(MAX_DEPTH * depth)]).astype(np.uint8)


def pasted(
    images: torch.Tensor, labels: torch.Tensor, about: torch.Tensor, share: float
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
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
    about = torch.where(within, about.roll(1, 0), about)
    return images + mixed * (others - images), torch.where(within & (labels >= 0), 30_000, labels), about


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


def boundary_share(labels: torch.Tensor) -> torch.Tensor:
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
