"""Layers that own their weights and their forward; a model is a tree of them."""
