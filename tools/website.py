"""The pipeline from sources to site/. Run inside .venv: `python -m tools.website [--publish]`."""

import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from templates.render import render
from templates.share_pictures import draw_share_pictures
from tools.addresses import WITHOUT_SITE_URL, path_of, site_url, write_relative_sitemap
from tools.browser_python import (
    make_browser_python,
    package_lock,
    runtime_files,
    stage_browser_python,
)
from tools.bundle import BUNDLED, bundle_assets, load_page_scripts
from tools.citations import link_cited_files
from tools.compression import compress_site, fill_cache, is_compressible
from tools.console import ROOT, BuildError, run, say, step
from tools.content_policy import pin_inline_scripts
from tools.files import WORKSHOP, change_pages, digest, fresh, only_one, replace_folder
from tools.filling import fill_notebooks, placeholders
from tools.landmarks import without_nested_navigation
from tools.links import broken_links
from tools.node import find_node, install_node_packages
from tools.source import ARCHIVE, Source, files, find_source, last_change, write_archive
from tools.styles import merge_styles
from tools.theme_script import change_theme_script
from tools.versions import name_by_content

SITE = ROOT / "site"
STAGING = WORKSHOP / "docs"
UNFINISHED = WORKSHOP / "site"
BUILT = WORKSHOP / "built"  # what site/ was built from
PLOTLY = "plotly.js-basic-dist-min/plotly-basic.min.js"


def build_site(to_publish: bool) -> Path:
    """Build the site unless it is built, and return its folder.

    Args:
        to_publish: whether to add what only a host of the site needs: compressed files.

    Raises:
        BuildError: with the reason; the old site/ then stays as it is.
    """
    made_of = _ingredients()
    if SITE.is_dir() and BUILT.is_file():
        before, _, compressed = BUILT.read_text("utf-8").partition("\n")
        if before == made_of and (compressed or not to_publish):
            say("  No source has changed since site/ was built.")
            return SITE
    BUILT.unlink(missing_ok=True)
    _build(to_publish)
    BUILT.write_text(f"{made_of}\n{'compressed' if to_publish else ''}", "utf-8")
    return SITE


def _ingredients() -> str:
    """One line that changes with any file or setting that a built site depends on."""
    sources = digest(ROOT / name for name in files())
    return f"{sources} {site_url()} {find_source()} {_date()} {sys.version}".replace("\n", " ")


def _build(to_publish: bool) -> None:
    """Build the site beside the old one, and swap it in when it is whole."""
    address, source = site_url(), find_source()
    node = find_node()
    node_modules = install_node_packages(node)
    with only_one(), ThreadPoolExecutor(2) as beside:
        with step("Rendering the pages and compiling Python for the browser"):
            # On the core that rendering leaves idle: Python, and what goes into the site as it is.
            python = beside.submit(make_browser_python, node, node_modules)
            as_it_is = [*runtime_files(node_modules), node_modules / PLOTLY] if to_publish else []
            ahead = beside.submit(fill_cache, filter(is_compressible, as_it_is))
            fresh(STAGING)
            shutil.copytree(ROOT / "docs", STAGING, ignore=BUNDLED, dirs_exist_ok=True)
            bundle_assets(STAGING / "assets", node, package_lock(node_modules))
            shutil.copy2(node_modules / PLOTLY, STAGING / "assets")
            fill_notebooks(STAGING / "notebooks", source)
            if not source.repository:
                write_archive(STAGING / ARCHIVE)
            render(STAGING)
            draw_share_pictures(STAGING)
            _run_mkdocs(address, source)
            stage_browser_python(UNFINISHED / "assets", node_modules, python.result())
            ahead.result()
        link_cited_files(UNFINISHED, source)
        change_theme_script(UNFINISHED)
        if not address:
            write_relative_sitemap(UNFINISHED)
        load_page_scripts(UNFINISHED)
        merge_styles(UNFINISHED, node)
        change_pages(UNFINISHED, without_nested_navigation)
        name_by_content(UNFINISHED, path_of(address))
        pin_inline_scripts(UNFINISHED)
        wrong = [*broken_links(UNFINISHED, path_of(address)), *placeholders(UNFINISHED)]
        if wrong:
            raise BuildError("Links to nowhere, or places not filled in:\n" + "\n".join(wrong))
        if to_publish:
            compress_site(UNFINISHED)
        replace_folder(UNFINISHED, SITE)
    if not address:
        say(WITHOUT_SITE_URL)


def _date() -> str:
    """The time that the site gives for its making, in seconds since 1970."""
    return os.environ.get("SOURCE_DATE_EPOCH", last_change())


def _run_mkdocs(address: str, source: Source) -> None:
    shutil.rmtree(UNFINISHED, ignore_errors=True)
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
    ours = {"NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT)}
    ours |= {"SITE_URL": address, "SOURCE_LINK": source.link}
    ours |= {"SOURCE_DATE_EPOCH": _date()}
    run(
        [*command, "--site-dir", UNFINISHED],
        "MkDocs found problems in the pages.",
        environment={**os.environ, **ours},
    )


if __name__ == "__main__":
    try:
        build_site(to_publish="--publish" in sys.argv[1:])
    except BuildError as error:
        sys.exit(f"build.py: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
