"""A run, and what its processes share: run file, recipe, live data, status, files."""
