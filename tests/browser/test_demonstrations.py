"""The demonstrations show what CPython answers, to mouse, touch and keyboard."""

from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.visits import Visitor, python_answers

pytestmark = pytest.mark.browser

SHOWN = """(root) => Object.fromEntries(
  [...root.querySelectorAll("[data-figure]")].map((e) => [e.dataset.figure, e.textContent]))"""
SET = """(input, value) => {
  input.value = value;
  input.dispatchEvent(new Event("input", {bubbles: true}));
}"""
METERED = "Object.defineProperty(navigator, 'connection', {value: {saveData: true}})"
SEGMENTS = """(root) => [...root.querySelectorAll("[data-lane]")].map((lane) =>
  [...lane.querySelectorAll("rect")].map((rect) =>
    [rect.getAttribute("class"), rect.getAttribute("x"), rect.getAttribute("width")]))"""


def root_of(page: Page, name: str) -> Locator:
    return page.locator(f"#{name}")


def settled(root: Locator) -> None:
    expect(root).to_have_attribute("aria-busy", "false")


def assert_figures(root: Locator, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """The page shows what CPython answers to `params`; gives the whole answer."""
    settled(root)
    value: dict[str, Any] = python_answers(method, params)["value"]
    shown = root.evaluate(SHOWN)
    assert len(shown) > 8
    assert shown == {name: value["figures"][name] for name in shown}, params
    return value


def place_of(mark: Locator) -> dict[str, float]:
    texts = [mark.get_attribute(name) or "" for name in ("x", "y")]
    left, top = (float(text.removesuffix("%")) for text in texts)
    return {"left": left, "top": top}


def test_the_plane_follows_buttons_sliders_mouse_and_keys(visit: Visitor) -> None:
    visitor = visit(viewport={"width": 1280, "height": 1000})
    page = visitor.open("security/")
    page.wait_for_load_state("networkidle")
    assert any("pyodide" in url for url in visitor.requests), "Python comes before the first touch"
    root = root_of(page, "plane")
    bad = root.locator("[data-bad]")

    for attack in ("flip", "scale", "collude", "pull"):
        root.locator(f"[data-attack={attack}].button").click()
        value = assert_figures(root, "aggregate", {"attack": attack})
        assert place_of(root.locator("[data-result=mean]"))["left"] == pytest.approx(
            value["results"]["mean"]["left"]
        )
    root.locator("[name=bad_count]").evaluate(SET, "4")
    root.locator("[name=radius]").evaluate(SET, "0.7")
    root.locator("[name=iterations]").evaluate(SET, "13")
    root.locator("[name=start]").select_option("median")
    chosen = {"bad_count": 4, "radius": 0.7, "iterations": 13, "start": "median"}
    value = assert_figures(root, "aggregate", {"attack": "pull", **chosen})
    expect(root.locator("[data-leg]:not([data-off])")).to_have_count(13)
    expect(root.locator("[data-bad]:not([data-off])")).to_have_count(4)

    box = root.locator("[data-plane]").bounding_box()
    grip = bad.nth(1).locator("rect").bounding_box()
    assert box
    assert grip
    page.mouse.move(grip["x"] + grip["width"] / 2, grip["y"] + grip["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 0.25 * box["height"], steps=5)
    page.mouse.up()
    settled(root)
    assert place_of(bad.nth(1)) == pytest.approx({"left": 50, "top": 25}, abs=0.2)
    points: list[dict[str, float]] = [{"x": place["x"], "y": place["y"]} for place in value["bad"]]
    points[1] = place_of(bad.nth(1))
    assert_figures(root, "aggregate", {"attack": "hand", "bad": points, **chosen})
    expect(root.locator("[data-attack][aria-pressed=true]")).to_have_count(0)

    for key in ("ArrowRight", "ArrowRight", "Shift+ArrowUp", "ArrowDown"):
        page.keyboard.press(key)
    settled(root)
    before, points[1] = points[1], place_of(bad.nth(1))
    assert points[1]["left"] - before["left"] == pytest.approx(2)
    assert points[1]["top"] - before["top"] == pytest.approx(-6.4)
    value = assert_figures(root, "aggregate", {"attack": "hand", "bad": points, **chosen})
    expect(root.locator("[data-summary]")).to_have_text(value["figures"]["summary"])
    assert "sends" in (bad.nth(1).get_attribute("aria-label") or "")
    assert visitor.errors == []


def test_a_tap_moves_the_chosen_point_and_a_finger_can_drag_it(visit: Visitor) -> None:
    visitor = visit(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page = visitor.open("security/")
    root = root_of(page, "plane")
    box = root.locator("[data-plane]").bounding_box()
    assert box
    page.touchscreen.tap(box["x"] + 0.25 * box["width"], box["y"] + 0.25 * box["height"])
    first = root.locator("[data-bad]").first
    assert place_of(first) == pytest.approx({"left": 25, "top": 25}, abs=0.5)
    assert first.evaluate("(mark) => getComputedStyle(mark).touchAction") == "none"
    assert (
        root.locator(".plane__grip").first.evaluate("(e) => e.getBoundingClientRect().width") > 24
    )


def test_the_race_follows_its_sliders(visit: Visitor) -> None:
    visitor = visit()
    visitor.page.add_init_script(METERED)
    page = visitor.open("how-it-works/")
    root = root_of(page, "race")
    root.scroll_into_view_if_needed()
    page.wait_for_load_state("networkidle")
    assert not any("pyodide" in url for url in visitor.requests), "each byte is paid for"
    for speeds in (["20", "0.5", "7.5"], ["8", "4", "0"]):
        for index, speed in enumerate(speeds):
            root.locator(f"#race-{index}").evaluate(SET, speed)
        value = assert_figures(root, "pace", {"speeds": speeds})
        lanes = [lane for way in value["timelines"].values() for lane in way["lanes"]]
        expect(root.locator("[data-lane] rect")).to_have_count(sum(map(len, lanes)))
        drawn = root.evaluate(SEGMENTS)
        assert [[part[0] for part in lane] for lane in drawn] == [
            [f"race__{part['activity']}" for part in lane] for lane in lanes
        ]
        widths = [float(part[2].removesuffix("%")) for lane in drawn for part in lane]
        assert widths == pytest.approx([part["width"] for lane in lanes for part in lane])
    root.get_by_role("button", name="Equal").click()
    value = assert_figures(root, "pace", {"speeds": ["4", "4", "4"]})
    expect(root.locator("[data-summary]")).to_have_text(value["figures"]["summary"])
    root.locator("#race-0").focus()
    for _ in range(8):
        page.keyboard.press("ArrowLeft")
    assert_figures(root, "pace", {"speeds": ["0", "4", "4"]})
    expect(root.locator("#race-0")).to_have_attribute("aria-valuetext", "left")
    for index in (1, 2):
        root.locator(f"#race-{index}").evaluate(SET, "0")
    expect(root.locator("[data-status]")).to_contain_text("must be above 0")
    assert visitor.errors == []


@pytest.mark.parametrize(
    ("path", "name", "method"),
    [("security/", "plane", "aggregate"), ("how-it-works/", "race", "pace")],
)
def test_without_javascript_the_first_state_is_there_and_the_form_is_not(
    visit: Visitor, path: str, name: str, method: str
) -> None:
    page = visit(java_script_enabled=False).open(path)
    root = root_of(page, name)
    value = python_answers(method, {})["value"]
    for element in root.locator("[data-figure]").all():
        expected = value["figures"][element.get_attribute("data-figure") or ""]
        assert element.text_content() == expected
    expect(root.locator("form")).to_be_hidden()
    expect(page.locator("noscript .notice, .notice").first).to_be_visible()


@pytest.mark.parametrize(
    ("path", "name", "method", "button", "params"),
    [
        ("security/", "plane", "aggregate", "[data-attack=scale].button", {"attack": "scale"}),
        ("how-it-works/", "race", "pace", "[data-speeds='4 4 4']", {"speeds": ["4", "4", "4"]}),
    ],
)
def test_before_python_is_there_a_script_answers_as_it_would(
    visit: Visitor, path: str, name: str, method: str, button: str, params: dict[str, Any]
) -> None:
    visitor = visit()
    visitor.page.route("**/pyodide.asm.wasm", lambda route: None)
    root = root_of(visitor.open(path), name)
    root.locator(button).click()
    assert_figures(root, method, params)
    expect(root.locator("[data-status]")).to_contain_text("Loading Python")
    assert visitor.errors == []


def test_without_pyodide_the_picture_stays_and_says_so(visit: Visitor) -> None:
    visitor = visit()
    visitor.page.route("**/pyodide-*/*", lambda route: route.fulfill(status=404, body="gone"))
    page = visitor.open("security/")
    root = root_of(page, "plane")
    root.scroll_into_view_if_needed()
    expect(root.locator("[data-status]")).to_contain_text("Python could not be loaded")
    expect(root.locator("[name=radius]")).to_be_disabled()
    value = python_answers("aggregate", {})["value"]
    expect(root.locator("[data-figure='mean.error']")).to_have_text(value["figures"]["mean.error"])
