"""Volunteers train one text-to-image transformer together over the Internet."""

import logging

# It announces at import that a 4-bit kernel, which we do not use, is missing.
logging.getLogger("bitsandbytes").setLevel(logging.ERROR)
