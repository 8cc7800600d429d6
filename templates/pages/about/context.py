"""Data for the About page: related projects, each with its source, and how to cite."""

import re
from dataclasses import dataclass

from calculator.catalog import SOURCES
from tools.console import ROOT

CITATION = ROOT / "CITATION.cff"


@dataclass(frozen=True, slots=True)
class Project:
    """A related project, and when it is the better choice; texts are HTML."""

    name: str
    address: str
    what: str
    take_it_when: str
    source: str


def _source(words: str, address: str) -> str:
    return f'<small class="source"><a href="{address}">{words}</a></small>'


PROJECTS = (
    Project(
        "Hivemind",
        "https://github.com/learning-at-home/hivemind",
        "The PyTorch library under this project: peers find each other in a distributed hash "
        "table and average without a central server.",
        "you write your own training loop and only need the averaging.",
        _source("documentation", "https://learning-at-home.readthedocs.io/"),
    ),
    Project(
        "Petals",
        "https://github.com/bigscience-workshop/petals",
        "Each volunteer serves some layers of a large language model. You use the whole model "
        "to generate text, or train adapters and prompts for it.",
        "the model already exists and is too large for your GPU.",
        _source("Borzunov et al., 2022", "https://arxiv.org/abs/2209.01188"),
    ),
    Project(
        "SWARM",
        "https://github.com/yandex-research/swarm",
        "It splits a model that is too large for any single device into stages, and unreliable "
        "devices share the work of each stage.",
        "the model does not fit on a volunteer's GPU, even with weight sharing, offloading and "
        "8-bit states.",
        _source("Ryabinin et al., 2023", "https://arxiv.org/abs/2301.11913"),
    ),
    Project(
        "OpenDiLoCo, prime",
        "https://github.com/PrimeIntellect-ai/prime",
        "Each worker takes hundreds of steps on its own before it exchanges weights. OpenDiLoCo "
        "trained across three countries this way; its authors now recommend prime, which trained "
        "a model with 10 billion parameters.",
        "you have a few sites with strong GPUs, rather than many single GPUs.",
        _source("Jaghouar et al., 2024", "https://arxiv.org/abs/2407.07852")
        + " "
        + _source("INTELLECT-1", "https://arxiv.org/abs/2412.01152"),
    ),
    Project(
        "Psyche",
        "https://github.com/PsycheFoundation/psyche",
        "Decentralized training by Nous Research. Its optimizers send a few components of the "
        "momentum instead of whole gradients.",
        "you want to take part in one of its runs.",
        _source("Peng et al., 2024: DeMo", "https://arxiv.org/abs/2411.19870"),
    ),
    Project(
        "FSDP, torchtitan",
        "https://github.com/pytorch/torchtitan",
        "PyTorch's own method of distributing weights, gradients and optimizer states over the "
        "GPUs of a cluster; torchtitan adds the other kinds of parallelism.",
        "your GPUs are in one place, on a fast network.",
        _source("Liang et al., 2024", "https://arxiv.org/abs/2410.06511"),
    ),
    Project(
        "DeepSpeed",
        "https://github.com/deepspeedai/DeepSpeed",
        "ZeRO distributes the same states over a cluster, or moves them to RAM and disks.",
        "your GPUs are in one place, or one of them is in a machine with a lot of RAM.",
        _source("Rajbhandari et al., 2019", "https://arxiv.org/abs/1910.02054"),
    ),
)


def citation() -> str:
    """BibTeX of this software, from CITATION.cff."""
    told = dict(re.findall(r"^(title|version): (.+)$", CITATION.read_text("utf-8"), re.MULTILINE))
    return (
        "@software{training_transformers_together,\n"
        f"  title = {{{told['title']}}},\n"
        f'  author = "{{The authors of {told["title"]}}}",\n'
        f"  version = {{{told['version']}}}\n"
        "}"
    )


def context() -> dict[str, object]:
    """The names that `page.md.j2` uses."""
    return {
        "paper": SOURCES["together"],
        "citation": citation(),
        "projects": PROJECTS,
    }
