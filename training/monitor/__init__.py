"""The monitor: keeps a run's books, its live data and its checkpoints."""
