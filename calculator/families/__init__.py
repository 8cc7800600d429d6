"""The models' training steps, operation by operation, one file a family."""
