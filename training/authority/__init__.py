"""The authority of a run: admits the members of a Hugging Face organisation, for a while.

A token is passed on to the Hub and forgotten: it is in no file, log or error.
"""
