"""The optimizer that volunteers share: matchmaking, aggregation, guarded averaging, state."""
