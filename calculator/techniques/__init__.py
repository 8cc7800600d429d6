"""What people do to a model to train it with less, one file each."""
