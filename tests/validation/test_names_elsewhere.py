"""The names of options in other libraries are those libraries' own."""

import re
import warnings
from dataclasses import fields
from importlib import import_module
from importlib.metadata import entry_points

import pytest
import torch
import transformers

from calculator.groups import ELSEWHERE

pytestmark = pytest.mark.oracle
MODULES = ("transformers", "torch.nn.attention", "torch.nn.parallel", "torch.distributed.optim")
MODULES += ("torch.distributed.fsdp", "torch.distributed.pipelining")
MODULES += ("torch.distributed.tensor.parallel", "torch.distributed.tensor.experimental")


def test_the_names_of_other_libraries_are_theirs() -> None:
    import peft  # seconds, of every process that looks for tests
    from accelerate.utils import TorchContextParallelConfig
    from torch.distributed.tensor.experimental import _attention
    from transformers.distributed import DistributedConfig

    known = {item.name for item in fields(transformers.TrainingArguments)}
    documented = transformers.TrainingArguments.__doc__ or ""
    known |= {*re.findall(r"- (\w+) \(`", documented)}  # the keys of `fsdp_config`
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of torch.jit, which some still use
        known |= {name for module in MODULES for name in dir(import_module(module))}
    known |= {"set_rotate_method"} & {*dir(_attention)}
    for kind in (peft.LoraConfig, TorchContextParallelConfig, DistributedConfig):
        known |= {item.name for item in fields(kind)}
    known |= {*dir(torch.Tensor), *torch.optim.AdamW([torch.zeros(1)]).defaults}
    known |= {f"torch.{name}" for name in dir(torch)} | {"torch.utils.checkpoint"}
    known |= {script.name for script in entry_points(group="console_scripts")}
    known |= {"attn_implementation", *vars(transformers.GPT2Config())}
    named = [
        part.split()[0]
        for names in ELSEWHERE.values()
        for library, text in names.items()
        if library not in ("DeepSpeed", "TRL", "sentence-transformers")  # which do not run here
        for part in text.split(", ")
    ]
    assert [name for name in named if name not in known] == []
