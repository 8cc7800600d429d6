"""What volunteers and organisers type: the pages show these lines, and the tests parse them.

RUN stands for a run file or its address; where to install from, the build finds out.
"""

from dataclasses import dataclass
from typing import Final

from tools.source import ARCHIVE, Source

TOGETHER: Final = "python -m training"
RUN_WORDS: Final = "`RUN` stands for the run file or its address: the run's organisers give it."
START_ENVIRONMENT: Final = ("python3 -m venv together", "source together/bin/activate")
DOCTOR: Final = f"{TOGETHER} doctor RUN"
JOIN: Final = f"{TOGETHER} join RUN --name Ada"
JOIN_OPEN: Final = f"{TOGETHER} join RUN --name Ada --port 31337"
REHEARSE: Final = f"{TOGETHER} rehearse"


@dataclass(frozen=True, slots=True)
class Place:
    """Where somebody joins from: its tab, what to know, and what to type.

    Attributes:
        before: Markdown above the commands.
        lines: one command each.
        after: Markdown below them.
    """

    title: str
    before: str
    lines: tuple[str, ...]
    after: str = ""


def install(source: Source) -> str:
    """The command that installs what volunteers and organisers need."""
    return source.install("training")


def download_words(source: Source, folder: str = "") -> str:
    """What to fetch by hand before the commands; nothing where they fetch it themselves.

    Args:
        source: where the project's source is.
        folder: from the page to the site's root, for a link in HTML.
    """
    if not source.needs_download:
        return ""
    return f"Download [the source]({folder}{ARCHIVE}) first, into the folder in which you type."


def places(source: Source) -> tuple[Place, ...]:
    """Everywhere that one can join from."""
    here = (*START_ENVIRONMENT, install(source), DOCTOR, JOIN)
    return (_notebook(source), *_computers(source, here), _docker(source))


def _notebook(source: Source) -> Place:
    colab = source.colab("join.ipynb")
    get = (
        f"[Open it in Colab]({colab}), or [download the notebook](notebooks/join.ipynb) for Kaggle "
        "(*File*, *Import notebook*)."
        if colab
        else "[Download the notebook](notebooks/join.ipynb) and open it there (Colab: *File*, "
        "*Upload notebook*; Kaggle: *File*, *Import notebook*)."
    )
    beside = f" Upload [the source]({ARCHIVE}) beside it." if source.needs_download else ""
    return Place(
        "Notebook",
        f"Colab and Kaggle lend a GPU for some hours. {get}{beside} Choose a T4 as the accelerator "
        "(PyTorch's builds of today no longer run on Kaggle's P100), in Kaggle switch *Internet* "
        "on, store your token as a secret named `HF_TOKEN`, fill in the form at the top and run "
        "the cells. They run these commands for you:",
        (f"{DOCTOR} --behind-firewall", f"{JOIN} --behind-firewall"),
        "Notebook services cannot be called from outside, so the notebook calls the others. Its "
        "session ends after some hours; with a `FOLDER` that outlives it, for example on your "
        "Drive, you come back as the same volunteer. We test the notebook on Linux, not in Colab "
        "or Kaggle.",
    )


def _computers(source: Source, here: tuple[str, ...]) -> tuple[Place, ...]:
    download = f" {download_words(source)}" if source.needs_download else ""
    packages = "python3-venv git" if source.repository else "python3-venv"
    debian = f"sudo apt install {packages}"
    return (
        Place(
            "Linux",
            "Python 3.11 to 3.13, on Intel, AMD or ARM with 64 bits. A GPU needs NVIDIA's driver: "
            f"`nvidia-smi` shows it. Leave out the first line where there is no `apt`.{download}",
            (debian, *here),
            "Python 3.10 or older, as on Ubuntu 22.04? Type `sudo apt install python3.11-venv`, "
            "and `python3.11 -m venv together` instead of the second line.",
        ),
        Place(
            "Windows",
            "In WSL 2: the library that carries the tensors has no build for Windows itself. Type "
            "`wsl --install` in PowerShell, restart, and open *Ubuntu*. NVIDIA's driver is "
            f"installed in Windows, not in Ubuntu.{download} Then, in Ubuntu:",
            (debian, *here),
            "WSL's network cannot be called from outside; the doctor finds that, and `join` then "
            "calls the others. If the clock is off after a sleep, type `wsl --shutdown` and start "
            "again. Untested: we have no Windows.",
        ),
        Place(
            "macOS",
            "Apple silicon only: PyTorch has no build for Macs with Intel. Python 3.11 to 3.13 is "
            "on [python.org](https://www.python.org/downloads/macos/). The model is computed on "
            f"the processor: Apple's GPU is not used.{download}",
            here,
            "Untested: we have no Mac.",
        ),
        Place(
            "CPU",
            "The same as on Linux. Without a GPU everything is computed on the processor, far more "
            "slowly: for a small recipe that is fine, for a large one your part will be small. "
            "PyTorch's build for processors saves gigabytes of download: [PyTorch's start "
            "page](https://pytorch.org/get-started/locally/) has its command; add `==2.13.0` to "
            f"`torch`, and type it before the fourth line.{download}",
            (debian, *here),
        ),
    )


def _docker(source: Source) -> Place:
    download = f"{download_words(source)} " if source.needs_download else ""
    return Place(
        "Docker",
        f"{download}On a GPU the host needs NVIDIA's container toolkit; without one, build with "
        "`--build-arg VARIANT=cpu` and leave `--gpus all` out. Put the run file into the folder "
        "first; if the run has an address, leave out the second `-v`, and write the address for "
        "`run.toml`.",
        (
            *source.get,
            "docker build -t volunteer .",
            "docker run --rm -it --init --gpus all --stop-timeout 60 -v volunteer:/state "
            '-v "$PWD/run.toml:/app/run.toml:ro" -p 31337:31337 volunteer join run.toml '
            "--port 31337 --name Ada",
        ),
        "Identity, backup and caches are in the volume `volunteer`. A token goes in with "
        "`-e HF_TOKEN`. Untested: the Dockerfile passes a linter, and nobody has built it for us.",
    )


BOOKS: Final = "~/.local/state/training-transformers-together/our-run/authority"

# What organisers type, by what it is for.
ENCODE: Final = (
    f"{TOGETHER} encode my-org/pictures --output shards --recipe paper "
    "--codes microsoft/vq-diffusion-ithq",
    "hf upload my-org/encoded-pictures shards . --repo-type dataset",
)
OPEN_PORT: Final = ("sudo ufw allow 31337/tcp",)
MONITOR: Final = (f"{TOGETHER} monitor run.toml --port 31337 --live live/our-run",)
AUTHORITY: Final = (f"{TOGETHER} authority run.toml --port 8440",)
PROXY: Final = ("caddy reverse-proxy --from run.example.org --to 127.0.0.1:8440",)
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
