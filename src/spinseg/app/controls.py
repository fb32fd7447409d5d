"""What a user can set on the page: the controls, made from the options of the presets, and the settings chosen."""

import shlex
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np

import spinseg.segmentation.presets  # noqa: F401 (makes them known)
from spinseg._validation import check_choice, check_int, check_real, invalid
from spinseg._version import VERSION
from spinseg.image.render import label_colors
from spinseg.model.priors import PartitionPrior
from spinseg.pictures import PICTURES
from spinseg.segmentation.presets.option import PRIORS, Slider
from spinseg.segmentation.presets.preset import DEFAULT, Preset, chosen_preset

MAX_SITES, MAX_CHAINS = 20_000, 4
DIFFERENT_STARTS = ("greedy", "one", "greedy", "one")  # of the first to the fourth chain
MAX_SEED_PIXELS = 4000  # of all seeds together; a request has at most 64 kB
PALETTE_SIZE, PALETTE_SATURATION, MIDDLE_GRAY = 1000, 0.45, 150  # clusters are large areas: their colors are muted

SeedPixels = tuple[tuple[int, tuple[tuple[int, int], ...]], ...]


@dataclass(frozen=True)
class Control:
    """A number that the user can set; its fields are keys of the JSON that the page is built from.

    A change of a control that `restarts` restarts the chains; `presets` names those that have the control, and None
    stands for all; `step` is the distance between two positions of its slider.
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
    restarts: bool = False
    presets: tuple[str, ...] | None = None

    def checked(self, value: Any) -> float | int:
        """The value, if it is within the range."""
        if self.whole:
            value = check_int(self.name, value, at_least=int(self.least))
            return value if value <= self.most else invalid(self.name, f"be at most {self.most}", value)
        return check_real(self.name, value, at_least=self.least, at_most=self.most)


LABELS = {"lam": ("Bond strength", "λ"), "beta": ("Smoothness", "β"), "n_sites": ("Sites", "n")}
GROUPS = {"detail": "result", "lam": "sampler"}  # of options; the others belong to the posterior


def _option_controls() -> list[Control]:
    """A control for each option of a preset that has a slider."""
    found: dict[str, Control] = {}
    for kind in Preset.known.values():
        for name, option in kind.options().items():
            if option.slider is None or name in found:
                continue
            label, symbol = LABELS.get(name, (name.replace("_", " ").capitalize(), ""))
            having = tuple(other.name for other in Preset.known.values() if name in other.options())
            how: dict[str, Any] = {"whole": option.kind is int, "restarts": name == "n_sites", "presets": having}
            about = (label, symbol, GROUPS.get(name, "posterior"), option.help)
            found[name] = Control(name, *about, *option.slider, **how)
    return list(found.values())


def _prior_control(name: str, label: str, symbol: str, about: str, *slider: Any, whole: bool = False) -> Control:
    return Control(name, label, symbol, "prior", about, *Slider(*slider), whole=whole)


CONTROLS = (
    _prior_control(
        "concentration", "Concentration", "α", "A larger one makes more clusters likely a priori.", 1e-6, 1e3, "log"
    ),
    _prior_control(
        "discount",
        "Discount",
        "θ",
        "A larger one makes many small clusters beside a few large ones likely a priori.",
        0,
        0.95,
    ),
    _prior_control("n_labels", "Labels", "K", "The maximum number of clusters.", 2, 200, "log", whole=True),
    _prior_control("mean_labels", "Labels", "K", "The expected number of labels.", 2, 200, "log"),
    _prior_control(
        "min_size", "Smallest cluster", "", "The minimum number of sites in a cluster.", 1, 500, "log", whole=True
    ),
    _prior_control(
        "max_size", "Largest cluster", "", "The maximum number of sites in a cluster.", 1, MAX_SITES, "log", whole=True
    ),
    *_option_controls(),
    Control(
        "chains",
        "Chains",
        "",
        "sampler",
        "The number of independent chains. If they agree, they have forgotten where they started.",
        1,
        MAX_CHAINS,
        whole=True,
        restarts=True,
    ),
    Control(
        "seed",
        "Seed",
        "",
        "sampler",
        "The same seed gives the same chains.",
        0,
        2**31 - 1,
        whole=True,
        restarts=True,
    ),
)
BY_NAME = {control.name: control for control in CONTROLS}
USUAL = {"chains": 2, "seed": 0}  # controls that always have a number


class PriorChoice(NamedTuple):
    """The label of a prior, what it says, and its parameters with their usual values."""

    label: str
    about: str
    usual: dict[str, float]


OF_PRESET = "preset"  # the choice of the preset's own prior
PRIOR_CHOICES = {
    OF_PRESET: PriorChoice(
        "Prior of the preset",
        "Photo has a cost for each region, and none for its size; paper has a Dirichlet process, and classes one with "
        "a cost for each cluster that grows with the number of sites.",
        {},
    ),
    "DirichletProcess": PriorChoice(
        "Dirichlet process", "Any number of clusters; large clusters are favored.", {"concentration": 3.0}
    ),
    "PitmanYor": PriorChoice(
        "Pitman-Yor process",
        "Any number of clusters; their sizes follow a power law.",
        {"concentration": 3.0, "discount": 0.25},
    ),
    "Potts": PriorChoice("Potts", "At most K clusters; the prior does not depend on their sizes.", {"n_labels": 10}),
    "FiniteDirichlet": PriorChoice(
        "Finite Dirichlet",
        "At most K clusters, with Dirichlet-distributed weights.",
        {"concentration": 1.0, "n_labels": 10},
    ),
    "MixtureOfFiniteMixtures": PriorChoice(
        "Mixture of finite mixtures",
        "A finite Dirichlet prior with an unknown number of labels.",
        {"concentration": 1.0, "mean_labels": 10.0},
    ),
}
STARTS = {  # labels and explanations
    "different": ("a different start for each", "Chains from different starts that disagree have not converged."),
    "greedy": ("merging", "Pairs of clusters are merged as long as the posterior probability grows."),
    "one": ("one cluster", "All sites are in one cluster."),
    "singletons": ("single sites", "Every site is a cluster of its own."),
}


@dataclass(frozen=True)
class UserSettings:
    """All settings of the page; `numbers` has the controls that are set, and `seeds` each seed with its pixels."""

    preset: str = DEFAULT
    prior: str = OF_PRESET
    start: str = "different"
    numbers: Mapping[str, float] = field(default_factory=dict)
    seeds: SeedPixels = ()

    @classmethod
    def from_json(cls, sent: Mapping[str, Any]) -> "UserSettings":
        """Check what the page sent; values that do not apply to the preset or the prior are dropped."""
        preset, prior, start = sent.get("preset", DEFAULT), sent.get("prior", OF_PRESET), sent.get("start", "different")
        check_choice("preset", preset, list(Preset.known))
        check_choice("prior", prior, list(PRIOR_CHOICES))
        check_choice("start", start, list(STARTS))
        known = {"preset", "prior", "start", "seeds", *BY_NAME}
        numbers = {}
        for name, value in sent.items():
            if name not in known:
                invalid("settings", f"be among {', '.join(sorted(known))}", name)
            if value is not None and name in BY_NAME and applies(BY_NAME[name], preset, prior):
                numbers[name] = BY_NAME[name].checked(value)
        return cls(preset, prior, start, numbers, _checked_seeds(sent.get("seeds") or {}))

    @property
    def chains(self) -> int:
        """The number of chains."""
        return int(self.numbers.get("chains", USUAL["chains"]))

    @property
    def seed(self) -> int:
        """The seed."""
        return int(self.numbers.get("seed", USUAL["seed"]))

    def without_detail(self) -> "UserSettings":
        """The settings that the chains depend on."""
        numbers = {name: value for name, value in self.numbers.items() if name != "detail"}
        return UserSettings(self.preset, self.prior, self.start, numbers, self.seeds)

    def posterior_key(self) -> tuple[Any, ...]:
        """What the sites, the likelihood and the couplings depend on."""
        of_posterior = [c.name for c in CONTROLS if c.group == "posterior"]
        return self.preset, *(self.numbers.get(name) for name in of_posterior)

    def needs_restart(self, before: "UserSettings") -> bool:
        """Whether chains under the settings `before` cannot continue under these."""
        names = [control.name for control in CONTROLS if control.restarts]
        same = (self.preset, self.start) == (before.preset, before.start)
        return not same or any(self.numbers.get(name) != before.numbers.get(name) for name in names)

    def options(self, n_pixels: int) -> dict[str, Any]:
        """The options of the preset for an image of `n_pixels`: not more than MAX_SITES."""
        kind = Preset.known[self.preset]
        options: dict[str, Any] = {name: value for name, value in self.numbers.items() if name in kind.options()}
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

    def _prior(self) -> PartitionPrior | None:
        """The prior that was chosen, with size limits; None for that of the preset."""
        limits = {name: int(self.numbers[name]) for name in ("min_size", "max_size") if name in self.numbers}
        if self.prior == OF_PRESET:
            return Preset.known[self.preset]().prior.with_limits(**limits) if limits else None
        numbers: dict[str, Any] = {
            name: self.numbers.get(name, value) for name, value in PRIOR_CHOICES[self.prior].usual.items()
        }
        return PRIORS[self.prior](**numbers, **limits)

    def command(self, source: str, n_pixels: int, sweeps: int, reading_options: Mapping[str, Any] | None = None) -> str:
        """The command line that gives the same result; `reading_options` are keywords of `read_picture`."""
        reading = dict(reading_options or {})
        options = {} if self.preset == DEFAULT else {"preset": self.preset}
        options |= self.options(n_pixels) | {"sweeps": sweeps, "chains": self.chains, "seed": self.seed}
        if "channel_axis" in reading:
            options["channel_axis"] = "none" if reading["channel_axis"] is None else reading["channel_axis"]
        if isinstance(options.get("init"), tuple):
            options["init"] = ",".join(options["init"])
        parts = [f"--{name.replace('_', '-')} {shlex.quote(str(value))}" for name, value in options.items()]
        if "intensity_range" in reading:
            parts.append(f"--intensity-range {' '.join(map(repr, reading['intensity_range']))}")
        return " ".join(["spinseg", "segment", shlex.quote(source), *parts])


def applies(control: Control, preset: str, prior: str) -> bool:
    """Whether a control has an effect with a preset and a prior."""
    if control.group == "prior":
        return control.name in prior_parameters(prior)
    return control.presets is None or preset in control.presets


def prior_parameters(prior: str) -> list[str]:
    """The names of the controls that apply to a prior."""
    return [*PRIOR_CHOICES[prior].usual, "min_size", "max_size"]


def _checked_seeds(sent: Any) -> SeedPixels:
    """The pixels of each seed, from an object whose keys are numbers."""
    rule = "be the pixels of each seed, {1: [[row, column], ..], ..}"
    if not isinstance(sent, dict) or not all(isinstance(pixels, list) and pixels for pixels in sent.values()):
        invalid("seeds", rule, sent)
    if sum(map(len, sent.values())) > MAX_SEED_PIXELS:
        invalid("seeds", f"have at most {MAX_SEED_PIXELS} pixels", "more")
    found = []
    for number, pixels in sent.items():
        for pixel in pixels:
            if not isinstance(pixel, list) or len(pixel) != 2 or not all(type(at) is int for at in pixel):
                invalid("seeds", rule, pixel)
        if not (number.isascii() and number.isdecimal() and len(number) < 10):
            invalid("seeds", rule, number)
        found.append((int(number), tuple((row, column) for row, column in pixels)))
    return tuple(found)


def page_description(max_running_chains: int, upload_bytes: int, max_pixels: int) -> dict[str, Any]:
    """The JSON that the page is built from: examples, controls and limits."""
    limits = {"upload_bytes": upload_bytes, "pixels": max_pixels, "sites": MAX_SITES, "chains": MAX_CHAINS}
    palette = PALETTE_SATURATION * label_colors(PALETTE_SIZE) + (1 - PALETTE_SATURATION) * MIDDLE_GRAY
    return {
        "version": VERSION,
        "limits": limits | {"running": max_running_chains},
        "examples": [
            {"name": name, "credit": picture.credit, "picture": f"/api/examples/{name}"}
            for name, picture in PICTURES.items()
        ],
        "presets": [
            {"name": name, "about": kind.about, "values": _numbers(kind()), "connected": kind.connected}
            for name, kind in Preset.known.items()
        ],
        "priors": [
            {"name": name, "label": choice.label, "about": choice.about, "defaults": choice.usual}
            | {"parameters": prior_parameters(name)}
            for name, choice in PRIOR_CHOICES.items()
        ],
        "starts": [{"name": name, "label": label, "about": text} for name, (label, text) in STARTS.items()],
        "controls": [asdict(control) for control in CONTROLS],
        "palette": b64encode(np.rint(palette).astype(np.uint8).tobytes()).decode(),
    }


def _numbers(preset: Preset) -> dict[str, float]:
    """The numbers that a preset has for controls."""
    values = {name: getattr(preset, name, None) for name in BY_NAME}
    return {name: value for name, value in values.items() if isinstance(value, (int, float))}
