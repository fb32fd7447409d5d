"""What a user can set in the web app: the controls, made from the options of the presets, and the settings chosen."""

import shlex
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

import spinseg.segmentation.presets  # noqa: F401 (makes them known)
from spinseg._validation import InvalidInput, check_choice, check_int, check_real, invalid
from spinseg.image.picture import Picture
from spinseg.image.render import OUTLINE_COLORS, label_colors
from spinseg.image.seeds import SeedPoints
from spinseg.model.priors import PartitionPrior
from spinseg.pictures import PICTURES
from spinseg.segmentation.presets.option import PRIORS
from spinseg.segmentation.presets.preset import DEFAULT, Preset, chosen_preset

MAX_SITES, MAX_CHAINS = 20_000, 4
DIFFERENT_STARTS = ("greedy", "one", "greedy", "one")  # of the first to the fourth chain
RESTARTING = {"preset", "start", "n_sites", "chains", "seed"}  # settings whose change restarts the chains
MAX_SEED_PIXELS = 4000  # of all seeds together; a request has at most 64 kB
PALETTE_SIZE, PALETTE_SATURATION, MIDDLE_GRAY = 1000, 0.45, 150  # clusters are large areas: their colors are muted


@dataclass(frozen=True)
class Control:
    """A number that the user can set; its fields are keys of the JSON that the page is built from.

    `presets` names those that have the control, and None stands for all; `step` is the distance between two positions
    of its slider. A control with a `usual` number always has one; others are automatic unless they are set.
    """

    name: str
    label: str
    symbol: str
    group: str
    about: str
    least: float
    most: float
    scale: str = "linear"
    step: float | None = None
    whole: bool = False
    usual: int | None = None
    presets: tuple[str, ...] | None = None

    def checked(self, value: Any) -> float | int:
        """The value, if it is within the range."""
        try:
            number = check_real(self.name, value, at_least=self.least, at_most=self.most)
            return check_int(self.name, value, at_least=int(self.least)) if self.whole else number
        except InvalidInput:
            kind = "a whole number" if self.whole else "a number"
            raise InvalidInput(f"{self.label} must be {kind} from {self.least:g} to {self.most:g}") from None

    def applies(self, preset: str, prior: str) -> bool:
        """Whether it has an effect with a preset and a prior."""
        if self.group == "prior":
            return self.name in {*PRIOR_CHOICES[prior][2], *SIZE_LIMITS}
        return self.presets is None or preset in self.presets


MORE = "A larger one makes more clusters likely a priori."
POWER_LAW = "A larger one makes many small clusters beside a few large ones likely a priori."
AGREEMENT = "The number of independent chains. If they agree, the starting point no longer matters."
SAME_CHAINS = "The same random seed gives the same chains."
OF_PRIOR = (
    Control("concentration", "Concentration", "α", "prior", MORE, 1e-6, 1e3, "log"),
    Control("discount", "Discount", "θ", "prior", POWER_LAW, 0, 0.95),
    Control("n_labels", "Labels", "K", "prior", "The maximum number of clusters.", 2, 200, "log", whole=True),
    Control("mean_labels", "Labels", "K", "prior", "The expected number of labels.", 2, 200, "log"),
    Control("min_size", "Smallest cluster", "", "prior", "Fewest superpixels in it.", 1, 500, "log", whole=True),
    Control("max_size", "Largest cluster", "", "prior", "Most superpixels in it.", 1, MAX_SITES, "log", whole=True),
)
CHAINS = Control("chains", "Chains", "", "sampler", AGREEMENT, 1, MAX_CHAINS, whole=True, usual=2)
SEED = Control("seed", "Random seed", "", "sampler", SAME_CHAINS, 0, 2**31 - 1, whole=True, usual=0)

# How options of presets are presented; the others have their names for labels, and belong to the posterior.
LABELS = {"lam": ("Bond strength", "λ"), "beta": ("Smoothness", "β"), "n_sites": ("Superpixels", "n")}
LABELS["detail"] = ("Level of detail", "")
GROUPS = {"detail": "result", "lam": "sampler"}


