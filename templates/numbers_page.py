"""What 'How the numbers are made' needs: the formulas' docstrings and the sources."""


def context() -> dict[str, object]:
    """The names that `pages/numbers.md.j2` uses."""
    return {}
