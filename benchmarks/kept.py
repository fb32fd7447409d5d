"""What a long study has finished, kept in a file, so that the same command goes on where it was stopped."""

import json
import os
from pathlib import Path
from typing import Any

from spinseg.parallel.atomic import append, complete_lines


class Kept:
    """Results by key, appended to the file that SPINSEG_KEEP names; without one, they are kept in memory alone.

    A key is all that its result depends on, but for the code: after a change of it, name another file.
    """

    def __init__(self) -> None:
        self.path = Path(os.environ["SPINSEG_KEEP"]) if os.environ.get("SPINSEG_KEEP") else None
        self.results: dict[str, Any] = {}
        if self.path and self.path.exists():
            data = self.path.read_bytes()
            complete = complete_lines(data)
            self.results = dict(json.loads(line) for line in complete.splitlines())
            if complete != data:
                os.truncate(self.path, len(complete))

    def __contains__(self, key: str) -> bool:
        return key in self.results

    def __getitem__(self, key: str) -> Any:
        return self.results[key]

    def put(self, results: dict[str, Any]) -> None:
        """Keep these results."""
        self.results |= results
        if self.path:
            append(self.path, "".join(json.dumps(result) + "\n" for result in results.items()).encode())
