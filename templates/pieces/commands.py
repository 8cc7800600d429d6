"""Commands for volunteers and organizers: the pages show these lines, and the tests parse them.

RUN stands for a run file or its address; the build finds out where to install from.
"""

from dataclasses import dataclass
from typing import Final

from tools.source import ARCHIVE, Source

TOGETHER: Final = "python -m training"
START_ENVIRONMENT: Final = ("python3 -m venv together", "source together/bin/activate")
DOCTOR: Final = f"{TOGETHER} doctor RUN"
JOIN: Final = f"{TOGETHER} join RUN --name Ada"
JOIN_OPEN: Final = f"{TOGETHER} join RUN --name Ada --port 31337"
REHEARSE: Final = f"{TOGETHER} rehearse"
REHEARSE_SPARSE: Final = f"{TOGETHER} rehearse --recipe sparse"
REHEARSE_OPEN: Final = f"{REHEARSE_SPARSE} --open"


@dataclass(frozen=True, slots=True)
class Place:
    """A place to join from: its tab, its instructions, and its commands.

    Attributes:
        before: Markdown above the commands.
        lines: the commands, one per line.
        after: Markdown below the commands.
    """

    title: str
    before: str
    lines: tuple[str, ...]
    after: str = ""


def install(source: Source) -> str:
    """The command that installs the packages for volunteers and organizers."""
    return source.install("training")


def at_once(source: Source) -> str:
    """The command that installs and joins in one line, with uv."""
    return f'uvx --from "{source.package("training")}" train-together{JOIN.removeprefix(TOGETHER)}'


def download_words(source: Source) -> str:
    """A note to download the source by hand; empty if the commands download it themselves.

    The site's script writes the line for `curl`, because only the browser knows the address.
    """
    if not source.needs_download:
        return ""
    link = f"[the source]({ARCHIVE}){{: data-curl }}"
    line = '<span class="needs-js"> Or type: <code class="curl-line"></code></span>'
    return f"First download {link} into the folder you will work in.{line}"


def places(source: Source) -> tuple[Place, ...]:
    """All places to join from."""
    here = (*START_ENVIRONMENT, install(source), DOCTOR, JOIN)
    return (_notebook(source), *_computers(source, here), _docker(source))


def _notebook(source: Source) -> Place:
    colab, kaggle = source.colab("join.ipynb"), source.kaggle("join.ipynb")
    get = (
        f"[Open it in Colab]({colab}) or [in Kaggle]({kaggle}), or [download the notebook]"
        "(notebooks/join.ipynb)."
        if colab
        else "[Download the notebook](notebooks/join.ipynb) and open it there (Colab: *File*, "
        "*Upload notebook*; Kaggle: *File*, *Import notebook*)."
    )
    beside = f" Upload [the source]({ARCHIVE}) beside it." if source.needs_download else ""
    return Place(
        "Notebook",
        f"Colab and Kaggle lend you a GPU for a few hours. {get}{beside} Choose a T4 as the "
        "accelerator (current PyTorch builds no longer run on Kaggle's P100) and, in Kaggle, turn "
        "*Internet* on. Store your token as a secret named `HF_TOKEN`, fill in the form at the top "
        "(a `join.ipynb` from the run's organizers has it filled in) and run the cells. They run "
        "these commands for you:",
        (f"{DOCTOR} --behind-firewall", f"{JOIN} --behind-firewall"),
        "Notebook services accept no connections from outside, so the notebook connects to the "
        "others. Its session ends after a few hours. With a `FOLDER` that outlives it, for example "
        "on your Drive, you can come back as the same volunteer. We test the notebook on Linux, "
        "not in Colab or Kaggle.",
    )


