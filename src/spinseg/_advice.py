"""Sentences that name settings to try, which Python, the command and the web app each write in their own way."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple


class Setting(NamedTuple):
    """An argument of `segment`, or without a value its name, which reads as Python."""

    name: str
    value: Any = ...

    def __str__(self) -> str:
        if self.value is ...:
            return self.name
        ends = self.value if isinstance(self.value, tuple) else ()
        return f"{self.name}=({', '.join(f'{end:g}' for end in ends)})" if ends else f"{self.name}={self.value!r}"


class Advice(str):
    """A sentence made of text and settings; as a str it is Python.

    Examples
    --------
    >>> finer = Advice("Try ", Setting("detail", 0.9), ".")
    >>> finer
    'Try detail=0.9.'
    >>> finer.written(lambda setting: f"--{setting.name} {setting.value}")
    'Try --detail 0.9.'
    """

    parts: tuple[str | Setting, ...]

    def __new__(cls, *parts: "str | Setting") -> "Advice":
        """A sentence of these parts, which may be sentences themselves."""
        found = super().__new__(cls, "".join(map(str, parts)))
        found.parts = tuple(inner for part in parts for inner in (part.parts if isinstance(part, Advice) else (part,)))
        return found

    @classmethod
    def joined(cls, separator: str, sentences: Iterable[str]) -> "Advice":
        """Several sentences as one."""
        parts = [part for sentence in sentences for part in (separator, sentence)]
        return cls(*parts[1:])

    def written(self, write: Callable[[Setting], str]) -> str:
        """The sentence with the settings as `write` writes them."""
        return "".join(part if isinstance(part, str) else write(part) for part in self.parts)
