"""Access to a run that has an authority: what peers carry, show each other and renew.

    grants      what the authority signs for a peer's key: `Grant`, `verify`
    causes      why somebody is not let in, and what to do about it
    tokens      where a volunteer's Hugging Face token comes from
    envelope    a signed file, the one form of what peers sign for others
    signatures  of a peer's key, and the proof that whoever asks holds it
    client      asking the authority
    membership  a peer's own access: on file, renewed before it expires
    authorizer  what the DHT of a run asks of every call
    directory   the grants of all peers, for calls that carry none
    bodies      of requests: how much and how slowly one may send
    buckets     how often one may ask

`grants`, `causes`, `signatures` and `tokens` import neither torch nor hivemind: the authority needs
neither.
"""