def _computers(source: Source, here: tuple[str, ...]) -> tuple[Place, ...]:
    moved = f"mv /mnt/c/Users/NAME/Downloads/{ARCHIVE} ."
    windows = (
        f" Download [the source]({ARCHIVE}), and replace NAME with your name in Windows."
        if source.needs_download
        else ""
    )
    packages = "python3-venv git" if source.repository else "python3-venv"
    debian = f"sudo apt install {packages}"
    return (
        Place(
            "Linux",
            "You need Python 3.11 to 3.13 on a 64-bit Intel, AMD or ARM processor. A GPU needs "
            "NVIDIA's driver: if it is installed, `nvidia-smi` shows it. If your system has no "
            "`apt`, leave out the first line.",
            (debian, *here),
            "Python 3.10 or older, as on Ubuntu 22.04? Type `sudo apt install python3.11-venv`, "
            "and `python3.11 -m venv together` instead of the second line.",
        ),
        Place(
            "Windows",
            "Use WSL 2, because the library that transfers the tensors has no build for Windows. "
            "Type `wsl --install` in PowerShell, restart, and open *Ubuntu*. Install NVIDIA's "
            f"driver in Windows, not in Ubuntu.{windows} Then, in Ubuntu:",
            (*([moved] if windows else []), debian, *here),
            "WSL accepts no connections from outside. The doctor detects this, and `join` then "
            "connects to the others. `~` is Ubuntu's own home; Windows shows it under "
            "`\\\\wsl$\\Ubuntu\\home`. If the clock is wrong after your computer has slept, type "
            "`wsl --shutdown` and start again. Untested: we have no Windows machine.",
        ),
        Place(
            "macOS",
            "You need Apple silicon, because PyTorch has no build for Intel Macs, and Python 3.11 "
            "to 3.13 from [python.org](https://www.python.org/downloads/macos/). The model runs on "
            "the processor, not on Apple's GPU.",
            here,
            "Untested: we have no Mac.",
        ),
        Place(
            "CPU",
            "On Linux, without a GPU. The processor does all the work, far more slowly: enough for "
            "a small recipe. To save gigabytes of download, install PyTorch's CPU build: take "
            "its command from [PyTorch's start page](https://pytorch.org/get-started/locally/), "
            "add `==2.13.0` to `torch`, and type it before the fourth line.",
            (debian, *here),
        ),
    )


def _docker(source: Source) -> Place:
    return Place(
        "Docker",
        "To use a GPU, the host needs NVIDIA's container toolkit. Without a GPU, build "
        "with `--build-arg VARIANT=cpu` and leave `--gpus all` out. Put the run file into the "
        "folder first; if the run file has an address, leave out the second `-v` and replace "
        "`run.toml` with the address.",
        (
            *source.get,
            "docker build -t volunteer .",
            "docker run --rm -it --init --gpus all --stop-timeout 60 -v volunteer:/state "
            '-v "$PWD/run.toml:/app/run.toml:ro" -p 31337:31337 volunteer join run.toml '
            "--port 31337 --name Ada",
        ),
        "Identity, backup and caches are in the volume `volunteer`. Pass a token with "
        "`-e HF_TOKEN`. The Dockerfile is linted, but not yet built in CI.",
    )


BOOKS: Final = "~/.local/state/training-transformers-together/our-run/authority"

# Commands for organizers, by purpose.
ENCODE: Final = (
    f"{TOGETHER} encode my-org/pictures --output shards --recipe paper "
    "--codes microsoft/vq-diffusion-ithq",
    "hf upload my-org/encoded-pictures shards . --repo-type dataset",
)
OPEN_PORT: Final = ("sudo ufw allow 31337/tcp",)
HOST_FIRST: Final = f"{TOGETHER} host first-run.toml"
HOST: Final = (f"{TOGETHER} host run.toml --port 31337 --page-port 8000",)
MONITOR: Final = (f"{TOGETHER} monitor run.toml --port 31337 --live live/our-run",)
AUTHORITY: Final = (f"{TOGETHER} authority run.toml --port 8440",)
PROXY: Final = ("caddy reverse-proxy --from run.example.org --to 127.0.0.1:8440",)
SPARSE_MONITOR: Final = (
    f"{TOGETHER} monitor run.toml --host 127.0.0.1 --port 8450 --live live/our-run",
)
SPARSE_PROXY: Final = ("caddy reverse-proxy --from exchange.example.org --to 127.0.0.1:8450",)
STORE_KEYS: Final = (
    "export AWS_ACCESS_KEY_ID=...",
    "export AWS_SECRET_ACCESS_KEY=...",
    "export AWS_REGION=auto",
)
MONITOR_WITH_AUTHORITY: Final = (f"{MONITOR[0]} --authority-folder {BOOKS}",)
MODERATION: Final = (
    f"{TOGETHER} authority run.toml list",
    f'{TOGETHER} authority run.toml ban USER --reason "sends noise"',
    f"{TOGETHER} authority run.toml unban USER",
)
PUBLISH: Final = ("rsync -a --delay-updates live/our-run/ web:site/live/our-run/",)
ROLLBACK: Final = (f"{TOGETHER} rollback run.toml 1200 --live live/our-run",)
GENERATE: Final = (
    f'{TOGETHER} generate https://example.org/live/our-run/ "a red circle" --images 32 --keep 4',
)
