"""Numbers with their nouns."""


def counted(number: int, noun: str) -> str:
    """A number with its noun.

    Examples
    --------
    >>> counted(1, "site"), counted(2300, "site")
    ('1 site', '2,300 sites')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
