"""What a user can set on the page: names, ranges and explanations."""

from base64 import b64encode
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from spinseg._validation import check_int, check_real, invalid
from spinseg._version import VERSION
from spinseg.image.render import label_colors
from spinseg.pictures import PICTURES
from spinseg.segmentation.presets import PRESETS
from spinseg.segmentation.prior_names import PRIORS as NAMED_PRIORS
from spinseg.segmentation.settings import Settings

MAX_SITES, MAX_CHAINS = 20_000, 4
PALETTE_SIZE, PALETTE_SATURATION, MIDDLE_GRAY = 1000, 0.45, 150  # clusters are large areas: their colors are muted


@dataclass(frozen=True)
class Control:
    """A number that the user can set; its fields are keys of the JSON that the page is built from.

    A change of a control that `restarts` restarts the chains; `only` names the one preset that has the control; `step`
    is the distance between two positions of its slider.
    """

    name: str
    label: str
    symbol: str
    group: str
    least: float
    most: float
    scale: str = "linear"
    whole: bool = False
    restarts: bool = False
    only: str | None = None
    step: float | None = None

    def checked(self, value: Any) -> float | int:
        """The value, if it is within the range."""
        if self.whole:
            value = check_int(self.name, value, at_least=int(self.least))
            return value if value <= self.most else invalid(self.name, f"be at most {self.most}", value)
        return check_real(self.name, value, at_least=self.least, at_most=self.most)


CONTROLS = (
    Control("alpha", "Concentration", "α", "prior", 1e-6, 1e3, "log"),
    Control("discount", "Discount", "θ", "prior", 0, 0.95),
    Control("labels", "Labels", "K", "prior", 2, 200, "log", whole=True),
    Control("min_size", "Smallest cluster", "", "prior", 1, 500, "log", whole=True),
    Control("max_size", "Largest cluster", "", "prior", 1, MAX_SITES, "log", whole=True),
    Control("detail", "Detail", "", "result", 0, 1, only="photo", step=0.05),
    Control("beta", "Smoothness", "β", "posterior", -2, 10),
    Control("count_weight", "Count weight", "", "posterior", 1e-5, 1, "log"),
    Control("n_sites", "Sites", "n", "posterior", 10, MAX_SITES, "log", whole=True, restarts=True),
    Control("lam", "Bond strength", "λ", "sampler", 0, 50),
    Control("chains", "Chains", "", "sampler", 1, MAX_CHAINS, whole=True, restarts=True),
    Control("seed", "Seed", "", "sampler", 0, 2**31 - 1, whole=True, restarts=True),
)
EXPLANATIONS = {
    "alpha": "A larger concentration makes more clusters likely a priori.",
    "discount": "A larger discount makes many small clusters beside a few large ones likely a priori.",
    "labels": "The maximum number of clusters; for a mixture of finite mixtures, the expected number of labels.",
    "min_size": "The minimum number of sites in a cluster.",
    "max_size": "The maximum number of sites in a cluster.",
    "detail": "How finely the result is divided. Chains draw divisions of every detail, so that it changes at once.",
    "beta": "How strongly neighboring sites prefer to be in the same cluster. One value holds for all pairs of "
    "neighbors; if it is not set, the preset photo computes one for each pair from the evidence of a boundary.",
    "count_weight": "The number of observations that a pixel counts for: less than 1, because neighboring pixels are "
    "not independent.",
    "n_sites": "The approximate number of superpixels that the image is divided into. Clusters are sets of sites.",
    "lam": "How likely neighboring sites are to move together; at 0 they move one by one. It affects how fast the "
    "chains mix, not the posterior. If it is not set, the presets photo and classes draw it at random before each "
    "sweep.",
    "chains": "The number of independent chains. Chains from different starts that agree have forgotten "
    "their starts, but may all have missed something.",
    "seed": "The seed of the random numbers. The same seed gives the same chains.",
}


PRIORS = {  # labels and explanations
    "preset": (
        "Prior of the preset",
        "The preset photo has a cost for each region, and none for its size; paper has a Dirichlet process, and "
        "classes one with a cost for each cluster that grows with the number of sites.",
    ),
    "dp": ("Dirichlet process", "Any number of clusters; large clusters are favoured."),
    "py": ("Pitman-Yor process", "Any number of clusters; their sizes follow a power law."),
    "potts": ("Potts", "At most K clusters; the prior does not depend on their sizes."),
    "finite": ("Finite Dirichlet", "At most K clusters, with Dirichlet-distributed weights."),
    "mfm": ("Mixture of finite mixtures", "A finite Dirichlet prior with an unknown number of labels."),
}
PRIOR_CONTROLS = {"concentration": "alpha", "discount": "discount", "n_labels": "labels"}
DEFAULT_LABELS = 10.0  # of priors for which `segment` has no default
STARTS = {  # labels and explanations
    "different": ("a different start for each", "Chains from different starts that disagree have not converged."),
    "greedy": ("merging", "Pairs of clusters are merged as long as the posterior probability grows."),
    "one": ("one cluster", "All sites are in one cluster."),
    "singletons": ("single sites", "Every site is a cluster of its own."),
}
PRESET_EXPLANATIONS = {
    "photo": "For photographs: superpixels follow edges, and couplings depend on the evidence of a boundary.",
    "classes": "For kinds of tissue or material: a cluster may lie in many places, and its outlines follow the pixels.",
    "paper": "As in Xu, Caron & Doucet: histograms of color words, equal couplings and their sampler.",
}


def prior_defaults(prior: str) -> dict[str, float]:
    """The defaults of a prior's parameters, by the names of their controls."""
    defaults = {} if prior == "preset" else NAMED_PRIORS[prior].defaults
    return {PRIOR_CONTROLS[name]: DEFAULT_LABELS if value is None else value for name, value in defaults.items()}


def prior_parameters(prior: str) -> list[str]:
    """The names of the controls that apply to a prior."""
    return [*prior_defaults(prior), "min_size", "max_size"]


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
            {"name": name, "about": text, "values": _preset_values(PRESETS[name])}
            for name, text in PRESET_EXPLANATIONS.items()
        ],
        "priors": [
            {"name": name, "label": label, "about": text, "defaults": prior_defaults(name)}
            | {"parameters": prior_parameters(name)}
            for name, (label, text) in PRIORS.items()
        ],
        "starts": [{"name": name, "label": label, "about": text} for name, (label, text) in STARTS.items()],
        "controls": [
            {"kind": "number", **asdict(control), "about": EXPLANATIONS[control.name]} for control in CONTROLS
        ],
        "palette": b64encode(np.rint(palette).astype(np.uint8).tobytes()).decode(),
    }


def _preset_values(settings: Settings) -> dict[str, float | None]:
    """The values that a preset has for controls; None for what is not one number."""
    values = {name: getattr(settings, name) for name in ("count_weight", "beta", "lam", "n_sites", "detail")}
    return {name: value if isinstance(value, (int, float)) else None for name, value in values.items()}
