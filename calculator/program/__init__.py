"""A plan as a program: the PyTorch code that takes the step that is counted."""
