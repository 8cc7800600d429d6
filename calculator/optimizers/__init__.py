"""Optimizers, one a file: states, temporaries of the update, names, and the program's part."""
