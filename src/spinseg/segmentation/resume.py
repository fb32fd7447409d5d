"""Which of the results that folders hold need not be computed again, and which must not be replaced."""

import inspect
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from spinseg._run.atomic import printable
from spinseg._run.provenance import Provenance, is_done
from spinseg._validation import InvalidInput, generator
from spinseg._version import VERSION
from spinseg.image.formats import content_hash
from spinseg.image.intensity import check_intensity_range
from spinseg.image.io import read_mask
from spinseg.image.layout import check_channels
from spinseg.image.picture import checked_mask
from spinseg.image.roles import Roles
from spinseg.image.seeds import read_seeds
from spinseg.segmentation.files import FILES, POLYGON_FILES, check_replaceable
from spinseg.segmentation.presets.preset import chosen_preset
from spinseg.segmentation.problem import check_seeds_fit
from spinseg.segmentation.schedule import Schedule
from spinseg.segmentation.segment import segment

RESULT_START = b'{\n  "source": '  # the first bytes of every result.json
INPUTS = {"source": "image", "mask": "mask", "seeds": "seeds"}  # the names of inputs in result.json and in messages
READING = ("channel_axis", "channel_kind", "intensity_range", "outlines", "one_each")
ADVICE = "--overwrite replaces it"


def expected_result(keywords: dict[str, Any]) -> dict[str, Any]:
    """The entries of result.json that `segment` with these keywords gives for every image; of "settings" a list.

    It raises what `segment` would raise for each of them.
    """
    shared = {name: each.default for name, each in inspect.signature(segment).parameters.items()}
    options = {name: value for name, value in keywords.items() if name not in shared}
    given = shared | keywords
    preset = chosen_preset(given["preset"], options, segment)
    schedule = Schedule.of(preset, *(given[name] for name in Schedule._fields))
    generator(given["rng"])
    roles = Roles.of(given["outlines"], given["one_each"])
    reading = {name: given[name] for name in READING} | roles._asdict()
    check_channels(given["channel_axis"], given["channel_kind"])
    if given["intensity_range"] is not None:
        check_intensity_range(given["intensity_range"])
    files = {name: given[name] for name in ("mask", "seeds") if given[name] is not None}
    if "mask" in files:
        checked_mask(read_mask(files["mask"]))
    check_seeds_fit(preset, seeds=given["seeds"], one_each=given["one_each"])
    if "seeds" in files:
        read_seeds(files["seeds"])
    common = schedule._asdict() | {"start_label": given["start_label"]}
    settings = [each.as_json() | common for each in preset.candidates()]
    hashes = {name: content_hash(file) for name, file in files.items()}
    expected = {"seed": given["rng"], "sha256": hashes, "settings": settings, "versions": {"spinseg": VERSION}}
    return json.loads(json.dumps(expected | reading | files, default=str))


def finished_result(
    source: str, folder: str, expected: dict[str, Any], overwrite: bool, also: Sequence[str]
) -> dict[str, Any] | None:
    """The result.json of an image that need not be segmented again; None if it must be.

    It is finished if it was not interrupted, all its files are there, and those that it was computed from have the same
    paths and the same content. A result of another run raises InvalidInput, unless it may be overwritten.
    """
    result = read_result(folder, overwrite)
    if result is None or result.get("interrupted") is True:
        return None
    hashes = expected["sha256"] | {"source": content_hash(source)}
    settings = result.get("settings")
    settings = settings if settings in expected["settings"] else expected["settings"][0]
    entries = expected | {"source": source, "sha256": hashes, "settings": settings}
    stored, wanted = _provenance(result), _provenance(entries)
    for name, file in wanted.inputs.items():
        before = stored.inputs[name]
        if file and before and file["source"] == before["source"] and file["sha256"] is None:  # has it changed?
            raise InvalidInput(f"cannot read {printable(file['source'])}, which the result was made from")
    if not is_done(stored, wanted, folder, None if overwrite else ADVICE):
        return None
    left_out = set(result["left_out"] if isinstance(result.get("left_out"), dict) else ())
    left_out |= set(POLYGON_FILES if len(result.get("shape", ())) == 3 else ())
    lacking = [name for name in {*FILES, *also} - left_out if not os.path.isfile(os.path.join(folder, name))]
    return None if lacking else result | {"source": source}


def _provenance(result: dict[str, Any]) -> Provenance:
    """What the entries of a result.json were computed from; a damaged entry counts as missing."""
    versions, settings, hashes = (
        result[key] if isinstance(result.get(key), dict) else {} for key in ("versions", "settings", "sha256")
    )
    inputs: dict[str, Any] = {}
    for name, words in INPUTS.items():
        path = result.get(name)  # seeds may also be points
        text = path.encode(errors="replace").decode() if isinstance(path, str) else None
        inputs[words] = None if text is None else {"source": os.path.abspath(text), "sha256": hashes.get(name)}
    reading = {name: result.get(name) for name in READING}
    return Provenance(inputs, versions.get("spinseg"), result.get("seed"), settings | reading)


def read_result(folder: str, overwrite: bool = False) -> dict[str, Any] | None:
    """The content of the result.json in a folder; None where it is missing, damaged, or may be overwritten."""
    try:
        content = Path(folder, "result.json").read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    with suppress(ValueError):
        result = json.loads(content)
        if isinstance(result, dict):
            return result
    rest = content.rstrip(b"\0")
    if not overwrite and not (rest.startswith(RESULT_START) or RESULT_START.startswith(rest)):
        raise FileExistsError(f"{folder} holds result.json already, which is kept; {ADVICE}")
    return None


def check_folder(folder: str, overwrite: bool, also: Sequence[str]) -> bool:
    """Whether files in a folder may be replaced, as of an interrupted result; raise where it must be kept."""
    overwrite = overwrite or (read_result(folder) or {}).get("interrupted") is True
    check_replaceable(Path(folder), (*FILES, *also), overwrite, "--overwrite")
    return overwrite
