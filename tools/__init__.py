"""The rooms behind build.py. They use the standard library only, so they run before set-up."""
