"""A volunteer: trains, reports what it did, recovers from failures."""
