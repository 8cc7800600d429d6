"""PyTorch's autograd without numbers: tensors that have shapes and lives, and nothing else."""
