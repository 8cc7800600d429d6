"""A small model packed for the live page, whose script draws visitors' own captions with it.

One file in the format of safetensors, in 16 bits: the transformer, and the part of the VQ-GAN that
turns codes into pixels. Its metadata hold as JSON what the script must know beside the weights.
docs/assets/drawing/ reads it, and computes what this model is made of: nothing else is packed.
"""

import json
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import save
from transformers import PreTrainedModel

from training.model.transformer import TextToImageTransformer
from training.pictures.codes import CodeModel
from training.run.recipes import Recipe
from training.shapes.samples import WORDS

if TYPE_CHECKING:
    from diffusers import VQModel

# Of the transformer and the decoder together: a file of at most 4 MB, and about a tenth of a
# second for each picture of the rehearsal's 0.46 million.
LARGEST_PARAMETERS = 2_000_000
VERSION = 1

_DECODER = ("decoder.", "post_quant_conv.", "quantize.embedding.")
# What the script computes, by the fields of a VQModel's configuration.
_KNOWN_DECODER: dict[str, object] = {
    "act_fn": "silu",
    "lookup_from_codebook": False,
    "mid_block_add_attention": False,
    "norm_type": "group",
    "out_channels": 3,
}


def pack(model: PreTrainedModel, recipe: Recipe) -> bytes | None:
    """The file for the live page; None where the page cannot draw with this model.

    The page knows one tokenizer, that of the shapes' words, and VQ-GANs without attention.

    Args:
        recipe: names the tokenizer, the VQ-GAN, and how to sample.
    """
    if not isinstance(model, TextToImageTransformer):
        return None
    if recipe.data.tokenizer != "shapes" or recipe.data.codes is None:
        return None
    if _count(model.state_dict()) > LARGEST_PARAMETERS:
        return None
    codes = CodeModel.load(recipe.data.codes).model
    if not _is_known(codes):
        return None
    tensors = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    tensors |= decoder_of(codes)
    if _count(tensors) > LARGEST_PARAMETERS:
        return None
    halves = {name: tensor.cpu().half().contiguous() for name, tensor in tensors.items()}
    if not all(bool(tensor.isfinite().all()) for tensor in halves.values()):
        return None
    about = json.dumps(describe(model, codes, recipe), sort_keys=True)
    packed: bytes = save(halves, metadata={"about": about})
    return packed


def shape_of(model: TextToImageTransformer) -> dict[str, Any]:
    """The transformer's shape as the page's scripts read it."""
    config = model.config
    depths = range(config.num_hidden_layers)
    return {
        "text_vocabulary_size": config.text_vocabulary_size,
        "text_length": config.text_length,
        "image_vocabulary_size": config.image_vocabulary_size,
        "image_side": config.image_side,
        "hidden_size": config.hidden_size,
        "heads": config.num_attention_heads,
        "head_size": config.head_size,
        "feed_forward_multiplier": config.feed_forward_multiplier,
        "kinds": [config.attention_kind(depth).value for depth in depths],
        "groups": [config.group(depth) for depth in depths],
        "convolution_kernel": config.convolution_kernel,
        "token_shift": config.token_shift,
        "begin_id": config.begin_id,
        "padding_id": config.padding_id,
    }


def decoder_of(codes: "VQModel") -> dict[str, torch.Tensor]:
    """The tensors that turn codes into pixels, by the names that the page reads."""
    return {
        f"codes.{name}": tensor
        for name, tensor in codes.state_dict().items()
        if name.startswith(_DECODER)
    }


def describe(model: TextToImageTransformer, codes: "VQModel", recipe: Recipe) -> dict[str, Any]:
    """The facts that the page's scripts need beside the weights."""
    settings = recipe.generation
    return {
        "version": VERSION,
        "words": list(WORDS),
        "model": shape_of(model),
        "codes": {
            "channels": list(codes.config.block_out_channels),
            "latent_channels": codes.config.latent_channels,
            "layers_per_block": codes.config.layers_per_block,
            "norm_groups": codes.config.norm_num_groups,
        },
        "settings": {
            "temperature": settings.temperature,
            "top_k": settings.top_k,
            "top_p": settings.top_p,
            "images": settings.images_per_prompt,
        },
    }


def _is_known(codes: "VQModel") -> bool:
    fields = codes.config
    plain = all(getattr(fields, name) == value for name, value in _KNOWN_DECODER.items())
    blocks = set(fields.up_block_types) == {"UpDecoderBlock2D"}
    same_width = codes.quantize.vq_embed_dim == fields.latent_channels
    return plain and blocks and same_width


def _count(tensors: dict[str, torch.Tensor]) -> int:
    return sum(tensor.numel() for tensor in tensors.values())
