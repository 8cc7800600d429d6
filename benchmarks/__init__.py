"""`python3 build.py bench`: speed and size, measured and printed, never asserted."""
