"""One global step on 'How it works': by button, key and touch, on its own, and without a script."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from templates.pages.how_it_works.context import context
from templates.pages.how_it_works.step import Mark, Picture, Scene
from tests.browser.visits import Visitor

pytestmark = pytest.mark.browser

VISIBLE = """(picture) => [...picture.querySelectorAll("[data-shown]")]
  .map((mark) => !mark.hasAttribute("data-off"))"""
PLACES = """(picture) => [...picture.querySelectorAll("[data-places]")].map((mark) => {
  const {e, f} = new DOMMatrix(getComputedStyle(mark).transform);
  return [e, f];
})"""


def known() -> tuple[list[Scene], list[Mark]]:
    """The scenes and the marks that the page is built with."""
    names = context()
    return names["scenes"], names["step_marks"]  # type: ignore[return-value]


def figure(page: Page) -> Locator:
    """The figure, in sight."""
    root = page.locator("#step")
    root.scroll_into_view_if_needed()
    expect(root).to_have_attribute("data-scene", "0")
    return root


def assert_picture(root: Locator, number: int) -> None:
    """The picture of that number is drawn, explained and described."""
    scenes, marks = known()
    expect(root).to_have_attribute("data-scene", str(number))
    expect(root.locator("li:visible")).to_have_text(
        re.compile(re.escape(scenes[number].title) + " *" + re.escape(scenes[number].words))
    )
    picture = root.locator("[data-picture]")
    expect(picture).to_have_attribute("aria-label", scenes[number].seen)
    assert picture.evaluate(VISIBLE) == [number in mark.shown for mark in marks]
    expected = [mark.places[number] for mark in marks if mark.moves]
    for found, wanted in zip(picture.evaluate(PLACES), expected, strict=True):
        assert found == pytest.approx(wanted, abs=0.1)


def test_buttons_keys_and_taps_lead_through_the_step(visit: Visitor) -> None:
    visitor = visit(reduced_motion="reduce", has_touch=True)
    root = figure(visitor.open("how-it-works/"))
    page, last = visitor.page, len(Picture) - 1
    forward, back = (root.get_by_role("button", name=name) for name in ("Next", "Back"))
    expect(back).to_be_disabled()
    for number in range(1, last + 1):
        forward.click()
        assert_picture(root, number)
    expect(forward).to_be_disabled()
    expect(root.locator("[data-stage]")).to_be_focused()
    for key, number in (("ArrowLeft", last - 1), ("Home", 0), ("ArrowRight", 1), ("End", last)):
        page.keyboard.press(key)
        assert_picture(root, number)
    root.locator("[data-stage]").tap()
    assert_picture(root, 0)
    root.locator("[data-stage]").tap()
    assert_picture(root, 1)
    back.click()
    assert_picture(root, 0)
    assert visitor.errors == []


def test_it_plays_on_its_own_only_where_motion_is_welcome(visit: Visitor) -> None:
    still = visit(reduced_motion="reduce")
    still.page.clock.install()
    root = figure(still.open("how-it-works/"))
    still.page.clock.run_for(60_000)
    assert_picture(root, 0)
    root.get_by_role("button", name="Play").click()
    still.page.clock.run_for(120_000)
    expect(root).to_have_attribute("data-scene", str(len(Picture) - 1))
    expect(root.get_by_role("button", name="Play")).to_be_visible()

    moving = visit(reduced_motion="no-preference")
    moving.page.clock.install()
    root = figure(moving.open("how-it-works/"))
    pause = root.get_by_role("button", name="Pause")
    expect(pause).to_be_visible()
    expect(root.locator("[data-scenes]")).to_have_attribute("aria-live", "off")
    moving.page.clock.run_for(15_000)
    expect(root).to_have_attribute("data-scene", re.compile("[1-3]"))
    pause.click()
    expect(root.locator("[data-scenes]")).to_have_attribute("aria-live", "polite")
    shown = root.get_attribute("data-scene") or ""
    moving.page.clock.run_for(60_000)
    expect(root).to_have_attribute("data-scene", shown)
    assert moving.errors == []


def test_without_javascript_all_pictures_stand_side_by_side(visit: Visitor) -> None:
    page = visit(java_script_enabled=False).open("how-it-works/")
    root, scenes = page.locator("#step"), known()[0]
    pictures = root.get_by_role("img")
    expect(pictures).to_have_count(len(scenes))
    for picture, scene in zip(pictures.all(), scenes, strict=True):
        expect(picture).to_be_visible()
        expect(picture).to_have_attribute("aria-label", scene.seen)
    for item, scene in zip(root.locator("li").all(), scenes, strict=True):
        expect(item).to_contain_text(scene.words)
    expect(root.get_by_role("button")).to_have_count(0)
