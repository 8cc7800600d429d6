"""What the swarm's tests share: the library's own warnings are not ours to mend."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import bitsandbytes  # noqa: F401
    import datasets  # noqa: F401
    import diffusers  # noqa: F401
    import hivemind  # noqa: F401
