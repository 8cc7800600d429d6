"""Figures that others published about training runs, each beside what the calculator computes."""
