"""`Preset`: what `segment` asks of a preset, and how the options of one are declared, checked and written down."""

import ast
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinseg._errors import InvalidInput
from spinseg._validation import check_choice, check_int, check_real, integer_array, invalid
from spinseg.graph.adjacency import region_adjacency
from spinseg.graph.site_graph import SiteGraph
from spinseg.image.picture import Picture
from spinseg.image.superpixels import KINDS, PIXELS_PER_SITE, superpixels
from spinseg.image.working import WorkingCopy
from spinseg.model.posterior import Model
from spinseg.model.priors import (
    DirichletProcess,
    FiniteDirichlet,
    MixtureOfFiniteMixtures,
    ParsimoniousProcess,
    PartitionPrior,
    PitmanYor,
    Potts,
    TemperedProcess,
)
from spinseg.sampler.chains import Chains
from spinseg.sampler.estimates.minimize import allowed_estimate
from spinseg.sampler.plan import ATTEMPTS, DataDriven, Lam, check_lam
from spinseg.sampler.sampler import listed_starts
from spinseg.sampler.starts import ALTERNATING_STARTS, STARTS

if TYPE_CHECKING:
    from spinseg.segmentation.problem import Problem

AN_ARRAY = "an array"  # in place of a mask or of seeds that came from no file
DEFAULT = "photo"  # the preset of `segment`
ESTIMATES = ("vi", "binder", "best")

Start = str | Sequence[str] | NDArray[np.integer]  # of chains, as `sample` takes it


class Slider(NamedTuple):
    """The range of an option in the web app; `scale` is "linear" or "log", and `step` its distance of positions."""

    least: float
    most: float
    scale: str = "linear"
    step: float | None = None


@dataclass(frozen=True)
class Option:
    """What is known of an option: its help, the values it takes, and its slider in the web app, if it has one.

    `kind` is the type of a value that can be typed: int, float, bool or str; other values are for Python alone.
    """

    help: str
    kind: type = str
    choices: tuple[str, ...] = ()
    above: float = -math.inf
    least: float = -math.inf
    most: float = math.inf
    slider: Slider | None = None

    def check(self, name: str, value: Any) -> None:
        """Refuse a number or a switch that is none, or out of range."""
        if self.kind is bool and not isinstance(value, (bool, np.bool_)):
            invalid(name, "be True or False", value)
        if self.kind is int and value is not None:
            check_int(name, value, at_least=int(self.least))
        if self.kind is float and value is not None:
            check_real(name, value, above=self.above, at_least=self.least, at_most=self.most)


def option(default: Any, help: str, *, kind: type | None = None, **about: Any) -> Any:
    """The field of a dataclass for an option of a preset; the other keywords are attributes of `Option`."""
    kind = kind or (type(default) if isinstance(default, (bool, int, float)) else str)
    return field(default=default, metadata={"option": Option(help, kind, **about)})


