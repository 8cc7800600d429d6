"""LAMB with 8-bit states."""
