"""What the page asks and gets: states of its form, and the figures and words for them."""