class SitePosterior(NamedTuple):
    """The sites of an image, and the posterior over their partitions.

    `relief` is the boundary map that outlines follow, if there is one, and `is_cut` says whether seeds cut sites.
    """

    sites: NDArray[np.int32]
    model: Model
    relief: NDArray[np.floating[Any]] | None = None
    is_cut: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class Preset:
    """A way to segment: a posterior for an image, and the partition to show for draws of it.

    A subclass is a frozen dataclass. Its fields made with `option` are keywords of `segment` and options of the command
    line; a subclass changes the default of an inherited one with ``name: type = default``. It has a `name` and a line
    `about` it, and defines `posterior`. Everything else has a default here. Subclasses are known by name from the
    moment they are defined.

    Examples
    --------
    >>> import spinseg as ss
    >>> from dataclasses import replace
    >>> replace(ss.Photo(), detail=0.9)
    Photo(detail=0.9)
    """

    name: ClassVar[str]
    about: ClassVar[str]
    connected: ClassVar[bool] = False  # whether the posterior has connected clusters only
    usual_chains: ClassVar[int] = 2
    usual_sweeps: ClassVar[int | None] = None  # None: until the chains have converged
    max_pixels: ClassVar[int | None] = None  # a larger image is reduced before it is analyzed
    pixels_per_site: ClassVar[float] = PIXELS_PER_SITE
    known: ClassVar[dict[str, type["Preset"]]] = {}

    n_sites: int | None = option(
        None, "About how many superpixels.", kind=int, least=1, slider=Slider(10, 20_000, "log")
    )
    sites: str | NDArray[np.integer] = option("slic", "How superpixels are made.", choices=KINDS)
    prior: PartitionPrior = option(
        DirichletProcess(1.0), "The prior on partitions, such as 'PitmanYor(3.0, discount=0.25)'."
    )
    estimate: str = option(
        "vi",
        "The partition to show: least expected variation of information, least expected loss of Binder, or the best "
        "visited.",
        choices=ESTIMATES,
    )
    moves: str = option("auto", "All moves of the sampler, or those of the paper.", choices=tuple(ATTEMPTS))
    lam: Lam = option(
        None,
        "Bond strength: how likely neighbors are to move together. It changes how fast chains mix, not the posterior.",
        kind=float,
        slider=Slider(0, 50),
    )
    init: Start = option(
        "opposite",
        "Where chains start: one, singletons or greedy, or one for each chain, separated by commas; opposite or "
        "dispersed starts differ between chains.",
    )

    def __init_subclass__(cls, listed: bool = True) -> None:
        if listed:
            Preset.known[cls.name] = cls

    def __post_init__(self) -> None:
        """Refuse whatever can be refused without an image."""
        for name, about in self.options().items():
            value = getattr(self, name)
            if about.choices and isinstance(value, (str, type(None))):
                check_choice(name, value, about.choices)
            elif name != "lam":
                about.check(name, value)
        check_choice("estimate", self.estimate, ESTIMATES)
        check_choice("moves", self.moves, tuple(ATTEMPTS))
        check_lam(self.lam)
        if not isinstance(self.prior, PartitionPrior):
            invalid("prior", "be a PartitionPrior", self.prior)
        if not isinstance(self.sites, str) and integer_array("sites", self.sites).ndim not in (2, 3):
            invalid("sites", "be a kind of sites or have two or three axes", np.shape(self.sites))
        if self.n_sites is not None and self.sites_are_pixels:
            invalid("n_sites", "be None where every pixel is a site", self.n_sites)
        self._check_init()

    def _check_init(self) -> None:
        if isinstance(self.init, str):
            return check_choice("init", self.init, (*STARTS, *ALTERNATING_STARTS))
        starts = listed_starts(self.init)
        for start in [self.init] if starts is None else starts:
            if isinstance(start, str):
                check_choice("init", start, STARTS)
            elif integer_array("init", start).ndim != 1:
                invalid("init", "be labels of the sites, or such for each chain", np.shape(start))

    # --- options ---

    @classmethod
    def options(cls) -> dict[str, Option]:
        """The options by name, each with its help; those of a base class come first."""
        found = {}
        for name in (each.name for each in fields(cls)):
            declared = [_fields(base)[name].metadata for base in cls.__mro__ if name in _fields(base)]
            if about := next(filter(None, declared), None):
                found[name] = about["option"]
        return found

    def changes(self) -> dict[str, Any]:
        """The fields that differ from their defaults, by name."""
        usual = type(self)()
        return {name: value for name, value in vars(self).items() if not _equal(value, getattr(usual, name))}

    def as_json(self) -> dict[str, Any]:
        """The name and the options as values of JSON; what is none, as Python."""
        about = {"preset": self.name, "connected": self.connected}
        return about | {name: _as_json(name, getattr(self, name)) for name in self.options()}

    def call(self, source: str | None, arguments: Mapping[str, Any], **expressions: str) -> str:
        """The call of `segment` with this preset, as Python; `expressions` replace options."""
        options = {name: as_python(name, value) for name, value in self.changes().items()} | expressions
        options |= {name: as_python(name, value) for name, value in arguments.items()}
        parts = [repr(source) if source else "image", *([] if self.name == DEFAULT else [repr(self.name)])]
        return f"ss.segment({', '.join([*parts, *(f'{name}={text}' for name, text in options.items())])})"

    def __repr__(self) -> str:
        changes = [f"{name}={value!r}" for name, value in self.changes().items()]
        return f"{type(self).__name__}({', '.join(changes)})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(
            _equal(value, getattr(other, name)) for name, value in vars(self).items()
        )

    def __hash__(self) -> int:
        return hash(type(self))

    # --- the posterior ---

    @property
    def sites_are_pixels(self) -> bool:
        """Whether every pixel is a site."""
        return isinstance(self.sites, str) and self.sites == "pixels"

    def check_fit(self, picture: Picture) -> None:
        """Refuse options that do not fit an image, before any work on it."""
        if not isinstance(self.sites, str):
            if np.shape(self.sites) != picture.shape:
                invalid("sites", f"have the image's shape {picture.shape}", np.shape(self.sites))
        elif self.sites == "felzenszwalb" and len(picture.shape) == 3:
            invalid("sites", "be another than 'felzenszwalb' for a volume", self.sites)

    def make_sites(self, image: WorkingCopy, **how: Any) -> tuple[NDArray[np.int32], SiteGraph]:
        """The sites of an image, and the graph of those that touch; other keywords are those of `superpixels`."""
        how = {"pixels_per_site": self.pixels_per_site} | how
        sites = superpixels(image.picture, kind=self.sites, n_sites=self.n_sites, mask=image.inside, **how)
        if not self.sites_are_pixels:
            return sites, region_adjacency(sites)
        return sites, SiteGraph.grid(sites.shape, inside=image.inside)

    def posterior(self, image: WorkingCopy, seeds: NDArray[np.int64] | None = None) -> SitePosterior:
        """The sites of an image and the posterior over their partitions; `seeds` are those of its pixels."""
        raise NotImplementedError

    # --- the answer ---

    def estimated(self, drawn: Chains, model: Model, seed: int, chain: int | None = None) -> NDArray[np.int32]:
        """The partition that `estimate` asks for, from the draws of all chains or of one.

        It is one that the posterior allows; the best one visited where an interruption left no draws.
        """
        if self.estimate == "best" or not drawn.labels.size:
            return drawn.best_of(0, chain)
        draws = drawn.labels if chain is None else drawn.labels[chain : chain + 1]
        return allowed_estimate(model, draws, self.estimate, rng=seed)

    def partition(self, drawn: Chains, problem: "Problem", seed: int) -> NDArray[np.int32]:
        """The partition that a segmentation shows."""
        return self.estimated(drawn, problem.model, seed)

    def refines(self, problem: "Problem") -> bool:
        """Whether outlines follow the pixels, not the sites."""
        return False

    def refined_sites(self, problem: "Problem", drawn: Chains, partition: NDArray[np.int32]) -> NDArray[np.int32]:
        """The sites of the whole image with refined outlines, -1 outside; where `refines` is true."""
        raise NotImplementedError

    def not_validated(self, picture: Picture, has_seeds: bool) -> str | None:
        """What the probabilities have not been compared with human annotations for; None where they have been."""
        return f"the preset {self.name}"

    @property
    def finer(self) -> str:
        """What to try for a finer division."""
        return "preset='photo', or more sites, as with n_sites=2000"


