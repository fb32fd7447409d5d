"""What a page has chosen: read, compared with what was chosen before, and as settings or a command line."""

import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from spinseg._validation import check_choice, invalid
from spinseg.app.controls import CONTROLS, MOST_SITES, PRIORS, STARTS_SHOWN, parameters
from spinseg.segmentation.settings import PRESETS, Settings, prior_named, settings_of

DIFFERENT = ("greedy", "one", "singletons", "greedy")  # starts of chains, where each has its own
MOST_ALONE = 4000  # sites that a chain starts alone of unasked: its first sweeps take as long as their square


@dataclass(frozen=True)
class Chosen:
    """All choices of a page, as it sent them; None is the preset's."""

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

    @classmethod
    def read(cls, sent: Mapping[str, Any]) -> "Chosen":
        """What a page sent, refused where it is unknown or out of range; what does not apply is left out."""
        check_choice("preset", sent.get("preset", "photo"), list(PRESETS))
        check_choice("prior", sent.get("prior", "preset"), list(PRIORS))
        check_choice("start", sent.get("start", "different"), list(STARTS_SHOWN))
        known = set(asdict(cls()))
        for name in sent:
            if name not in known:
                invalid("settings", f"be among {', '.join(sorted(known))}", name)
        values: dict[str, Any] = {name: sent[name] for name in ("preset", "prior", "start") if name in sent}
        has = parameters(sent.get("prior", "preset"))
        for control in CONTROLS:
            value = sent.get(control.name)
            applies = control.group != "prior" or control.name in has
            applies = applies and control.only in (None, sent.get("preset", "photo"))
            if value is not None and applies:
                values[control.name] = control.checked(value)
        return cls(**values)

    def starts(self, n_pixels: int) -> str | tuple[str, ...]:
        """Where the chains of a picture of so many pixels start, as `segment` takes it."""
        if self.start != "different":
            return self.start
        usual = PRESETS[self.preset]
        n_sites = self.sites_of(n_pixels) or min(n_pixels, usual.max_pixels or n_pixels) / usual.pixels_per_site
        each = DIFFERENT if n_sites <= MOST_ALONE else tuple("one" if s == "singletons" else s for s in DIFFERENT)
        return each[: self.chains] if self.chains > 1 else each[0]

    def of_sites(self) -> tuple[Any, ...]:
        """What the sites depend on."""
        return self.preset, self.n_sites

    def of_evidence(self) -> tuple[Any, ...]:
        """What the posterior depends on, but for the prior."""
        return *self.of_sites(), self.beta, self.count_weight, self.detail

    def begins_anew(self, before: "Chosen") -> bool:
        """Whether chains cannot go on from where they are under `before`."""
        names = ("preset", "start", *(control.name for control in CONTROLS if control.restarts))
        return any(getattr(self, name) != getattr(before, name) for name in names)

    def _named(self) -> dict[str, Any]:
        """The prior as the command line names it, with its defaults filled in where it needs them."""
        labels = self.labels
        if labels is None and self.prior in ("potts", "finite"):
            labels = int(PRIORS[self.prior].defaults["labels"])
        found: dict[str, Any] = {"prior": None if self.prior == "preset" else self.prior, "alpha": self.alpha}
        found |= {"discount": self.discount, "labels": labels}
        return found | {"min_size": self.min_size, "max_size": self.max_size}

    def settings(self, n_pixels: int) -> Settings:
        """The settings of `segment`, for a picture of so many pixels."""
        named = self._named()
        prior = prior_named(
            named["prior"],
            self.preset,
            concentration=named["alpha"],
            discount=named["discount"],
            n_labels=named["labels"],
            min_size=named["min_size"],
            max_size=named["max_size"],
        )
        given: dict[str, Any] = {"prior": prior, "beta": self.beta, "lam": self.lam, "n_sites": self.sites_of(n_pixels)}
        given |= {"count_weight": self.count_weight, "detail": self.detail}
        given |= {"chains": self.chains, "init": self.starts(n_pixels)}
        return settings_of(self.preset, {name: value for name, value in given.items() if value is not None})

    def sites_of(self, n_pixels: int) -> int | None:
        """About how many sites to ask for: the preset's choice, unless that is too many."""
        usual = PRESETS[self.preset]
        if self.n_sites is None and usual.max_pixels is None and n_pixels / usual.pixels_per_site > MOST_SITES:
            return MOST_SITES
        return self.n_sites

    def command(self, source: str, n_pixels: int, sweeps: int) -> str:
        """The command line that gives the same."""
        starts = self.starts(n_pixels)
        options = {"preset": None if self.preset == "photo" else self.preset, **self._named()}
        options |= {"beta": self.beta, "lambda": self.lam, "sites": self.sites_of(n_pixels)}
        options |= {"count-weight": self.count_weight, "detail": self.detail, "sweeps": sweeps, "chains": self.chains}
        options |= {"init": starts if isinstance(starts, str) else ",".join(starts), "seed": self.seed}
        parts = ["spinseg", "segment", shlex.quote(source)]
        for name, value in options.items():
            if value is not None:
                parts.append(f"--{name.replace('_', '-')} {value}")
        return " ".join(parts)
