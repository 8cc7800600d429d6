"""The charts' library, changed in one place: browsers compile all of it while it loads.

Its body is a function that is handed to another one. Browsers take such a function for one that may
never be called, and compile it when it is: half of the time for which the script holds up the page.
Parentheses around a function mark it as one that is called at once.
"""

from pathlib import Path

from tools.console import BuildError

SCRIPT = "plotly-basic.min.js"
BODY = 'this, () => {\n"use strict"', "return Plotly;\n}));"
MARKED = 'this, (() => {\n"use strict"', "return Plotly;\n})));"


def stage_plotly(assets: Path, node_modules: Path) -> None:
    """Write the library into `assets`.

    Raises:
        BuildError: if its script does not begin and end as expected.
    """
    text = (node_modules / "plotly.js-basic-dist-min" / SCRIPT).read_text("utf-8")
    for old, new in zip(BODY, MARKED, strict=True):
        if text.count(old) != 1:
            raise BuildError(
                f"{SCRIPT}: must have {old!r} once, has it {text.count(old)} times. Plotly has "
                "changed; look at BODY in tools/plotly.py."
            )
        text = text.replace(old, new)
    (assets / SCRIPT).write_text(text, "utf-8")
