"""The one way to skip finished work: a result is done if it has the wanted settings, seed, inputs and version."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from spinseg._errors import InvalidInput
from spinseg._run.atomic import FilePath, printable
from spinseg._version import VERSION

MAX_DIFFERENCES = 3  # named in a message about the result of another run

Input = Mapping[str, Any]


class Provenance(NamedTuple):
    """What a result was computed from; inputs and settings by name, in types that JSON knows.

    The "source" of an input is a path or another name. Further entries, such as the hash of a file, tell whether it has
    changed. None stands for an input that is not given.
    """

    inputs: Mapping[str, Input | None]
    version: str | None  # of spinseg
    seed: Any
    settings: Mapping[str, Any]

    @classmethod
    def of_run(
        cls, settings: Mapping[str, Any], seed: Any = None, inputs: Mapping[str, Input | None] | None = None
    ) -> "Provenance":
        """The provenance of what this version computes, with values as they come back from a JSON file."""
        record = cls(inputs or {}, VERSION, seed, settings)
        return cls(**json.loads(json.dumps(record._asdict())))

    def to_json(self) -> dict[str, Any]:
        """As a dict for JSON, the version first."""
        return {"spinseg": self.version, "seed": self.seed, "inputs": self.inputs, "settings": self.settings}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> "Provenance":
        """The inverse of `to_json`; it raises some exception where the record is something else."""
        inputs = {name: None if item is None else dict(item) for name, item in record["inputs"].items()}
        return cls(inputs, record["spinseg"], record["seed"], dict(record["settings"]))

    def differences(self, wanted: "Provenance") -> list[str]:
        """How this provenance differs from the wanted one, in words such as "seed 0, not 1"."""
        found = []
        for name, value in wanted.inputs.items():
            stored = self.inputs.get(name)
            source, wanted_source = (None if item is None else item.get("source") for item in (stored, value))
            if source != wanted_source:
                found.append(f"{name} {source}, not {wanted_source}")
            elif stored != value:
                found.append(f"{name} has changed since")
        stored_values = {"spinseg": self.version, "seed": self.seed, **self.settings}
        for name, value in {"spinseg": wanted.version, "seed": wanted.seed, **wanted.settings}.items():
            if stored_values.get(name) != value:
                found.append(f"{name} {stored_values.get(name)}, not {value}")
        return found


def is_done(stored: Provenance | None, wanted: Provenance, place: FilePath, advice: str | None) -> bool:
    """Whether what `place` holds has the wanted provenance, so that it need not be computed again.

    The result of another run raises InvalidInput, which gives the advice; without advice, it may be replaced.
    """
    if stored is None:
        return False
    differences = stored.differences(wanted)
    if differences and advice is not None:
        n_more = len(differences) - MAX_DIFFERENCES
        listed = ", ".join(differences[:MAX_DIFFERENCES]) + (f" and {n_more} more" if n_more > 0 else "")
        raise InvalidInput(f"{printable(place)} holds the result of another run ({listed}), which is kept; {advice}")
    return not differences
