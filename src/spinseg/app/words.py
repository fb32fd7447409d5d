"""Messages of the package in the words of the web app: no parameter names, no Python."""

import re
from collections.abc import Callable

COLORS = ("yellow", "blue", "pink", "green", "orange", "violet")  # of the scribbles, whose numbers start at 1
READING = "under How to read the file"


def _strokes(numbers: str) -> str:
    """The strokes of these seeds, by their colors."""
    found = [int(number) for number in re.findall(r"\d+", numbers)]
    names = [COLORS[n - 1] if n <= len(COLORS) else f"color {n}" for n in found]
    return f"The {' and '.join(names)} strokes"


# Patterns of whole messages, each with what to write for it.
MESSAGES: dict[str, Callable[[re.Match[str]], str]] = {
    r"seeds must have sites that can be connected(?: without passing another seed|, .*): got (.*)": (
        lambda found: f"{_strokes(found[1])} cannot be joined without crossing another color"
    ),
    r"seeds must give each pixel one number: .*": lambda found: "A place cannot have two colors: keep strokes apart",
    r"seeds must lie inside the mask, .*": lambda found: "A stroke must lie inside the visible part of the image",
    r"seeds must lie (\d+) pixels apart at least, .*: got 'seed (\d+)'": (
        lambda found: f"{_strokes(found[2])} must lie at least {found[1]} pixels from those of other colors"
    ),
    r"seeds must be given with connected clusters only, as in (.*): got .*": (
        lambda found: f"Scribbles need connected regions: choose one of the presets {found[1]}"
    ),
    r"The image must be an? (.*?), or a folder of Zarr: got .*": (
        lambda found: f"This file cannot be opened as an image. Choose a {found[1]}"
    ),
    r"init must .*": lambda found: "No segmentation satisfies these limits of size and number: relax one of them",
    r"n_sites must make less than .*": lambda found: "There would be too many superpixels: ask for fewer",
    r"max_size must be at least min_size, (\d+): .*": (
        lambda found: f"The largest cluster must have at least as many superpixels as the smallest, {found[1]}"
    ),
}
PARTS = {
    r"Try intensity_range=\(([^,]+), ([^)]+)\), which its numbers fill": (
        rf"Open it again with the black and white levels \1 and \2, {READING}"
    ),
    r"give an intensity_range \(--intensity-range\)": f"set black and white levels {READING}",
    r"give channel_axis=\S+ \([^)]*\)": f"choose that {READING}",
    r"give channel_kind=\S+ \([^)]*\)": "use spinseg.segment in Python",
    r"pass preset='(\w+)'": r"choose the preset \1",
    r"preset='(\w+)'": r"the preset \1",
    r"such as detail=(\S+) instead of (\S+?)(?=[.,;]? |\.?$)": r"such as \1 instead of \2",
    r"as with n_sites=(\d+)": r"such as \1",
    r"more sites": "more superpixels",
    r"max_size": "the largest cluster",
    r"min_size": "the smallest",
}


def in_user_words(message: str) -> str:
    """A message of the package as a sentence in the words of the web app."""
    message = message.rstrip(".")
    for pattern, write in MESSAGES.items():
        if found := re.fullmatch(pattern, message):
            return f"{write(found)}."
    for pattern, instead in PARTS.items():
        message = re.sub(pattern, instead, message)
    return f"{message}."
