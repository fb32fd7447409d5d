"""What a person can set on the page: names, ranges and sentences."""

from base64 import b64encode
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinseg._validation import check_int, check_real, invalid
from spinseg.image.render import label_colours
from spinseg.pictures import PICTURES
from spinseg.segmentation.settings import PRESETS, PRIOR_PARAMETERS, Settings

MOST_SITES, MOST_CHAINS = 20_000, 4
MOST_COLOURS, PURITY, MIDDLE_GREY = 1000, 0.6, 150


@dataclass(frozen=True)
class Control:
    """A number that can be set; `restarts` where chains begin anew then, `only` where one preset has it."""

    name: str
    label: str
    symbol: str
    about: str
    group: str
    least: float
    most: float
    scale: str = "linear"
    whole: bool = False
    restarts: bool = False
    only: str | None = None

    def checked(self, value: Any) -> float | int:
        """A value, refused where it is out of range."""
        if self.whole:
            value = check_int(self.name, value, at_least=int(self.least))
            return value if value <= self.most else invalid(self.name, f"be at most {self.most}", value)
        return check_real(self.name, value, at_least=self.least, at_most=self.most)


CONTROLS = (
    Control(
        "alpha", "Concentration", "α", "Larger: more clusters, before the picture is seen.", "prior", 1e-6, 1e3, "log"
    ),
    Control("discount", "Discount", "θ", "Larger: more small clusters beside a few large ones.", "prior", 0, 0.95),
    Control(
        "labels",
        "Labels",
        "K",
        "The most clusters; for a mixture of finite mixtures their expected number.",
        "prior",
        2,
        200,
        "log",
        whole=True,
    ),
    Control(
        "min_size", "Smallest cluster", "", "Sites that a cluster has at least.", "prior", 1, 500, "log", whole=True
    ),
    Control(
        "max_size",
        "Largest cluster",
        "",
        "Sites that a cluster has at most.",
        "prior",
        1,
        MOST_SITES,
        "log",
        whole=True,
    ),
    Control(
        "detail",
        "Detail",
        "",
        "How little evidence makes a boundary, and how small a region may be.",
        "posterior",
        0,
        1,
        only="photo",
    ),
    Control(
        "beta",
        "Smoothness",
        "β",
        "How strongly touching sites hold together, all alike. Left alone, photo weighs the "
        "evidence of a boundary between any two.",
        "posterior",
        -2,
        10,
    ),
    Control(
        "count_weight",
        "Count weight",
        "",
        "How many observations a pixel counts for: neighbouring pixels are far from independent.",
        "posterior",
        1e-5,
        1,
        "log",
    ),
    Control(
        "n_sites",
        "Sites",
        "n",
        "About how many small patches the picture is cut into; clusters are made of them.",
        "posterior",
        10,
        MOST_SITES,
        "log",
        whole=True,
        restarts=True,
    ),
    Control(
        "lam",
        "Bond strength",
        "λ",
        "How readily touching sites move together: 0 moves them one by one. It changes the "
        "way, not the posterior. Left alone, photo draws it afresh before each sweep.",
        "sampler",
        0,
        50,
    ),
    Control(
        "chains",
        "Chains",
        "",
        "Run side by side: where they agree, the answer does not depend on the start.",
        "sampler",
        1,
        MOST_CHAINS,
        whole=True,
        restarts=True,
    ),
    Control(
        "seed", "Seed", "", "The same seed gives the same chains.", "sampler", 0, 2**31 - 1, whole=True, restarts=True
    ),
)


class Prior(NamedTuple):
    """A prior as the page names it."""

    label: str
    about: str
    defaults: dict[str, float]


PRIORS = {
    "preset": Prior(
        "That of the preset",
        "photo has a Dirichlet process whose preference for large clusters is tempered, paper a plain one.",
        {},
    ),
    "dp": Prior("Dirichlet process", "Any number of clusters; large ones grow larger.", {"alpha": 3.0}),
    "py": Prior(
        "Pitman-Yor process",
        "Any number of clusters, sizes falling off like a power law.",
        {"alpha": 3.0, "discount": 0.25},
    ),
    "potts": Prior("Potts", "At most K clusters, of any sizes alike.", {"labels": 10}),
    "finite": Prior("Finite Dirichlet", "At most K clusters, with weights of their own.", {"labels": 10, "alpha": 1.0}),
    "mfm": Prior(
        "Mixture of finite mixtures",
        "A finite Dirichlet whose number of labels is unknown.",
        {"alpha": 1.0, "labels": 10},
    ),
}
STARTS_SHOWN = {
    "different": (
        "a different one for each",
        "Chains from different starts that agree have likely found all there is.",
    ),
    "greedy": ("merging", "Sites joined one pair at a time, as long as the posterior gains."),
    "one": ("one cluster", "Everything together."),
    "singletons": ("single sites", "As many clusters as there are sites."),
}
PRESETS_SHOWN = {
    "photo": "For photographs: sites follow edges, and couplings the evidence of a boundary.",
    "paper": "As in Xu, Caron & Doucet: histograms of colour words, equal couplings, their sampler.",
}


def parameters(prior: str) -> list[str]:
    """Which controls a prior has."""
    return [*PRIOR_PARAMETERS.get(prior, ()), "min_size", "max_size"]


def about(most_running: int, upload_bytes: int, most_pixels: int) -> dict[str, Any]:
    """What the page is built from."""
    limits = {"upload_bytes": upload_bytes, "pixels": most_pixels, "sites": MOST_SITES, "chains": MOST_CHAINS}
    return {
        "version": version("spinseg"),
        "limits": limits | {"running": most_running},
        "examples": [
            {"name": name, "credit": picture.credit, "picture": f"/api/examples/{name}"}
            for name, picture in PICTURES.items()
        ],
        "presets": [
            {"name": name, "about": text, "values": _values(PRESETS[name])} for name, text in PRESETS_SHOWN.items()
        ],
        "priors": [{"name": name, **prior._asdict(), "parameters": parameters(name)} for name, prior in PRIORS.items()],
        "starts": [{"name": name, "label": label, "about": text} for name, (label, text) in STARTS_SHOWN.items()],
        "controls": [{"kind": "number", **asdict(control)} for control in CONTROLS],
        "palette": b64encode(_calm(label_colours(MOST_COLOURS)).tobytes()).decode(),
    }


def _calm(colours: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Colours, somewhat nearer to grey: whole areas are painted in them."""
    return np.rint(PURITY * colours.astype(np.float64) + (1 - PURITY) * MIDDLE_GREY).astype(np.uint8)


def _values(settings: Settings) -> dict[str, float | None]:
    """What a preset chooses, as far as it is a number."""
    values = {name: getattr(settings, name) for name in ("count_weight", "beta", "lam", "n_sites", "detail")}
    return {name: value if isinstance(value, (int, float)) else None for name, value in values.items()}
