"""What is generated from the code."""
