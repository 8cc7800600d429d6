"""The content security policy of the built pages: inline scripts run by hash, no others do.

The theme has a few inline scripts. Allowing each by the hash of its text, and none beside them,
keeps out what a page is tricked into holding. All pages get the same list, since instant
navigation shows one page under the policy of another.
"""

import base64
import hashlib
import re
from pathlib import Path

from tools.files import change_pages, replace_once

INLINE_SCRIPT = re.compile(r"<script(?P<attributes>(?:\s[^>]*)?)>(?P<text>.*?)</script>", re.S)
# What the template says, so that a page also works when only MkDocs was run.
LOOSE = "script-src 'self' 'unsafe-inline'"


def pin_inline_scripts(site: Path) -> None:
    """Put the hashes of all inline scripts into every page's policy; BuildError if it has none."""
    texts = [page.read_text("utf-8") for page in site.rglob("*.html")]
    hashes = sorted(set[str]().union(*map(script_hashes, texts)))
    strict = " ".join(["script-src 'self'", *(f"'sha256-{found}'" for found in hashes)])

    change_pages(
        site, lambda page, text: replace_once(str(page.relative_to(site)), text, LOOSE, strict)
    )


def script_hashes(page: str) -> set[str]:
    """SHA-256 of each inline script in `page`, in base64, as a policy names it."""
    return {
        base64.b64encode(hashlib.sha256(found["text"].encode()).digest()).decode()
        for found in INLINE_SCRIPT.finditer(page)
        if _runs(found["attributes"])
    }


def _runs(attributes: str) -> bool:
    """True if a script element's own text is executed: it has no address and is no data block."""
    return not re.search(r"\bsrc\s*=", attributes) and "application/json" not in attributes
