"""Tests, in folders that mirror the packages; benchmarks beside them."""
