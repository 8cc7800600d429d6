"""Volunteers train one text-to-image transformer together over the Internet."""
