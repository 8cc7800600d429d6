r"""The text-to-image transformer of the run: one decoder over text tokens and image codes.

Architecture of DALL-E (Ramesh et al. 2021, arXiv:2102.12092) in the conventions of DALLE-pytorch,
which the 2021 run used; the code is our own. With d = 1024, 64 layers of which the last has weights
of its own, and 32,100 words, 256 text positions and 8,192 image codes, the parameters are

==============================  ==========================================  =============
part                            arithmetic                                      parameters
==============================  ==========================================  =============
embeddings, also the output     (32,100 + 256 + 8,192) d                       41,521,152
output biases                   32,100 + 256 + 8,192                               40,548
final LayerNorm                 2 d                                                 2,048
norms and scales of each layer  64 * 2 * (2 d + d)                                393,216
weights of a distinct layer     4 d^2 + d  +  8 d^2 + 8 d + 4 d^2 + d          16,787,456
==============================  ==========================================  =============

so 41,956,964 + 5 * 16,787,456 = 125,894,244 with four shared layers and the last one, and
41,956,964 + 64 * 16,787,456 = 1,116,354,148 without sharing.

Shapes: B sequences, T text tokens, I image codes, S positions, D hidden size.
"""

from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import nn
from torch.nn import functional
from transformers import PreTrainedModel
from transformers.utils.generic import ModelOutput

from calculator.errors import InputError
from training.model.cache import DecodingCache
from training.model.configuration import TextToImageConfig
from training.model.layers import DepthWeights, SharedWeights
from training.model.reversible import run_layers


@dataclass
class TextToImageOutput(ModelOutput):
    """Output of a forward pass.

    Attributes:
        loss: (text_loss + w * image_loss) / (1 + w), a scalar; w is the image's weight.
        text_loss: mean cross-entropy of the text tokens, in nats.
        image_loss: mean cross-entropy of the image codes, in nats.
        text_logits: [B, T, words + T], where asked for.
        image_logits: [B, I, codes], where asked for.
    """

    loss: torch.Tensor | None = None
    text_loss: torch.Tensor | None = None
    image_loss: torch.Tensor | None = None
    text_logits: torch.Tensor | None = None
    image_logits: torch.Tensor | None = None


