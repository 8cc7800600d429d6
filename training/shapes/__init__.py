"""Captioned pictures of shapes, and a judge of drawn ones."""
