"""A peer's connection to the others, and why it may fail."""