class TextToImageTransformer(PreTrainedModel):
    """Decoder-only transformer that reads a caption and predicts the codes of its picture."""

    config_class = TextToImageConfig
    config: TextToImageConfig
    base_model_prefix = ""
    main_input_name = "text_ids"
    _supports_sdpa = True

    def __init__(self, config: TextToImageConfig) -> None:
        super().__init__(config)
        text_tokens = config.text_vocabulary_size + config.text_length
        self.text_embedding = nn.Embedding(text_tokens, config.hidden_size)
        self.image_embedding = nn.Embedding(config.image_vocabulary_size, config.hidden_size)
        self.groups = nn.ModuleList(SharedWeights(config) for _ in range(config.group_count))
        self.depths = nn.ModuleList(
            DepthWeights(config, depth) for depth in range(config.num_hidden_layers)
        )
        self.final_norm = nn.LayerNorm(config.hidden_size)
        self.text_bias = nn.Parameter(torch.empty(text_tokens))
        self.image_bias = nn.Parameter(torch.empty(config.image_vocabulary_size))
        self.post_init()  # type: ignore[no-untyped-call]

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        deviation = self.config.initializer_range
        match module:
            case nn.Linear() | nn.Embedding():
                nn.init.normal_(module.weight, std=deviation)
                if isinstance(module, nn.Linear) and module.bias is not None:
                    nn.init.zeros_(module.bias)
            case nn.LayerNorm():
                nn.init.ones_(module.weight)
                nn.init.zeros_(module.bias)
            case DepthWeights():
                nn.init.constant_(module.attention_scale, module.initial_scale)
                nn.init.constant_(module.feed_forward_scale, module.initial_scale)
            case TextToImageTransformer():
                nn.init.zeros_(module.text_bias)
                nn.init.zeros_(module.image_bias)

    def forward(
        self,
        text_ids: torch.Tensor,
        image_codes: torch.Tensor,
        return_logits: bool = False,
        **_: Any,
    ) -> TextToImageOutput:
        """Losses of complete sequences.

        Args:
            text_ids: int64 [B, T]; `padding_id` where there is no word.
            image_codes: int64 [B, I], the picture's codes row by row.

        Raises:
            InputError: T or I is not the configuration's.
        """
        layout, weight = self.config.layout, self.config.image_loss_weight
        _check_length("text_ids", text_ids, layout.text_length)
        _check_length("image_codes", image_codes, layout.image_length)
        text_ids = self._name_padding(text_ids)
        hidden = self._decode(self.embed(text_ids, image_codes[:, :-1]))
        # A text position can only be followed by text and an image position by a code, so each
        # side is scored against its own tokens: the same as masking the other side's logits.
        text_logits = self._text_logits(hidden[:, : layout.text_length])
        image_logits = self.image_logits(hidden[:, layout.text_length :])
        text_loss = functional.cross_entropy(text_logits.flatten(0, 1), text_ids.flatten())
        image_loss = functional.cross_entropy(image_logits.flatten(0, 1), image_codes.flatten())
        return TextToImageOutput(
            loss=(text_loss + weight * image_loss) / (1 + weight),
            text_loss=text_loss.detach(),
            image_loss=image_loss.detach(),
            text_logits=text_logits if return_logits else None,
            image_logits=image_logits if return_logits else None,
        )

    def attend_in_lines(self) -> None:
        """Compute attention by our own kernel, which skips what the masks leave out.

        The kernels that transformers knows are chosen by its `attn_implementation`.
        """
        for own in cast(list[DepthWeights], self.depths):
            own.in_lines = True

    def embed(self, text_ids: torch.Tensor, image_codes: torch.Tensor) -> torch.Tensor:
        """Embeddings of the begin token, named text tokens and the first codes: [B, S, D]."""
        begin = torch.full_like(text_ids[:, :1], self.config.begin_id)
        text = self.text_embedding(torch.cat([begin, text_ids], dim=1))
        return torch.cat([text, self.image_embedding(image_codes)], dim=1)

    @torch.no_grad()
    def start(self, text_ids: torch.Tensor) -> tuple[torch.Tensor, DecodingCache]:
        """Read captions: logits of the first image code [B, codes], and the cache to go on with."""
        _check_length("text_ids", text_ids, self.config.layout.text_length)
        cache = DecodingCache(self.config, len(text_ids))
        no_codes = text_ids.new_empty((len(text_ids), 0))
        hidden = self._decode(self.embed(self._name_padding(text_ids), no_codes), cache)
        return self.image_logits(hidden[:, -1]), cache

    @torch.no_grad()
    def step(self, codes: torch.Tensor, cache: DecodingCache) -> torch.Tensor:
        """Read one more code of each picture, [B]: logits of the next, [B, codes]."""
        hidden = self._decode(self.image_embedding(codes[:, None]), cache)
        return self.image_logits(hidden[:, -1])

    def image_logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Logits of image codes from hidden states of any leading shape."""
        return functional.linear(hidden, self.image_embedding.weight, self.image_bias)

    def _text_logits(self, hidden: torch.Tensor) -> torch.Tensor:
        return functional.linear(hidden, self.text_embedding.weight, self.text_bias)

    def _name_padding(self, text_ids: torch.Tensor) -> torch.Tensor:
        # Padding has a token for each position, as in DALL-E: no mask depends on the batch.
        place = torch.arange(text_ids.shape[1], device=text_ids.device)
        padding = place + self.config.text_vocabulary_size
        return torch.where(text_ids == self.config.padding_id, padding, text_ids)

    def _decode(self, x_BSD: torch.Tensor, cache: DecodingCache | None = None) -> torch.Tensor:
        start = cache.position if cache else 0
        layers = []
        for depth, own in enumerate(cast(list[DepthWeights], self.depths)):
            shared = cast(SharedWeights, self.groups[self.config.group(depth)])
            layers.append(own.with_shared(shared, cache.layers[depth] if cache else None, start))
        x1, x2 = run_layers(layers, x_BSD, x_BSD, self.config.reversible)
        if cache is not None:
            cache.position += x_BSD.shape[1]
        out: torch.Tensor = self.final_norm((x1 + x2) / 2)
        return out


def _check_length(field: str, tokens: torch.Tensor, length: int) -> None:
    if tokens.ndim != 2 or tokens.shape[1] != length:
        raise InputError(field, tuple(tokens.shape), f"must be [sequences, {length}]")
