"""The records of a run in the hash table: who writes them, and what they may hold."""
