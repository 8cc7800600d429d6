"""Techniques for training a model with less memory, one file each."""
