"""Access to a run that has an authority: what peers carry, show each other and renew.

`grants`, `causes`, `signatures` and `tokens` import neither torch nor hivemind: the authority needs
neither.
"""
