"""The page About: the changelog is the repository's, every project has a source."""

from templates.pages.about.context import CHANGELOG, PROJECTS, changelog
from templates.render import render_page


def test_the_changelog_is_shown_whole_and_one_level_lower() -> None:
    entries = [line for line in CHANGELOG.read_text("utf-8").splitlines() if line.startswith("- ")]
    shown = changelog()
    assert entries
    assert all(entry in shown for entry in entries)
    assert shown.startswith("### Unreleased")
    assert "\n## " not in shown


def test_every_project_has_an_address_a_source_and_a_use() -> None:
    page = render_page("about")
    for project in PROJECTS:
        assert project.address.startswith("https://")
        assert 'class="source"' in project.source
        assert project.take_it_when in page
