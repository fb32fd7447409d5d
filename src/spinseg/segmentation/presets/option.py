"""Options of presets: how they are declared, checked, compared and written as Python."""

import ast
import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from spinseg._errors import InvalidInput
from spinseg._validation import check_choice, check_int, check_real, invalid
from spinseg.model import priors
from spinseg.model.priors import PartitionPrior
from spinseg.sampler.plan import DataDriven

AN_ARRAY = "an array"  # in place of a mask or of seeds that came from no file


class Slider(NamedTuple):
    """The range of an option in the web app; `scale` is "linear" or "log", and `step` its distance of positions."""

    least: float
    most: float
    scale: str = "linear"
    step: float | None = None


@dataclass(frozen=True)
class Option:
    """What is known of an option: its help, the values it takes, and its slider in the web app, if it has one.

    `kind` is the type of a value that can be typed: int, float, bool or str. An option that `is_open` also takes other
    objects, such as arrays, which the preset checks.
    """

    help: str
    kind: type = str
    choices: tuple[str, ...] = ()
    above: float = -math.inf
    least: float = -math.inf
    most: float = math.inf
    slider: Slider | None = None
    is_open: bool = False
    may_be_none: bool = False

    def check(self, name: str, value: Any) -> None:
        """Refuse a value of another kind, out of range, or not among the choices."""
        if (value is None and self.may_be_none) or (self.is_open and not isinstance(value, (str, type(None)))):
            return
        if self.choices:
            check_choice(name, value, self.choices)
        elif self.kind is bool and not isinstance(value, bool):
            invalid(name, "be True or False", value)
        elif self.kind is int:
            check_int(name, value, at_least=int(max(self.least, -(2**63))), below=int(min(self.most + 1, 2**63)))
        elif self.kind is float:
            check_real(name, value, above=self.above, at_least=self.least, at_most=self.most)


def option(default: Any, help: str, *, kind: type | None = None, **about: Any) -> Any:
    """The field of a dataclass for an option of a preset.

    Parameters
    ----------
    default : object
        The default value; an option whose default is None may be None.
    help : str
        What it is, for the command line.
    kind : type, optional
        int, float, bool or str; by default that of `default`.
    **about
        Limits `least`, `most` and `above`, `choices`, a `slider` in the web app, and whether the option `is_open` to
        objects other than of its kind.

    Returns
    -------
    dataclasses.Field
        What a subclass of `Preset` assigns to the annotated name.

    Examples
    --------
    >>> import spinseg as ss
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, eq=False, kw_only=True, repr=False)
    ... class Plain(ss.Paper, listed=False):
    ...     beta: float = 0.0
    ...     shift: float = ss.option(
    ...         0.5, "Where to begin.", least=0, most=1
    ...     )
    >>> Plain(shift=0.25)
    Plain(shift=0.25)
    """
    kind = kind or (type(default) if isinstance(default, (bool, int, float)) else str)
    return field(default=default, metadata={"option": Option(help, kind, may_be_none=default is None, **about)})


def as_python(name: str, value: Any) -> str:
    """An argument as Python; an array is represented by the name of the argument."""
    if isinstance(value, np.generic):
        value = value.item()
    if type(value) in (tuple, list) and all(isinstance(item, (str, int, float, np.generic)) for item in value):
        value = type(value)(item.item() if isinstance(item, np.generic) else item for item in value)
    elif not isinstance(value, (str, int, float, dict, type(None))):
        return f"ss.{value!r}" if isinstance(value, (PartitionPrior, DataDriven)) else name
    return name if value == AN_ARRAY else repr(value)


def equal(a: Any, b: Any) -> bool:
    """Whether two values of an option are equal: arrays item by item, and priors attribute by attribute."""
    if isinstance(a, PartitionPrior) and type(a) is type(b):
        return all(equal(value, getattr(b, name)) for name, value in vars(a).items())
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and np.array_equal(a, b)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(equal, a, b))
    return bool(a == b)


KINDS = "DirichletProcess PitmanYor Potts FiniteDirichlet MixtureOfFiniteMixtures ParsimoniousProcess TemperedProcess"
PRIORS: dict[str, type[PartitionPrior]] = {name: getattr(priors, name) for name in KINDS.split()}  # of numbers alone


def prior_from_text(text: str) -> PartitionPrior:
    """The prior of a call such as "PitmanYor(3.0, discount=0.25)"."""
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
