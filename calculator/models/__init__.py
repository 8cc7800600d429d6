"""The models people train, one short file a model type."""
