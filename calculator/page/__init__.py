"""The page's requests and answers: states of its form, and figures and texts for them."""
