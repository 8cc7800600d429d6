"""What training a transformer needs in memory, when in the step, and why."""
