"""The built site in Chromium."""
