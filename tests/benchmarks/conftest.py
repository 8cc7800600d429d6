"""The library's own warnings, at its first import, are not ours to fix."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import hivemind  # noqa: F401
