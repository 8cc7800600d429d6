"""The authority of a run: admits the members of a Hugging Face organisation, for a while.

    service     what volunteers ask over HTTP
    admission   the decision
    hub         asking the Hugging Face Hub whose a token is
    books       allowlist, bans and the log of decisions, in SQLite
    keys        the signing key
    messages    what is asked and answered
    serving     the service as a process
    command     the command line, for the service and for moderators
    local       access for the monitor, where it is on the same machine
    standin     a Hub of made-up accounts, for rehearsals and tests

A token is passed on to the Hub and forgotten: it is in no file, log or error.
"""
