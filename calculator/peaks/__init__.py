"""From a recorded step to its peaks: equal layers are added exactly, not recorded."""
