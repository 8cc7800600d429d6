"""What volunteers and organisers type: the pages show these lines, and the tests parse them.

ADDRESS stands for the project's git repository, RUN for a run file or its address.
"""

from dataclasses import dataclass
from typing import Final

from training.doctor.software import INSTALL

TOGETHER: Final = "python -m training"
ADDRESS_WORDS: Final = (
    "`RUN` stands for the run file or its address, `ADDRESS` for the project's git repository. The "
    "run's organisers give you both."
)
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


_HERE: Final = (*START_ENVIRONMENT, INSTALL, DOCTOR, JOIN)

PLACES: Final = (
    Place(
        "Notebook",
        "Colab and Kaggle lend a GPU for some hours. [Download the notebook](notebooks/join.ipynb) "
        "and open it there (Colab: *File*, *Upload notebook*; Kaggle: *File*, *Import notebook*). "
        "Choose a T4 as the accelerator (PyTorch's builds of today no longer run on Kaggle's "
        "P100), in Kaggle switch *Internet* on, store your token as a "
        "secret named `HF_TOKEN`, fill in the form at the top and run the cells. It types this "
        "for you:",
        (DOCTOR + " --behind-firewall", JOIN + " --behind-firewall"),
        "Notebook services cannot be called from outside, so the notebook calls the others. Its "
        "session ends by itself after some hours; with a `FOLDER` that outlives it, say on your "
        "Drive, you come back as the same volunteer.",
    ),
    Place(
        "Linux",
        "Python 3.11 to 3.13, on Intel, AMD or ARM with 64 bits. For a GPU, NVIDIA's driver must "
        "be there: `nvidia-smi` shows it.",
        _HERE,
    ),
    Place(
        "Windows",
        "In WSL 2: the library that carries the tensors has no build for Windows itself. Type "
        "`wsl --install` in PowerShell, restart, and open *Ubuntu*. NVIDIA's driver is installed "
        "in Windows, not in Ubuntu. Then, in Ubuntu:",
        ("sudo apt install python3-venv git", *_HERE),
        "WSL's network cannot be called from outside; the doctor finds that, and `join` then "
        "calls the others. If the clock is off after a sleep: `wsl --shutdown`, and a new start.",
    ),
    Place(
        "macOS",
        "Intel or Apple silicon. The model is computed on the processor: Apple's GPU is not used. "
        "Our tests run on Linux; on macOS nobody has tested it for us yet.",
        _HERE,
    ),
    Place(
        "CPU",
        "The same as on Linux. Without a GPU everything is computed on the processor, far more "
        "slowly: for a small recipe that is fine, for a large one your part will be small. "
        "PyTorch's build for processors alone saves gigabytes of download: "
        "[PyTorch's start page](https://pytorch.org/get-started/locally/) has its command, to be "
        "typed before the third line.",
        _HERE,
    ),
    Place(
        "Docker",
        "In a clone of the repository. On a GPU the host needs NVIDIA's container toolkit; "
        "without one, build with `--build-arg VARIANT=cpu` and leave `--gpus all` out. The image "
        "is checked by a linter; nobody has built it for us yet.",
        (
            "docker build -t volunteer .",
            "docker run --rm -it --init --gpus all --stop-timeout 60 -v volunteer:/state "
            "-p 31337:31337 volunteer join RUN --port 31337 --name Ada",
        ),
        "Identity, backup and caches are in the volume `volunteer`. A token goes in with "
        "`-e HF_TOKEN`.",
    ),
)

BOOKS: Final = "~/.local/state/training-transformers-together/our-run/authority"

# What organisers type, by what it is for.
ENCODE: Final = (
    f"{TOGETHER} encode my-org/pictures --recipe paper --codes my-org/vqgan --output shards",
    "hf upload my-org/encoded-pictures shards . --repo-type dataset",
)
MONITOR: Final = (f"{TOGETHER} monitor run.toml --port 31337 --live live/our-run",)
AUTHORITY: Final = (
    f"{TOGETHER} authority run.toml --port 8440",
    f"{TOGETHER} monitor run.toml --port 31337 --live live/our-run --authority-folder {BOOKS}",
)
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
