"""The pipeline from sources to site/. Run inside .venv: `python -m tools.website`."""

import os
import shutil
import sys
from pathlib import Path
from urllib.parse import urlsplit

from tools.browser_python import stage_browser_python
from tools.console import ROOT, BuildError, run, say, step
from tools.content_policy import pin_inline_scripts
from tools.files import WORKSHOP, fresh, only_one, replace_folder
from tools.links import broken_links
from tools.node import find_node, install_node_packages

SITE = ROOT / "site"
STAGING = WORKSHOP / "docs"
UNFINISHED = WORKSHOP / "site"


def build_site() -> Path:
    """Build the site beside the old one, swap it in when it is whole, and return its folder.

    Raises BuildError with the reason; the old site/ then stays as it is.
    """
    node = find_node()
    node_modules = install_node_packages(node)
    with only_one():
        fresh(STAGING)
        shutil.copytree(ROOT / "docs", STAGING, dirs_exist_ok=True)
        assets = STAGING / "assets"
        assets.mkdir(exist_ok=True)
        stage_browser_python(assets, node, node_modules)
        _stage_plotly(assets, node_modules)
        with step("Rendering the pages"):
            _render_templates()
            _draw_share_pictures()
            _run_mkdocs()
        pin_inline_scripts(UNFINISHED)
        _check_links()
        replace_folder(UNFINISHED, SITE)
    return SITE


def _stage_plotly(assets: Path, node_modules: Path) -> None:
    source = node_modules / "plotly.js-basic-dist-min" / "plotly-basic.min.js"
    shutil.copyfile(source, assets / "plotly-basic.min.js")


def _render_templates() -> None:
    """Let templates/ write what is generated, before MkDocs sees the folder."""
    from templates.render import render

    render(STAGING)


def _draw_share_pictures() -> None:
    """Import Pillow only in the interpreter that has it, as `_render_templates` does Jinja2."""
    from tools.share_pictures import draw_share_pictures

    draw_share_pictures(STAGING)


def _run_mkdocs() -> None:
    shutil.rmtree(UNFINISHED, ignore_errors=True)
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT)}
    run(
        [*command, "--site-dir", UNFINISHED],
        "MkDocs found something wrong in the pages.",
        environment=environment,
    )


def _check_links() -> None:
    base = urlsplit(os.environ.get("SITE_URL", "")).path or "/"
    broken = broken_links(UNFINISHED, base)
    if broken:
        raise BuildError("Links that lead nowhere:\n" + "\n".join(broken))


if __name__ == "__main__":
    try:
        build_site()
    except BuildError as error:
        say(f"build.py: {error}")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
