"""Write src/spinseg/image/data/general_codebooks.npz, the colour words that come with the package.

    python scripts/make_codebook.py

The words are k-means centres in CIELAB of 100,000 colours: 45 % from six photographs that scikit-image carries, all in
the public domain or under CC0; 52 % muted colours, since photographs of the world are mostly such, and more so in red
and green than in blue and yellow; 3 % spread over all of sRGB, so that no colour is far from every word.
"""

from pathlib import Path

import numpy as np
from skimage import data

from spinseg.image.features import k_means
from spinseg.image.picture import as_picture, cielab

PHOTOGRAPHS = ["astronaut", "chelsea", "coffee", "hubble_deep_field", "retina", "rocket"]
SIZES = [30, 60, 120, 240, 480]
TARGET = Path(__file__).parents[1] / "src" / "spinseg" / "image" / "data" / "general_codebooks.npz"


def photographed(count: int, rng: np.random.Generator) -> np.ndarray:
    """Colours of pixels, equally many of each photograph."""
    pictures = [as_picture(getattr(data, name)()).codes.reshape(-1, 3) for name in PHOTOGRAPHS]
    return cielab(np.concatenate([rng.choice(pixels, count // len(pictures)) for pixels in pictures]))


def spread(count: int, rng: np.random.Generator) -> np.ndarray:
    """Colours drawn evenly from sRGB."""
    return cielab(rng.integers(0, 65536, (count, 3)).astype(np.uint16))


def muted(count: int, rng: np.random.Generator) -> np.ndarray:
    """Colours drawn from sRGB with weight exp(-|a| / 8 - |b| / 13)."""
    colours = spread(20 * count, rng)
    weight = np.exp(-np.abs(colours[:, 1]) / 8 - np.abs(colours[:, 2]) / 13).astype(np.float64)
    return rng.choice(colours, count, p=weight / weight.sum())


def main() -> None:
    """Fit one codebook of each size and store them together."""
    rng = np.random.default_rng(2026)
    sample = np.concatenate([photographed(45_000, rng), muted(52_000, rng), spread(3_000, rng)])
    books = {}
    for n_words in SIZES:
        words = k_means(sample, n_words, rng)
        books[str(n_words)] = words[np.lexsort(words.T[::-1])]
    np.savez_compressed(TARGET, **books)
    print(TARGET, f"{TARGET.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
