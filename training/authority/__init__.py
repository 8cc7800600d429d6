"""The authority of a run: admits the members of a Hugging Face organisation, for a while.

    service     what volunteers ask over HTTP
    admission   the decision
    hub         asking the Hugging Face Hub whose a token is
    books       allowlist, bans and the log of decisions, in SQLite
    keys        the signing key, and access for the monitor on the same machine
    serving     the service as a process
    command     the command line, for the service and for moderators
    standin     a Hub of made-up accounts, and an authority that asks it, for rehearsals and tests

A token is passed on to the Hub and forgotten: it is in no file, log or error.
"""
