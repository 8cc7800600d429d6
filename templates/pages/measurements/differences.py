"""Differences between the recipe `paper` and the run of 2021, with reasons, for 'How it works'.

What the run did is read in its published code, `learning-at-home/dalle-hivemind`, and in
DALLE-pytorch of November 2021. Its own fork of the latter is no longer to be had; where it may
have differed, `then` says "DALLE-pytorch".
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Difference:
    """One decision.

    Attributes:
        subject: what is decided.
        then: what the run of 2021 did.
        here: what the recipe does; where it is the same, it once was not.
        reason: why.
    """

    subject: str
    then: str
    here: str
    reason: str


DIFFERENCES = (
    Difference(
        "Initial scale of a layer's branches",
        "0.1 in layers 1 to 18, 1e-5 up to 24, then 1e-6",
        "the same",
        "At 1e-6 in all 64 layers, LAMB needs about 4,600 steps to raise them to 0.1.",
    ),
    Difference(
        "Window of the convolutional layer",
        "5 × 5 codes, DALLE-pytorch's default",
        "the same",
        "DALL-E itself had 11 × 11; the recipe repeats the run.",
    ),
    Difference(
        "Padding of the caption",
        "the end token, repeated; image codes see it (DALLE-pytorch ignores the mask it is given)",
        "a token for each position; image codes see it",
        "As in DALL-E. The run reserved these 256 tokens and never used them.",
    ),
    Difference(
        "End of the caption",
        "no end token except the padding",
        "the same",
        "The first padding token already says where the caption ends.",
    ),
    Difference(
        "Rotary positions",
        "turn queries, keys and values",
        "turn queries and keys",
        "The published method: its scores depend only on distances.",
    ),
    Difference(
        "Place of the picture on the text's axis",
        "8,192",
        "the position after the text",
        "It is within the distances at which captions train these angles.",
    ),
    Difference(
        "Place of the text on the picture's axes",
        "-10; the picture is from -1 to 1",
        "-2",
        "Outside the picture in both cases.",
    ),
    Difference(
        "Weight decay",
        "everything except biases, including norms and layer scales",
        "matrices only",
        "The run tried to exclude its norms, but under the wrong names.",
    ),
    Difference(
        "First step of the warm-up",
        "at a rate of zero",
        "at the rate of one step",
        "A step at rate zero wastes an exchange.",
    ),
    Difference(
        "Choice among codes",
        "top-k 256 or top-p 0.75",
        "top-k 256",
        "One of the paper's two ways; --top-p adds the other.",
    ),
)
