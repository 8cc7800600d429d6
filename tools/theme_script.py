"""Changes to the theme's script: how it reads the sitemap, and what it does when a page opens.

Opening a page, the theme makes the browser work out the whole page's style four times in one task.
Once is enough. The rest of its work is done when it is needed, or in a task of its own.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from tools.console import BuildError

BUNDLE = "assets/javascripts/bundle.*.min.js"


@dataclass(frozen=True)
class Change:
    """A place in the theme's script, and what takes its place.

    Attributes:
        name: of the constant here, for whoever must repair it.
        does: what the script must do there, for the message when it does not.
        place: matches the place, once. new: its replacement.
    """

    name: str
    does: str
    place: re.Pattern[str]
    new: str


# An address of a page in the sitemap, with the site's root in the second name.
ADDRESS_IN_SITEMAP = Change(
    "ADDRESS_IN_SITEMAP",
    "read the sitemap",
    re.compile(r"new URL\((?P<text>\w+\.textContent)\),(?P<root>\w+)\)"),
    r"new URL(\g<text>,\g<root>),\g<root>)",
)
# It starts the search at once, or, in a site that is opened as files, when it is opened.
SEARCH_AT_ONCE = Change(
    "SEARCH_AT_ONCE",
    "start the search",
    re.compile(r'\(location\.protocol!=="file:"\)(?=,\w+\("search"\)\))'),
    "(!1)",
)
# The search's worker starts with the first message to it, which is sent when the search is opened.
SEARCH_WORKER = Change(
    "SEARCH_WORKER",
    "start the search's worker",
    re.compile(r"(?<==)new Worker\((?P<address>\w+)\)(?=\)\{)"),
    r"Object.assign(new EventTarget,{postMessage(m){"
    r"this.worker||((this.worker=new Worker(\g<address>)).onmessage="
    r'({data:d})=>this.dispatchEvent(new MessageEvent("message",{data:d}))),'
    r"this.worker.postMessage(m)}})",
)
# It writes whole addresses into all links, which makes browsers load style sheets again.
ADDRESSES_OF_STYLES = Change(
    "ADDRESSES_OF_STYLES",
    "write whole addresses into links",
    re.compile(
        r'"\[href\], \[src\]"(?=,\w+\)\)for\(let (?P<name>\w+) of\["href","src"\]\)\{'
        r"[^{}]*\{(?P<address>\w+\[(?P=name)\])=(?P=address);)"
    ),
    '"[href]:not([rel=stylesheet]), [src]"',
)
# It compares a head's elements with the next page's: style sheets by where they came from.
ELEMENTS_OF_HEAD = Change(
    "ELEMENTS_OF_HEAD",
    "list the elements of a page's head",
    re.compile(r"\.set\((?P<one>\w+)\.outerHTML,(?P=one)\)"),
    r'.set(\g<one>.rel==="stylesheet"?(\g<one>.sheet||\g<one>).href:\g<one>.outerHTML,\g<one>)',
)
# Our own meta element for the colors comes first in the head, and only the first one counts.
SECOND_META_ELEMENT = Change(
    "SECOND_META_ELEMENT",
    "add a meta element for the colors",
    re.compile(
        r'(?P<made>(?P<meta>\w+)=\w+\("meta",\{name:"color-scheme"\}\));'
        r"document\.head\.appendChild\((?P=meta)\);"
    ),
    r"\g<made>;",
)
# It switches off all transitions while colors change, and does so also when they do not.
CHANGE_OF_COLORS = Change(
    "CHANGE_OF_COLORS",
    "switch off the transitions",
    re.compile(
        r'(?<=if\()(?P<set>document\.body\.setAttribute\("data-md-color-switching",""\)),'
        r"(?=(?P<chosen>\w+)\.color\.media===)"
    ),
    r'document.body.getAttribute("data-md-color-scheme")!==\g<chosen>.color.scheme&&\g<set>,',
)
# No style asks for the class by which it announces that it marks what has the focus.
CLASS_OF_PAGE = Change(
    "CLASS_OF_PAGE",
    "give the page a class",
    re.compile(
        r'&&\((?P<page>document\.documentElement)\.classList\.add\("js-focus-visible"\),'
        r'(?P=page)\.setAttribute\("data-js-focus-visible",""\)\)'
    ),
    "",
)
OPENING = (
    SEARCH_AT_ONCE,
    SEARCH_WORKER,
    ADDRESSES_OF_STYLES,
    ELEMENTS_OF_HEAD,
    SECOND_META_ELEMENT,
    CHANGE_OF_COLORS,
    CLASS_OF_PAGE,
)


def read_relative_sitemap(site: Path) -> None:
    """Let it understand relative addresses in the sitemap.

    It makes each a whole address without a base, which only works where the sitemap has the host,
    port and path that the site is looked at under.

    Raises BuildError when the script is not as expected.
    """
    _make(site, ADDRESS_IN_SITEMAP)


def lighten_opening(site: Path) -> None:
    """Let it do less when a page opens, and the same when somebody uses what it offers.

    Raises BuildError when the script is not as expected.
    """
    for change in OPENING:
        _make(site, change)


def _make(site: Path, change: Change) -> None:
    (bundle,) = sorted(site.glob(BUNDLE)) or (None,)
    text = bundle.read_text("utf-8") if bundle else ""
    changed, count = change.place.subn(change.new, text)
    if bundle is None or count != 1:
        raise BuildError(
            f"{BUNDLE}: must {change.does} in one place, has {count}. The theme has changed; "
            f"look at {change.name} in tools/theme_script.py."
        )
    bundle.write_text(changed, "utf-8")
