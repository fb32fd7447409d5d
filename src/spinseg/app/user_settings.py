"""The settings that a user has chosen on the page, as settings of `segment` and as a command line."""

import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from spinseg._validation import check_choice, invalid
from spinseg.app.controls import CONTROLS, DEFAULT_LABELS, MAX_SITES, PRIORS, STARTS, prior_parameters
from spinseg.segmentation.presets import PRESETS, settings_of
from spinseg.segmentation.prior_names import prior_named
from spinseg.segmentation.settings import Settings

DIFFERENT_STARTS = ("greedy", "one", "singletons", "greedy")  # of the first to the fourth chain
CLASS_STARTS = ("one", "singletons", "one", "singletons")  # of the preset classes, where merging ends at one cluster
MAX_SINGLETON_SITES = 4000  # for the default start: the first sweeps take time quadratic in the number of clusters
MAX_SEED_PIXELS = 4000  # of all seeds together; a request has at most 64 kB

SeedPixels = tuple[tuple[int, tuple[tuple[int, int], ...]], ...]


@dataclass(frozen=True)
class UserSettings:
    """All settings of the page; None leaves a value to the preset. `seeds` has each seed with its pixels."""

    preset: str = "photo"
    prior: str = "preset"
    start: str = "different"
    alpha: float | None = None
    discount: float | None = None
    labels: int | None = None
    min_size: int | None = None
    max_size: int | None = None
    detail: float | None = None
    beta: float | None = None
    count_weight: float | None = None
    n_sites: int | None = None
    lam: float | None = None
    chains: int = 2
    seed: int = 0
    seeds: SeedPixels = ()

    @classmethod
    def from_json(cls, sent: Mapping[str, Any]) -> "UserSettings":
        """Check what the page sent; values that do not apply to the preset or the prior are dropped."""
        check_choice("preset", sent.get("preset", "photo"), list(PRESETS))
        check_choice("prior", sent.get("prior", "preset"), list(PRIORS))
        check_choice("start", sent.get("start", "different"), list(STARTS))
        known = set(asdict(cls()))
        for name in sent:
            if name not in known:
                invalid("settings", f"be among {', '.join(sorted(known))}", name)
        values: dict[str, Any] = {name: sent[name] for name in ("preset", "prior", "start") if name in sent}
        of_prior = prior_parameters(sent.get("prior", "preset"))
        for control in CONTROLS:
            value = sent.get(control.name)
            applies = control.group != "prior" or control.name in of_prior
            applies = applies and control.only in (None, sent.get("preset", "photo"))
            if value is not None and applies:
                values[control.name] = control.checked(value)
        return cls(**values, seeds=_checked_seeds(sent.get("seeds") or {}))

    def starts(self, n_pixels: int) -> str | tuple[str, ...]:
        """The `init` of `segment` for an image of `n_pixels`."""
        if self.start != "different":
            return self.start
        preset = PRESETS[self.preset]
        if preset.connected and self.beta is None:
            return str(preset.init)
        n_sites = self._n_sites(n_pixels) or min(n_pixels, preset.max_pixels or n_pixels) / preset.pixels_per_site
        starts: tuple[str, ...] = CLASS_STARTS if self.preset == "classes" else DIFFERENT_STARTS
        if self.preset != "classes" and n_sites > MAX_SINGLETON_SITES:
            starts = tuple("one" if start == "singletons" else start for start in starts)
        return starts[: self.chains] if self.chains > 1 else starts[0]

    def sites_key(self) -> tuple[Any, ...]:
        """The settings that the sites depend on."""
        return self.preset, self.n_sites

    def likelihood_key(self) -> tuple[Any, ...]:
        """The settings that the sites, the likelihood and the couplings depend on."""
        return *self.sites_key(), self.beta, self.count_weight

    def needs_restart(self, before: "UserSettings") -> bool:
        """Whether chains under the settings `before` cannot continue under these."""
        names = ("preset", "start", *(control.name for control in CONTROLS if control.restarts))
        return any(getattr(self, name) != getattr(before, name) for name in names)

    def _prior_options(self) -> dict[str, Any]:
        """The prior and its parameters as options of the command line, with the number of labels if it needs one."""
        labels = self.labels
        if labels is None and self.prior in ("potts", "finite"):
            labels = int(DEFAULT_LABELS)
        prior = None if self.prior == "preset" else self.prior
        options = {"prior": prior, "alpha": self.alpha, "discount": self.discount, "labels": labels}
        return options | {"min_size": self.min_size, "max_size": self.max_size}

    def settings(self, n_pixels: int) -> Settings:
        """The settings of `segment` for an image of `n_pixels`."""
        options = self._prior_options()
        name, parameters = (
            options.pop("prior"),
            {"concentration": options.pop("alpha"), "n_labels": options.pop("labels")},
        )
        others = {} if self.beta is None else {"beta": self.beta}
        prior = prior_named(name, self.preset, others=others, **parameters, **options)
        given: dict[str, Any] = {"prior": prior, "beta": self.beta, "lam": self.lam, "n_sites": self._n_sites(n_pixels)}
        given |= {"count_weight": self.count_weight, "detail": self.detail}
        given |= {"chains": self.chains, "init": self.starts(n_pixels)}
        return settings_of(self.preset, {name: value for name, value in given.items() if value is not None})

    def _n_sites(self, n_pixels: int) -> int | None:
        """The number of sites to ask for; None leaves it to the preset, unless that would be more than MAX_SITES."""
        preset = PRESETS[self.preset]
        if self.n_sites is None and preset.max_pixels is None and n_pixels / preset.pixels_per_site > MAX_SITES:
            return MAX_SITES
        return self.n_sites

    def command(self, source: str, n_pixels: int, sweeps: int, reading_options: Mapping[str, Any] | None = None) -> str:
        """The command line that gives the same result; `reading_options` are keywords of `read_picture`."""
        starts = self.starts(n_pixels)
        options = {"preset": None if self.preset == "photo" else self.preset, **self._prior_options()}
        options |= {"beta": self.beta, "lambda": self.lam, "sites": self._n_sites(n_pixels)}
        options |= {"count-weight": self.count_weight, "detail": self.detail, "sweeps": sweeps, "chains": self.chains}
        options |= {"init": starts if isinstance(starts, str) else ",".join(starts), "seed": self.seed}
        options |= _as_options(reading_options or {})
        parts = [f"--{name.replace('_', '-')} {value}" for name, value in options.items() if value is not None]
        return " ".join(["spinseg", "segment", shlex.quote(source), *parts])


def _as_options(reading_options: Mapping[str, Any]) -> dict[str, str]:
    """Keywords of `read_picture` as options of the command line."""
    options = {}
    if "channel_axis" in reading_options:
        axis = reading_options["channel_axis"]
        options["channel-axis"] = "none" if axis is None else str(axis)
    if "intensity_range" in reading_options:
        options["intensity-range"] = " ".join(map(repr, reading_options["intensity_range"]))
    return options


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
