"""Messages of the package in the words of the web app: no parameter names, no Python."""

import re

from spinseg._advice import Advice, Setting
from spinseg._errors import InvalidInput
from spinseg.image.formats import RULE
from spinseg.image.seeds import APART, INSIDE, ONE_NUMBER
from spinseg.model.priors import AT_LEAST_MIN_SIZE
from spinseg.model.seeds import NO_CROSSING, NO_PATHS
from spinseg.segmentation.problem import NEED_CONNECTED

COLORS = ("yellow", "blue", "pink", "green", "orange", "violet")  # of the scribbles, whose numbers start at 1
AXES = ("first", "second", "third", "fourth")
READING = "(How to read the file)"
READABLE = "PNG, JPEG, GIF, WebP, BMP, JPEG 2000, TIFF or NPY file"  # without the formats of volumes
DAMAGED = re.compile(r"be a whole \S.* file")  # the rule that a file breaks that no decoder can read to its end

# What is said of an input that breaks a rule; fields are those of the rule.
SENTENCES = {
    NO_CROSSING: "{strokes} cannot be joined without crossing another color.",
    NO_PATHS: "{strokes} cannot be joined without crossing another color.",
    APART: "{strokes} must lie at least {step} pixels from those of other colors.",
    ONE_NUMBER: "A place cannot have two colors: keep strokes apart.",
    INSIDE: "A stroke must lie inside the visible part of the image.",
    NEED_CONNECTED: "Scribbles need connected regions: choose one of the presets {presets}.",
    AT_LEAST_MIN_SIZE: "The largest cluster must have at least as many superpixels as the smallest, {min_size}.",
    RULE: f"This file cannot be opened as an image. Choose a {READABLE}.",
}
# What an error is about where no partition satisfies a prior.
LIMITS = {"init", "prior", "n_sites", "min_size", "max_size", "the size of each component of the graph"}
IMPOSSIBLE = "No segmentation satisfies these limits of size and number: relax one of them."


class Refused(Exception):
    """Raised to refuse a request, with a status and one sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


def refusal(error: InvalidInput) -> str:
    """Why an input is refused, in a sentence."""
    if DAMAGED.fullmatch(error.rule):
        return f"{error.name} is damaged or incomplete."
    if error.rule not in SENTENCES:
        return IMPOSSIBLE if error.name in LIMITS else f"{error}."
    colors = [COLORS[n - 1] if n <= len(COLORS) else f"color {n}" for n in error.about.get("seeds", ())]
    return SENTENCES[error.rule].format(strokes=f"The {' and '.join(colors)} strokes", **error.about)


def in_user_words(advice: str) -> str:
    """Advice in the words of the web app."""
    return advice.written(_written) if isinstance(advice, Advice) else advice


def _written(setting: Setting) -> str:
    name, value = setting
    if name == "preset":
        return f"the preset {value}"
    if name == "channel_axis":
        return f"{'no channels' if value is None else f'channels along the {AXES[value]} axis'} {READING}"
    if name == "intensity_range":
        return f"the black and white levels {'' if value is ... else '{:g} and {:g} '.format(*value)}{READING}"
    return "spinseg.segment in Python" if name == "channel_kind" else f"{value}"
