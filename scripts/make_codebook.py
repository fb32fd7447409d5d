"""Write src/spinseg/image/data/general_codebooks.npz, the color words of the package.

    python scripts/make_codebook.py

The words are k-means centers in CIELAB of 100,000 colors: 45 % from six photographs of scikit-image, all in the public
domain or under CC0; 52 % of low chroma, as most colors of photographs, lower along red and green than along blue and
yellow; 3 % uniform in sRGB, so that no color is far from every word.
"""

from pathlib import Path

import numpy as np
from skimage import data

from spinseg.image.features import k_means
from spinseg.image.picture import as_picture, cielab

PHOTOGRAPHS = ["astronaut", "chelsea", "coffee", "hubble_deep_field", "retina", "rocket"]
SIZES = [30, 60, 120, 240, 480]
TARGET = Path(__file__).parents[1] / "src" / "spinseg" / "image" / "data" / "general_codebooks.npz"


def from_photographs(count: int, rng: np.random.Generator) -> np.ndarray:
    """Return colors of random pixels, equally many from each photograph."""
    pictures = [as_picture(getattr(data, name)()).codes.reshape(-1, 3) for name in PHOTOGRAPHS]
    return cielab(np.concatenate([rng.choice(pixels, count // len(pictures)) for pixels in pictures]))


def uniform(count: int, rng: np.random.Generator) -> np.ndarray:
    """Return colors drawn uniformly from sRGB."""
    return cielab(rng.integers(0, 65536, (count, 3)).astype(np.uint16))


def low_chroma(count: int, rng: np.random.Generator) -> np.ndarray:
    """Return colors drawn from sRGB with weight exp(-|a| / 8 - |b| / 13)."""
    colors = uniform(20 * count, rng)
    weight = np.exp(-np.abs(colors[:, 1]) / 8 - np.abs(colors[:, 2]) / 13).astype(np.float64)
    return rng.choice(colors, count, p=weight / weight.sum())


def main() -> None:
    """Fit one codebook of each size and store them together."""
    rng = np.random.default_rng(2026)
    sample = np.concatenate([from_photographs(45_000, rng), low_chroma(52_000, rng), uniform(3_000, rng)])
    books = {}
    for n_words in SIZES:
        words = k_means(sample, n_words, rng)
        books[str(n_words)] = words[np.lexsort(words.T[::-1])]
    np.savez_compressed(TARGET, **books)
    print(TARGET, f"{TARGET.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
