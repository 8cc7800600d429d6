"""Planning a run: computing, energy and money, exchanges between volunteers, size and data."""
