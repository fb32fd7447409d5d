"""`Preset`: what `segment` asks of a preset."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from spinseg._advice import Advice, Setting
from spinseg._errors import InvalidInput
from spinseg._validation import check_choice, integer_array, invalid
from spinseg.graph.adjacency import region_adjacency
from spinseg.graph.site_graph import SiteGraph
from spinseg.image.components import three_components
from spinseg.image.intensity import MAX_CODE
from spinseg.image.picture import Picture
from spinseg.image.superpixels import KINDS, PIXELS_PER_SITE, superpixels
from spinseg.image.working import WorkingCopy
from spinseg.model.posterior import Model
from spinseg.model.priors import DirichletProcess, PartitionPrior
from spinseg.sampler.chains import Chains
from spinseg.sampler.estimates import allowed_estimate
from spinseg.sampler.plan import MOVES, Lam, check_lam
from spinseg.sampler.starts import ALTERNATING_STARTS, STARTS, listed_starts
from spinseg.segmentation.presets.option import Option, Slider, as_python, equal, option

if TYPE_CHECKING:
    from spinseg.image.boundary.maps import BoundaryMaps
    from spinseg.image.light import Light
    from spinseg.segmentation.problem import Problem

DEFAULT = "auto"  # the preset of `segment`
ESTIMATES = ("vi", "binder", "best")
RANDOM_SEED, SEED_ELSEWHERE = "rng", ("seed", "random_seed", "random_state")  # its name here, and in other libraries

Start = str | Sequence[str] | NDArray[np.integer]  # of chains, as `sample` takes it


@dataclass(frozen=True, eq=False, kw_only=True)
class Preset:
    """A way to segment: a posterior for an image, and the partition to show for draws of it.

    A subclass is a frozen dataclass with a `name` and a line `about` it. It defines `model`; everything else has a
    default here. Its fields made with `option` are keywords of `segment` and options of the command line; it changes
    the default of an inherited one with ``name: type = default``. `segment` knows it by name as soon as it is defined,
    unless it is defined with ``listed=False``. Of the keywords of `dataclass` below, `eq` and `repr` keep the
    comparison and the short text that presets have.

    Examples
    --------
    >>> import spinseg as ss
    >>> from dataclasses import dataclass
    >>> from spinseg.image.features import site_means
    >>> @dataclass(frozen=True, eq=False, kw_only=True, repr=False)
    ... class Levels(ss.Preset):
    ...     name = "levels"
    ...     about = "Squares of a grid by their mean intensity."
    ...     usual_sweeps = 20
    ...     sites: str = "grid"
    ...     spread: float = ss.option(
    ...         0.1,
    ...         "Standard deviation of intensities in a cluster.",
    ...         above=0,
    ...     )
    ...
    ...     def model(self, image, sites, graph, maps=None, seeds=None):
    ...         means = site_means(image.picture.values, sites)[:, :1]
    ...         return ss.Model(
    ...             graph,
    ...             ss.DiagonalGaussian(means, rate=2 * self.spread**2),
    ...             self.prior,
    ...             beta=0.2,
    ...         )
    >>> seg = ss.segment(
    ...     [[0] * 20 + [255] * 20] * 20,
    ...     "levels",
    ...     spread=0.2,
    ...     n_sites=32,
    ...     rng=0,
    ... )
    >>> seg.n_clusters, seg.preset
    (2, Levels(n_sites=32, spread=0.2))
    >>> del ss.Preset.known["levels"]
    """

    name: ClassVar[str]
    about: ClassVar[str]
    suits: ClassVar[str | None] = None  # a kind of image that it is chosen for, such as "a photograph"
    connected: ClassVar[bool] = False  # whether the posterior has connected clusters only
    usual_chains: ClassVar[int] = 2
    usual_sweeps: ClassVar[int | None] = None  # None: until the chains have converged
    max_pixels: ClassVar[int | None] = None  # a larger image is reduced before it is analyzed
    pixels_per_site: ClassVar[float] = PIXELS_PER_SITE
    known: ClassVar[dict[str, type[Preset]]] = {}

    n_sites: int | None = option(
        None, "About how many superpixels.", kind=int, least=1, slider=Slider(10, 20_000, "log")
    )
    sites: str | NDArray[np.integer] = option("slic", "How superpixels are made.", choices=KINDS, is_open=True)
    prior: PartitionPrior = option(
        DirichletProcess(1.0), "The prior on partitions, such as 'PitmanYor(3.0, discount=0.25)'."
    )
    estimate: str = option(
        "vi",
        "The partition to show: least expected variation of information, least expected loss of Binder, or the best "
        "visited.",
        choices=ESTIMATES,
    )
    moves: str = option("auto", "All moves of the sampler, or those of the paper.", choices=MOVES)
    lam: Lam = option(
        None,
        "Bond strength: how likely neighbors are to move together. It changes how fast chains mix, not the posterior.",
        kind=float,
        least=0,
        slider=Slider(0, 50),
        is_open=True,
    )
    init: Start = option(
        "opposite",
        "Where chains start: one, singletons or greedy, or one for each chain, separated by commas; opposite or "
        "dispersed starts differ between chains.",
    )

    def __init_subclass__(cls, listed: bool = True) -> None:
        if not listed:
            return
        if "name" not in cls.__dict__:
            raise TypeError(f"{cls.__name__} must have a name of its own, or be defined with listed=False")
        before = Preset.known.get(cls.name)
        if before is not None and (before.__module__, before.__qualname__) != (cls.__module__, cls.__qualname__):
            raise TypeError(f"the name {cls.name!r} of {cls.__name__} is taken by {before.__name__}")
        Preset.known[cls.name] = cls

    def __new__(cls, **options: Any) -> Self:
        """Refuse unknown options with the names of those that there are."""
        names = [each.name for each in fields(cls)]
        for name in options:
            if name not in names:
                _refuse_option(cls, name)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        """Refuse whatever can be refused without an image."""
        for each in fields(self):
            if isinstance(value := getattr(self, each.name), np.generic):
                object.__setattr__(self, each.name, value.item())
        for name, about in self.options().items():
            about.check(name, getattr(self, name))
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
        declared = [getattr(base, "__dataclass_fields__", {}) for base in cls.__mro__]
        found = {}
        for name in declared[0]:
            metadata = [fields_of[name].metadata for fields_of in declared if name in fields_of]
            if about := next(filter(None, metadata), None):  # a field that changes the default has none
                found[name] = about["option"]
        return found

    def changes(self) -> dict[str, Any]:
        """The fields that differ from their defaults, by name."""
        values = {each.name: (getattr(self, each.name), each.default) for each in fields(self)}
        return {name: value for name, (value, usual) in values.items() if not equal(value, usual)}

    def as_json(self) -> dict[str, Any]:
        """The name, the options and other changes as values of JSON, or as Python where there is no such value."""
        names = dict.fromkeys([*self.options(), *self.changes()])
        return {"preset": self.name, "connected": self.connected} | {
            name: value if isinstance(value, (str, int, float, type(None))) else as_python(name, value)
            for name in names
            for value in [getattr(self, name)]
        }

    def call(self, source: str | None, arguments: Mapping[str, Any], **expressions: str) -> str:
        """The call of `segment` with this preset, as Python; `expressions` replace options."""
        options = {name: as_python(name, value) for name, value in self.changes().items()} | expressions
        options |= {name: as_python(name, value) for name, value in arguments.items()}
        by_name = [] if self.name == DEFAULT else [repr(self.name)]
        kind = by_name if Preset.known.get(self.name) is type(self) else [f"{type(self).__name__}()"]
        parts = [repr(source) if source else "image", *kind, *(f"{name}={text}" for name, text in options.items())]
        return f"ss.segment({', '.join(parts)})"

    def __repr__(self) -> str:
        changes = [f"{name}={value!r}" for name, value in self.changes().items()]
        return f"{type(self).__name__}({', '.join(changes)})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(
            equal(value, getattr(other, name)) for name, value in vars(self).items()
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
        if not isinstance(self.sites, str) and np.shape(self.sites) != picture.shape:
            invalid("sites", f"have the image's shape {picture.shape}", np.shape(self.sites))

    def for_image(self, picture: Picture) -> Preset:
        """The preset to use for an image: this one, unless it chooses between others."""
        return self

    def candidates(self) -> tuple[Preset, ...]:
        """The presets that `for_image` may return."""
        return (self,)

    def analyzed(self, image: WorkingCopy, like: Picture | None = None) -> WorkingCopy:
        """The image that is analyzed: color as it is, and measured channels in three components.

        These, and what else depends on all of an image, are found in `like` where that shows more of it.
        """
        if image.picture.is_color:
            return image
        components = three_components(image.picture.codes, image.inside, None if like is None else like.codes)
        codes = np.rint(components * MAX_CODE).astype(np.uint16)
        return image._replace(picture=Picture(codes, channel_kind="measured"))

    def textured(self, image: WorkingCopy) -> WorkingCopy:
        """The image with its texture, where a preset compares that."""
        return image

    def light(self, image: WorkingCopy) -> Light | None:
        """The uneven light to remove from an image; None where light is even, or not looked at."""
        return None

    def maps(self, image: WorkingCopy) -> BoundaryMaps | None:
        """The boundary maps of an image, for its sites, model and outlines; None for a preset without."""
        return None

    def make_sites(self, image: WorkingCopy, maps: BoundaryMaps | None) -> NDArray[np.int32]:
        """The site of every pixel, -1 outside."""
        how: dict[str, Any] = {"n_sites": self.n_sites, "pixels_per_site": self.pixels_per_site}
        return superpixels(image.picture, kind=self.sites, mask=image.inside, **how)

    def graph(self, sites: NDArray[np.int32], image: WorkingCopy) -> SiteGraph:
        """The graph of the sites that touch."""
        return SiteGraph.grid(sites.shape, inside=image.inside) if self.sites_are_pixels else region_adjacency(sites)

    def model(
        self,
        image: WorkingCopy,
        sites: NDArray[np.int32],
        graph: SiteGraph,
        maps: BoundaryMaps | None = None,
        seeds: NDArray[np.int64] | None = None,
    ) -> Model:
        """The posterior over partitions of the sites of `image.picture`; `seeds` are those of the sites."""
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

    def relevant(self, drawn: Chains) -> NDArray[np.bool_]:
        """Which of the draws have a part in what is shown."""
        return np.ones(drawn.labels.shape[1], bool)

    def partition(self, drawn: Chains, problem: Problem, seed: int) -> NDArray[np.int32]:
        """The partition that a segmentation shows."""
        return self.estimated(drawn, problem.model, seed)

    def refines(self, problem: Problem) -> bool:
        """Whether outlines follow the pixels, not the sites."""
        return False

    def refined_sites(self, problem: Problem, drawn: Chains, partition: NDArray[np.int32]) -> NDArray[np.int32]:
        """The sites of the whole image with refined outlines, -1 outside; where `refines` is true."""
        raise NotImplementedError

    def not_validated(self, picture: Picture, has_seeds: bool) -> str | None:
        """What the probabilities have not been compared with human annotations for; None where they have been."""
        return f"the preset {self.name}"

    def advice(self, picture: Picture) -> Advice:
        """What to try if parts of an image that differ share a region."""
        return self.finer

    @property
    def finer(self) -> Advice:
        """What to try for a finer segmentation."""
        return Advice(Setting("preset", "photo"), ", or more superpixels, such as ", Setting("n_sites", 2000))


def _refuse_option(kind: type[Preset], name: str, function: Callable[..., Any] | None = None) -> NoReturn:
    """Refuse an unknown option with those of the preset, and with what is meant, which may be of a function."""
    given = {} if function is None else signature(function).parameters
    keywords = [other for other, each in given.items() if each.kind is each.KEYWORD_ONLY]
    names = [*(each.name for each in fields(kind)), *keywords]
    near = [RANDOM_SEED] if name in SEED_ELSEWHERE and RANDOM_SEED in names else []
    near = near or get_close_matches(name, names, 1, cutoff=0.75)
    others = [other for other, each in Preset.known.items() if name in each.options()]
    hint = f" {name} is an option of {' and '.join(others)}." if others else ""
    hint = f" Did you mean {near[0]}?" if near else hint
    known = ", ".join(kind.options())
    raise InvalidInput(f"unknown option: {name}. The preset {kind.name} has {known}.{hint}")


def chosen_preset(
    preset: Preset | str, options: Mapping[str, Any], function: Callable[..., Any] | None = None
) -> Preset:
    """The preset of a name, or the one given, with these options, which are those that the `function` was called with.

    The message for an unknown option names a keyword of the function if that is meant.
    """
    if isinstance(preset, str):
        check_choice("preset", preset, list(Preset.known))
        kind = Preset.known[preset]
    elif isinstance(preset, Preset):
        kind = type(preset)
    else:
        invalid("preset", "be a preset or the name of one", preset)
    names = [each.name for each in fields(kind)]
    for name in options:
        if name not in names:
            _refuse_option(kind, name, function)
    return kind(**options) if isinstance(preset, str) else replace(preset, **options)
