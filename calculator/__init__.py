"""The memory that training a transformer needs, in each phase of a step, and why."""
