"""A Chromium for the browser tests: the machine's, else Playwright's, else Debian's package."""

import functools
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from tools.console import BuildError, run, step

# The shell has Chromium's pages without its windows: a tenth to a fifth less processor time.
PACKAGES = ("chromium-headless-shell", "chromium")  # Debian's, and their programs
NAMES = (
    *(*PACKAGES, "chromium-browser", "google-chrome", "google-chrome-stable"),
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)

# The address bar's suggestions are pages, too: each new window starts a process for them, which
# takes a second of processor time. This list replaces Playwright's own, and so has all of that.
FEATURES_OFF = (
    *("WebUIOmniboxPopup", "WebUIOmniboxAimPopup", "WebUIOmniboxFullPopup"),
    *("AimEnabled", "AvoidCorsURLLoaderRestartOnRedirect", "AvoidUnnecessaryBeforeUnloadCheckSync"),
    *("DestroyProfileOnBrowserClose", "HttpsFirstBalancedModeAutoEnable", "HttpsUpgrades"),
    *("LensOverlay", "MediaRouter", "NetworkTimeServiceQuerying", "OptimizationHints"),
    *("PaintHolding", "PreconnectToSearch", "ThirdPartyStoragePartitioning", "Translate"),
)
# For Chromium in a container, and for one that asks its maker nothing while tests count requests.
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic"),
    *("--no-first-run", "--disable-background-networking", "--disable-component-update"),
    "--disable-sync",
    f"--disable-features={','.join(FEATURES_OFF)}",
)


@functools.cache
def find_chromium() -> Path:
    """The first Chromium that starts, installed if need be.

    CHROMIUM in the environment goes before all. Raises BuildError that says what to do when
    there is none and none can be had.
    """
    named = os.environ.get("CHROMIUM")
    if named:
        if not _starts(named):
            raise BuildError(f"CHROMIUM = {named}: must be a browser that starts.")
        return Path(named)
    for candidates in (_of_the_machine, _of_playwright, _install_playwrights, _install_debians):
        for candidate in candidates():
            if _starts(candidate):
                return Path(candidate)
    raise BuildError(
        "The browser tests need Chromium or Chrome, there is none here, and none could be "
        "installed. Install one (Debian: apt install chromium), or name yours: "
        "CHROMIUM=/path/to/chrome python3 build.py test"
    )


def _of_the_machine() -> list[str]:
    return [path for name in NAMES if (path := shutil.which(name))]


def _of_playwright() -> list[str]:
    """Path of Playwright's own download, whether or not it exists."""
    # In a process of its own: Playwright allows one instance in each, and tests have theirs.
    program = (
        "from playwright.sync_api import sync_playwright\n"
        "with sync_playwright() as playwright: print(playwright.chromium.executable_path)"
    )
    return [run([sys.executable, "-c", program], "Playwright does not start.").strip()]


def _install_playwrights() -> list[str]:
    """Playwright's download, if it is not refused."""
    command = [sys.executable, "-m", "playwright", "install", "--no-shell", "chromium"]
    with suppress(BuildError), step("Fetching Playwright's Chromium"):
        run(command, "Playwright could not fetch it.")
    return _of_playwright()


def _install_debians() -> list[str]:
    """The first of Debian's packages that can be had, where we are root and there is apt-get."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0 or shutil.which("apt-get") is None:
        return []
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    with suppress(BuildError), step("Installing Debian's Chromium"):
        run(["apt-get", "update", "-q"], "apt-get could not update.", environment=quiet)
        install = ["apt-get", "install", "-q", "-y", "--no-install-recommends"]
        for package in PACKAGES:
            with suppress(BuildError):
                run([*install, package], f"apt-get has no {package}.", environment=quiet)
                break
    return _of_the_machine()


def _starts(program: str) -> bool:
    """True if `program --version` works: a broken or stub package does not count."""
    try:
        subprocess.run([program, "--version"], capture_output=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return False
    return True


if __name__ == "__main__":
    try:
        find_chromium()
    except BuildError as error:
        sys.exit(f"build.py: {error}")
