"""Files of other libraries that people bring, and the answer to them: ``check``."""
