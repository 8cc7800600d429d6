"""Changes to the theme's minified script: how it reads the sitemap, and what opening a page costs.

It makes each address of the sitemap whole without a base, which only works where the sitemap has
the host, port and path that the site is looked at under. Opening a page, it makes the browser work
out the whole page's style four times in one task, and loads the search's index. Where a release has
no such place, the site works all the same, with reloads, slower pages or needless landmarks.
Processor time of a page's first opening in Chromium traces (a phone takes four times as long): 346
ms unchanged, 241 ms with all, the longest task 60 and 27 ms; beside a change, with it alone.
"""

import re
from pathlib import Path

from tools.console import say
from tools.files import only_file

BUNDLE = "assets/javascripts/bundle.*.min.js"

# What the script does, the pattern of the one place where it does so, and what takes its place.
CHANGES = {
    # An address of a page in the sitemap, with the site's root in the second name.
    "read the sitemap": (
        r"new URL\((?P<text>\w+\.textContent)\),(?P<root>\w+)\)",
        r"new URL(\g<text>,\g<root>),\g<root>)",
    ),
    # The search starts, and loads its index of 141 kB, when it is opened, as in a site of files.
    "start the search": (r'\(location\.protocol!=="file:"\)(?=,\w+\("search"\)\))', "(!1)"),
    # Its worker starts with the first message to it, which is sent when it is opened: 330 ms.
    "start the search's worker": (
        r"(?<==)new Worker\((?P<address>\w+)\)(?=\)\{)",
        r"Object.assign(new EventTarget,{postMessage(m){"
        r"this.worker||((this.worker=new Worker(\g<address>)).onmessage="
        r'({data:d})=>this.dispatchEvent(new MessageEvent("message",{data:d}))),'
        r"this.worker.postMessage(m)}})",
    ),
    # Whole addresses in all links make browsers load style sheets again: 309 ms.
    "write whole addresses into links": (
        r'"\[href\], \[src\]"(?=,\w+\)\)for\(let (?P<name>\w+) of\["href","src"\]\)\{'
        r"[^{}]*\{(?P<address>\w+\[(?P=name)\])=(?P=address);)",
        '"[href]:not([rel=stylesheet]), [src]"',
    ),
    # So style sheets are compared with the next page's by where they came from.
    "list the elements of a page's head": (
        r"\.set\((?P<one>\w+)\.outerHTML,(?P=one)\)",
        r'.set(\g<one>.rel==="stylesheet"?(\g<one>.sheet||\g<one>).href:\g<one>.outerHTML,\g<one>)',
    ),
    # Our own meta element for the colors comes first in the head, and only that counts: 319 ms.
    "add a meta element for the colors": (
        r'(?P<made>(?P<meta>\w+)=\w+\("meta",\{name:"color-scheme"\}\));'
        r"document\.head\.appendChild\((?P=meta)\);",
        r"\g<made>;",
    ),
    # It does so while colors change, and also when they do not: 321 ms.
    "switch off the transitions": (
        r'(?<=if\()(?P<set>document\.body\.setAttribute\("data-md-color-switching",""\)),'
        r"(?=(?P<chosen>\w+)\.color\.media===)",
        r'document.body.getAttribute("data-md-color-scheme")!==\g<chosen>.color.scheme&&\g<set>,',
    ),
    # No style asks for the class by which it announces that it marks what has the focus: 329 ms.
    "give the page a class": (
        r'&&\((?P<page>document\.documentElement)\.classList\.add\("js-focus-visible"\),'
        r'(?P=page)\.setAttribute\("data-js-focus-visible",""\)\)',
        "",
    ),
    # A landmark for a button: screen readers would list one for each command of a page.
    "wrap the button of a code block": (r'"nav"(?=,\{class:"md-code__nav"\}\))', '"div"'),
}


def change_theme_script(site: Path) -> None:
    """Make the changes in the script of `site`, which must be there; name what finds no place."""
    bundle = only_file(site, BUNDLE)
    text = bundle.read_text("utf-8")
    for does, (place, new) in CHANGES.items():
        changed, count = re.subn(place, new, text)
        if count == 1:
            text = changed
        else:
            say(f"  {BUNDLE}: must {does} in one place, has {count}; tools/theme_script.py is old.")
    bundle.write_text(text, "utf-8")
