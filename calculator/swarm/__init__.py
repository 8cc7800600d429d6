"""Volunteers who average: the rules, the attacks on them, the pace."""
