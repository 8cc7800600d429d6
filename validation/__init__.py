"""The calculator's accuracy: measure real PyTorch training steps and compare."""
