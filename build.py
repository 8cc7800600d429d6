"""The one way in: set up, build, serve, test, check and measure this project.

    python3 build.py serve [--port 8000]    build the site and serve it here
    python3 build.py build                  leave the complete site in site/
    python3 build.py test [pytest options]  every test, browser and swarm included
    python3 build.py test --quick           those near to what changed, for two minutes
    python3 build.py check                  format, lint, types, spelling, prose, forbidden things
    python3 build.py bench [--quick]        measure speed and size, write bench/
    python3 build.py lock                   renew requirements/*.txt and package-lock.json

Needs Python >= 3.11 and a network the first time, nothing else. This file keeps to old syntax,
so that an old Python can still read it and be told what is wrong.
"""

import shutil
import sys

OLDEST = (3, 11)


def refuse_old_python() -> None:
    """Exit with one plain sentence when this Python is too old."""
    if sys.version_info >= OLDEST:
        return
    newer = [name for name in ("python3.13", "python3.12", "python3.11") if shutil.which(name)]
    advice = "Run it with %s." % newer[0] if newer else "Install a newer one from python.org."
    sys.exit(
        "build.py: this is Python %d.%d, but Python %d.%d or newer is needed. %s"
        % (sys.version_info[0], sys.version_info[1], OLDEST[0], OLDEST[1], advice)
    )


if __name__ == "__main__":
    refuse_old_python()
    from tools.commands import main

    sys.exit(main(sys.argv[1:]))
