"""Two changes to the theme's script: how it reads the sitemap, and when it starts the search."""

import re
from pathlib import Path

from tools.console import BuildError

BUNDLE = "assets/javascripts/bundle.*.min.js"
# Where it reads a page's address in the sitemap, with the site's root in the second name.
ADDRESS_IN_SITEMAP = re.compile(r"new URL\((?P<text>\w+\.textContent)\),(?P<root>\w+)\)")
# Where it starts the search: at once, or, in a site that is opened as files, when it is opened.
SEARCH_AT_ONCE = re.compile(r'\(location\.protocol!=="file:"\)(?=,\w+\("search"\)\))')


def read_relative_sitemap(site: Path) -> None:
    """Let it understand relative addresses in the sitemap.

    It makes each a whole address without a base, which only works where the sitemap has the host,
    port and path that the site is looked at under.

    Raises BuildError when the script is not as expected.
    """
    relative = r"new URL(\g<text>,\g<root>),\g<root>)"
    _change(site, ADDRESS_IN_SITEMAP, relative, "read the sitemap", "ADDRESS_IN_SITEMAP")


def search_when_opened(site: Path) -> None:
    """Let it fetch the words of all pages when a visitor opens the search, not on every page.

    Raises BuildError when the script is not as expected.
    """
    _change(site, SEARCH_AT_ONCE, "(!1)", "start the search", "SEARCH_AT_ONCE")


def _change(site: Path, pattern: re.Pattern[str], new: str, what: str, name: str) -> None:
    (bundle,) = sorted(site.glob(BUNDLE)) or (None,)
    text = bundle.read_text("utf-8") if bundle else ""
    changed, count = pattern.subn(new, text)
    if bundle is None or count != 1:
        raise BuildError(
            f"{BUNDLE}: must {what} in one place, has {count}. The theme has changed; "
            f"look at {name} in tools/theme_script.py."
        )
    bundle.write_text(changed, "utf-8")
