"""Techniques for training a model with less memory, one file and one `Effect` each.

`calculator.compose` applies their effects in order.
"""
