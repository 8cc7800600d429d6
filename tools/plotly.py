"""The charts' library, changed in a few places: it holds up the page in short works, not one long.

Its body is a function that is handed to another one. Browsers take such a function for one that may
never be called, and compile it when it is: half of the time for which the script held up the page.
Parentheses around a function mark it as one that is called at once.

The other half is the work of its 400 modules. Each is a function that runs when another module asks
for it first, all within the last one's. The script now gives the list of these functions, in which
each comes behind those that it asks for, and templates/pages/live/plotly.js runs them with pauses.
"""

from pathlib import Path

from tools.console import BuildError

SCRIPT = "plotly-basic.min.js"
MODULE = "()=>{try{return r||e((r={exports:{}}).exports,r),r.exports}catch(t){throw r=0,t}}"
# What each place in the script becomes.
CHANGES = {
    'this, () => {\n"use strict"': 'this, (() => {\n"use strict"',
    f"var W=(e,r)=>{MODULE}": (
        f"var parts=[],W=(e,r)=>{{var part={MODULE};parts.push(part);return part}}"
    ),
    "return ode();})();": "return {parts,whole:ode};})();",
    "window.Plotly = Plotly;\nreturn Plotly;\n}));": (
        "window.plotlyParts = Plotly;\nreturn Plotly;\n})));"
    ),
}


def stage_plotly(assets: Path, node_modules: Path) -> None:
    """Write the library into `assets`.

    Raises:
        BuildError: if its script is not as expected.
    """
    text = (node_modules / "plotly.js-basic-dist-min" / SCRIPT).read_text("utf-8")
    for old, new in CHANGES.items():
        if text.count(old) != 1:
            raise BuildError(
                f"{SCRIPT}: must have {old!r} once, has it {text.count(old)} times. Plotly has "
                "changed; look at CHANGES in tools/plotly.py."
            )
        text = text.replace(old, new)
    (assets / SCRIPT).write_text(text, "utf-8")
