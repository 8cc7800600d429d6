"""How right the calculator is: measure real PyTorch training steps and compare."""
