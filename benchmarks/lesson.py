"""The data of 'Train in this tab': captions and codes to learn from, and the decoder of codes.

One file in the format of safetensors: `python -m benchmarks.lesson OUT` writes it again.
docs/assets/tab/ reads it and trains the recipe `tab` from random weights; local steps there are
those of the recipe `sparse`.
"""

import argparse
import json
from dataclasses import asdict
from pathlib import Path

import torch
from safetensors.torch import save

from training.model.build import build_model
from training.model.captions import WordTokenizer
from training.model.transformer import TextToImageTransformer
from training.monitor.tab import outer_settings
from training.pictures.codes import CodeModel
from training.pictures.in_page import decoder_of, describe
from training.run.atomic import write_bytes
from training.run.recipes import SPARSE, TAB
from training.shapes.samples import draw_sample
from training.sparse.layout import Layout

ROUND = 8  # steps' worth of sequences between two exchanges of sparse updates
PICTURES = 2048  # the first of the data set; their codes compress to 37 kB


def pack_lesson() -> bytes:
    """The whole file; a byte for each code and each word."""
    codes = CodeModel.load(str(TAB.data.codes))
    samples = [draw_sample(index, TAB.data.image_pixels) for index in range(PICTURES)]
    tensors = {name: tensor.half().contiguous() for name, tensor in decoder_of(codes.model).items()}
    pictures = codes.encode([sample.image for sample in samples], TAB.data.image_pixels)
    swarm, model = TAB.swarm, build_model(TAB)
    assert isinstance(model, TextToImageTransformer)
    assert SPARSE.sparse is not None
    words = WordTokenizer(model.config.text_length)([sample.caption for sample in samples])
    tensors |= {"lesson.codes": pictures.to(torch.uint8), "lesson.words": words.to(torch.uint8)}
    about = describe(model, codes.model, TAB) | {
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "optimizer": asdict(TAB.optimizer),
        "schedule": asdict(TAB.schedule),
        "local": {
            "learning_rate": SPARSE.sparse.learning_rate,
            "betas": SPARSE.sparse.betas,
            "weight_decay": TAB.optimizer.weight_decay,
            "max_gradient_norm": TAB.optimizer.max_gradient_norm,
        },
        "outer": outer_settings(SPARSE),
        "round": ROUND,
        "update_bytes": Layout.of(model.parameters()).update_bytes,
        "layer_scale": model.config.layer_scale,
        "target_batch": swarm.target_batch_size,
        "micro_batch": swarm.micro_batch_size,
        "compression_threshold": swarm.compression_threshold,
        "captions": list(TAB.generation.prompts),
    }
    packed: bytes = save(tensors, metadata={"about": json.dumps(about, sort_keys=True)})
    return packed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    write_bytes(parser.parse_args().out, pack_lesson())