def controls() -> dict[str, Control]:
    """All controls by name; among them one for each option of a preset that has a slider."""
    of_presets: dict[str, Control] = {}
    for preset, kind in Preset.known.items():
        for name, option in kind.options().items():
            if option.slider is None:
                continue
            label, symbol = LABELS.get(name, (name.replace("_", " ").capitalize(), ""))
            named = (name, label, symbol, GROUPS.get(name, "posterior"))
            made = Control(*named, option.help, *option.slider, whole=option.kind is int, presets=())
            known = of_presets.setdefault(name, made)
            of_presets[name] = replace(known, presets=(*(known.presets or ()), preset))
    return {control.name: control for control in (*OF_PRIOR, *of_presets.values(), CHAINS, SEED)}


OF_PRESET = "preset"  # the choice of the preset's own prior
SIZE_LIMITS = ("min_size", "max_size")
PRIOR_CHOICES: dict[str, tuple[str, str, dict[str, float]]] = {  # labels, explanations, parameters with usual values
    OF_PRESET: ("Prior of the preset", "Every preset has a prior that suits it.", {}),
    "DirichletProcess": (
        "Dirichlet process",
        "Any number of clusters; large clusters are favored.",
        {"concentration": 3.0},
    ),
    "PitmanYor": (
        "Pitman-Yor process",
        "Any number of clusters; their sizes follow a power law.",
        {"concentration": 3.0, "discount": 0.25},
    ),
    "Potts": ("Potts", "At most K clusters; the prior does not depend on their sizes.", {"n_labels": 10}),
    "FiniteDirichlet": (
        "Finite Dirichlet",
        "At most K clusters, with Dirichlet-distributed weights.",
        {"concentration": 1.0, "n_labels": 10},
    ),
    "MixtureOfFiniteMixtures": (
        "Mixture of finite mixtures",
        "A finite Dirichlet prior with an unknown number of labels.",
        {"concentration": 1.0, "mean_labels": 10.0},
    ),
}
STARTS = {  # labels and explanations
    "different": ("a different start for each", "Chains from different starts that disagree have not converged."),
    "greedy": ("merging", "Pairs of clusters are merged as long as the posterior probability grows."),
    "one": ("one cluster", "All superpixels are in one cluster."),
    "singletons": ("single superpixels", "Every superpixel is a cluster of its own."),
}


@dataclass(frozen=True)
class UserSettings:
    """All settings of the web app; `numbers` has the controls that are set, and `seeds` each seed with its pixels."""

    preset: str = DEFAULT
    prior: str = OF_PRESET
    start: str = "different"
    numbers: Mapping[str, Any] = field(default_factory=dict)
    seeds: SeedPoints = field(default_factory=dict)

    @classmethod
    def from_json(cls, sent: Mapping[str, Any]) -> "UserSettings":
        """Check what the page sent; values that do not apply to the preset or the prior are dropped."""
        choices = {"preset": list(Preset.known), "prior": list(PRIOR_CHOICES), "start": list(STARTS)}
        chosen = {name: sent[name] for name in choices if name in sent}
        for name, value in chosen.items():
            check_choice(name, value, choices[name])
        known, settings = controls(), cls(**chosen, seeds=checked_seeds(sent.get("seeds") or {}))
        numbers = {}
        for name, value in sent.items():
            if name not in {*choices, *known, "seeds"}:
                invalid("settings", f"be among {', '.join(sorted({*choices, *known, 'seeds'}))}", name)
            if value is not None and name in known and known[name].applies(settings.preset, settings.prior):
                numbers[name] = known[name].checked(value)
        return replace(settings, numbers=numbers)

    @property
    def chains(self) -> int:
        """The number of chains."""
        return int(self.numbers.get("chains", CHAINS.usual))

    @property
    def seed(self) -> int:
        """The random seed."""
        return int(self.numbers.get("seed", SEED.usual))

    def changes(self, before: "UserSettings") -> set[str]:
        """The names of the settings that differ from those before."""
        now, then = ({**vars(each), "numbers": None, **each.numbers} for each in (self, before))
        return {name for name in {*now, *then} if now.get(name) != then.get(name)}

    def keeps_seeds_of(self, before: "UserSettings") -> bool:
        """Whether all pixels of the seeds before are still those of the same seeds."""
        now, then = ({(n, *pixel) for n, pixels in each.seeds.items() for pixel in pixels} for each in (self, before))
        return then <= now

    def options(self, n_pixels: int) -> dict[str, Any]:
        """The options of the preset for an image of `n_pixels`: not more than MAX_SITES."""
        kind = Preset.known[self.preset]
        options = {name: value for name, value in self.numbers.items() if name in kind.options()}
        if "n_sites" not in options and kind.max_pixels is None and n_pixels / kind.pixels_per_site > MAX_SITES:
            options["n_sites"] = MAX_SITES
        if (prior := self._prior()) is not None:
            options["prior"] = prior
        if self.start != "different":
            options["init"] = self.start
        elif kind().init == "one":  # which would be the same for all
            options["init"] = DIFFERENT_STARTS[: self.chains] if self.chains > 1 else DIFFERENT_STARTS[0]
        return options

    def chosen(self, n_pixels: int) -> Preset:
        """The preset with its options for an image of `n_pixels`."""
        return chosen_preset(self.preset, self.options(n_pixels))

    def preset_for(self, picture: Picture) -> Preset:
        """The preset with its options for an image."""
        return self.chosen(int(np.prod(picture.shape))).for_image(picture)

    def _prior(self) -> PartitionPrior | None:
        """The prior that was chosen, with size limits; None for that of the preset."""
        limits = {name: self.numbers[name] for name in SIZE_LIMITS if name in self.numbers}
        if self.prior == OF_PRESET:
            return Preset.known[self.preset]().prior.with_limits(**limits) if limits else None
        usual = PRIOR_CHOICES[self.prior][2]
        return PRIORS[self.prior](**{name: self.numbers.get(name, value) for name, value in usual.items()}, **limits)

    def command(self, source: str, n_pixels: int, sweeps: int, reading_options: Mapping[str, Any]) -> str:
        """The command line that gives the same result; `reading_options` are keywords of `read_picture`."""
        options = {} if self.preset == DEFAULT else {"preset": self.preset}
        options |= self.options(n_pixels) | {"sweeps": sweeps, "chains": self.chains, "seed": self.seed}
        if isinstance(options.get("init"), tuple):
            options["init"] = ",".join(options["init"])
        if "channel_axis" in reading_options:
            axis = reading_options["channel_axis"]
            options["channel_axis"] = "none" if axis is None else axis
        parts = [f"--{name.replace('_', '-')} {shlex.quote(str(value))}" for name, value in options.items()]
        if "intensity_range" in reading_options:
            parts.append("--intensity-range {!r} {!r}".format(*reading_options["intensity_range"]))
        return " ".join(["spinseg", "segment", shlex.quote(source), *parts])


