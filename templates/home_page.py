"""What the home page needs: the reference run's model, alone and with every technique."""


def context() -> dict[str, object]:
    """The names that `pages/index.md.j2` uses."""
    return {}
