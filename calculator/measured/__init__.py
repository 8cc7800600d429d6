"""Measurements that the calculator carries, written by `validation`."""
