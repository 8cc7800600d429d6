"""Training with little traffic: local steps, then sparse few-bit updates in small signed files."""