def checked_seeds(sent: Any) -> dict[int, list[list[int]]]:
    """The pixels of each seed, from an object whose keys are numbers."""

    def is_seed(number: str, pixels: Any) -> bool:
        is_number = number.isascii() and number.isdecimal() and len(number) < 10
        return is_number and isinstance(pixels, list) and bool(pixels) and all(map(is_pixel, pixels))

    def is_pixel(pixel: Any) -> bool:
        return isinstance(pixel, list) and [type(at) for at in pixel] == [int, int]

    if not isinstance(sent, dict) or not all(is_seed(*each) for each in sent.items()):
        invalid("seeds", "be the pixels of each seed, {1: [[row, column], ..], ..}", sent)
    if sum(map(len, sent.values())) > MAX_SEED_PIXELS:
        invalid("seeds", f"have at most {MAX_SEED_PIXELS} pixels", "more")
    return {int(number): pixels for number, pixels in sent.items()}


def page_description() -> dict[str, Any]:
    """The JSON that the web app is built from: examples, controls and colors."""
    palette = PALETTE_SATURATION * label_colors(PALETTE_SIZE) + (1 - PALETTE_SATURATION) * MIDDLE_GRAY
    known, presets = controls(), []
    for name, kind in Preset.known.items():
        usual = {control: getattr(kind(), control, None) for control in known}
        values = {control: value for control, value in usual.items() if isinstance(value, (int, float))}
        presets.append({"name": name, "about": kind.about, "values": values, "connected": kind.connected})
    return {
        "examples": [
            {"name": name, "credit": picture.credit, "picture": f"/api/examples/{name}"}
            for name, picture in PICTURES.items()
        ],
        "presets": presets,
        "priors": [
            {"name": name, "label": label, "about": text, "defaults": usual, "parameters": [*usual, *SIZE_LIMITS]}
            for name, (label, text, usual) in PRIOR_CHOICES.items()
        ],
        "starts": [{"name": name, "label": label, "about": text} for name, (label, text) in STARTS.items()],
        "controls": [asdict(control) | {"restarts": name in RESTARTING} for name, control in known.items()],
        "outlines": OUTLINE_COLORS,
        "palette": b64encode(np.rint(palette).astype(np.uint8).tobytes()).decode(),
    }
