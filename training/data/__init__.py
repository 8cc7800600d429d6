"""Encoded captioned pictures on disk and as a stream of batches."""
