"""The text-to-image transformer, its tokens and its published checkpoints."""