def chosen_preset(preset: Preset | str, options: Mapping[str, Any]) -> Preset:
    """The preset of a name, or the one given, with these options."""
    if isinstance(preset, str):
        check_choice("preset", preset, list(Preset.known))
        kind = Preset.known[preset]
    elif isinstance(preset, Preset):
        kind = type(preset)
    else:
        invalid("preset", "be a preset or the name of one", preset)
    names = {each.name for each in fields(kind)}
    for name in options:
        if name not in names:
            known = ", ".join(kind.options())
            raise InvalidInput(f"{name} is not an option of the preset {kind.name}, which has {known}")
    return kind(**options) if isinstance(preset, str) else replace(preset, **options)


PRIORS: dict[str, type[PartitionPrior]] = {  # that numbers define
    kind.__name__: kind
    for kind in (
        DirichletProcess,
        PitmanYor,
        Potts,
        FiniteDirichlet,
        MixtureOfFiniteMixtures,
        ParsimoniousProcess,
        TemperedProcess,
    )
}


def prior_from_text(text: str) -> PartitionPrior:
    """The prior of a call such as "PitmanYor(3.0, discount=0.25)".

    Examples
    --------
    >>> prior_from_text("Potts(5, min_size=2)")
    Potts(n_labels=5, min_size=2)
    """
    rule = f"be a call, such as 'PitmanYor(3.0, discount=0.25)', of {', '.join(PRIORS)}"
    try:
        call = ast.parse(text.strip(), mode="eval").body
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
            raise SyntaxError
        numbers = [ast.literal_eval(value) for value in call.args]
        named = {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}
        return PRIORS[call.func.id](*numbers, **named)
    except InvalidInput:
        raise
    except (KeyError, MemoryError, RecursionError, SyntaxError, TypeError, ValueError):
        invalid("prior", rule, text)


def as_python(name: str, value: Any) -> str:
    """An argument as Python; an array is represented by the name of the argument."""
    if isinstance(value, np.generic):
        value = value.item()
    is_plain = type(value) in (tuple, list) and all(isinstance(item, (str, int, float)) for item in value)
    if isinstance(value, (str, int, float, dict, type(None))) or is_plain:
        return name if value == AN_ARRAY else repr(value)
    return f"ss.{value!r}" if isinstance(value, (PartitionPrior, DataDriven)) else name


def _as_json(name: str, value: Any) -> str | int | float | bool | None:
    if isinstance(value, np.generic):
        value = value.item()
    return value if isinstance(value, (str, int, float, bool, type(None))) else as_python(name, value)


def _fields(kind: type) -> Mapping[str, Any]:
    return getattr(kind, "__dataclass_fields__", {})


def _equal(a: Any, b: Any) -> bool:
    """Whether two values of an option are equal: arrays item by item, and priors attribute by attribute."""
    if isinstance(a, PartitionPrior) and type(a) is type(b):
        return all(_equal(value, getattr(b, name)) for name, value in vars(a).items())
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and np.array_equal(a, b)
    return bool(a == b)
