"""Rules for every page: own files only, accessible, no wider than the window."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from playwright.sync_api import TimeoutError as TimeoutExpired

from templates.render import pages
from tests.browser.visits import Visit, Visitor, advised, open_calculator, unfold
from tools.addresses import pages_of
from tools.console import ROOT

pytestmark = pytest.mark.browser

DOCS = ROOT / "docs"
AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
# The size of targets belongs to WCAG 2.2 and is off by default. Without this `resultTypes`, axe
# describes each element that passes a rule, which takes four times as long.
RUN_AXE = """(only) => axe.run({
  resultTypes: ["violations"],
  ...(only.length ? {runOnly: only} : {rules: {"target-size": {enabled: true}}}),
})"""
# Whether text stands out depends on its own and its ancestors' computed style alone: of all texts
# with the same, the first and the last are looked at, and what they contain.
MARK_LOOKS = """() => {
  for (const one of document.querySelectorAll("[data-look]")) one.removeAttribute("data-look");
  const grounds = new Map(), first = new Map(), last = new Map();
  const own = ({backgroundColor: color, backgroundImage: image, opacity, position, filter}) =>
    color === "rgba(0, 0, 0, 0)" && image === "none" && opacity === "1" && position === "static"
      && filter === "none" ? "" : [color, image, opacity, position, filter].join();
  for (const element of [document.body, ...document.body.querySelectorAll("*")]) {
    const style = getComputedStyle(element);
    const ground = `${grounds.get(element.parentElement) ?? ""}/${own(style)}`.replace("//", "/");
    grounds.set(element, ground);
    const says = [...element.childNodes].some(({nodeType, data}) => nodeType === 3 && data.trim());
    const isText = says || element.matches("input, select, textarea");
    if (!isText || !element.checkVisibility()) continue;
    const {color, fontSize, fontWeight, textShadow} = style;
    const look = [ground, color, fontSize, fontWeight, textShadow].join();
    if (!first.has(look)) first.set(look, element);
    last.set(look, element);
  }
  for (const element of [...first.values(), ...last.values()]) element.dataset.look = "";
  axe.configure({rules: [{id: "color-contrast", selector: "[data-look], [data-look] *"}]});
}"""
# Of rows and list entries with the same elements, axe looks at the first two of each list, and at
# those whose texts are the first or the last of their look.
DROP_REPEATED = """() => {
  const shapeOf = (one) => [one.tagName, one.className, ...one.getAttributeNames(),
    one.textContent.trim() && "text", "(", ...[...one.children].map(shapeOf), ")"].join(" ");
  const entries = [...document.querySelectorAll("tbody > tr, li")];
  for (const list of new Set(entries.map((entry) => entry.parentElement))) {
    const counts = new Map();
    for (const entry of [...list.children]) {
      const shape = shapeOf(entry);
      counts.set(shape, (counts.get(shape) ?? 0) + 1);
      const isMarked = entry.matches(":is([data-look], :has([data-look]))");
      if (counts.get(shape) > 2 && !isMarked) entry.remove();
    }
  }
}"""
# Of axe's rules, those that a narrow window or the dark scheme can break: the elements and their
# names are the same.
OF_LOOKS = ("target-size", "scrollable-region-focusable", "color-contrast")
SCHEME = "(name) => document.body.setAttribute('data-md-color-scheme', name)"
# Pages of whose texts a wide window has more, the first for what all pages have.
WIDER = {"about/", "live/", "measurements/", "reference/", "tutorial/"}
UNFOLD = "() => { for (const one of document.querySelectorAll('details')) one.open = true; }"
# The site's policy allows a style that a script makes, not one that a test adds.
END_TRANSITIONS = """() => {
  const style = new CSSStyleSheet();
  style.replaceSync("* { transition: none !important; animation: none !important; }");
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, style];
}"""
FITS = "(width) => document.documentElement.scrollWidth <= width"
RESIZE_MS = 20_000
WIDTHS = (320, 390, 768, 1440)
PHONE, DESKTOP = 390, 1440
# A page where more than this moves while it loads feels restless; the usual limit is 0.1.
MOST_SHIFT = 0.02
# Of a phone, Python's files included.
MOST_REQUESTS = 20
NOTE_SHIFTS = """
window.shifts = [];
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput)
    window.shifts.push([entry.value, entry.sources.map(({node}) => node?.parentElement?.id)]);
}).observe({type: "layout-shift", buffered: true});
"""
# Columns whose heading begins and ends elsewhere than the first row's cell, where the table is one.
CROOKED = """() => {
  const edges = (cell) => {
    const range = document.createRange();
    range.selectNodeContents(cell);
    const {left, right, width} = range.getBoundingClientRect();
    return {left, right, width};
  };
  const crooked = [];
  for (const table of document.querySelectorAll("main table")) {
    const headings = [...table.tHead?.rows ?? []].at(-1);
    const row = table.tBodies[0]?.rows[0];
    if (!headings || row?.cells.length !== headings.cells.length || !table.offsetParent) continue;
    [...headings.cells].forEach((heading, index) => {
      if (heading.querySelector(".visually-hidden")) return;
      const [above, below] = [edges(heading), edges(row.cells[index])];
      if (above.width < 2 || below.width < 2) return;
      const off = Math.min(Math.abs(above.left - below.left), Math.abs(above.right - below.right));
      if (off > 2) crooked.push([heading.textContent, off]);
    });
  }
  return crooked;
}"""
CUT = """(frames) => [...document.querySelectorAll(frames)]
  .filter((frame) => frame.offsetParent && frame.scrollWidth > frame.clientWidth + 1)
  .map((frame) => frame.getAttribute("aria-label") ?? frame.textContent)"""
# Choices whose words are wider than the room that a closed list has for them.
CUT_CHOICES = """() => [...document.querySelectorAll("main select")]
  .filter((list) => list.offsetParent)
  .flatMap((list) => {
    const style = getComputedStyle(list);
    const padding = parseFloat(style.paddingLeft) + parseFloat(style.paddingRight);
    const room = list.clientWidth - padding;
    const ruler = document.createElement("span");
    for (const name of ["fontFamily", "fontSize", "fontWeight", "fontStretch", "letterSpacing"]) {
      ruler.style[name] = style[name];
    }
    Object.assign(ruler.style, {position: "absolute", whiteSpace: "pre"});
    document.body.append(ruler);
    const wide = [...list.options].filter((choice) => {
      ruler.textContent = choice.label;
      return ruler.getBoundingClientRect().width > room;
    });
    ruler.remove();
    return wide.map((choice) => [list.id || list.name, choice.label]);
  })"""


CONNECTIONS = " connect-src 'self' https://huggingface.co"


def sources() -> set[str]:
    """All pages by their sources, which are there before the site is built."""
    return {*pages(), *(str(page.relative_to(DOCS))[:-3] for page in DOCS.rglob("*.md"))}


ADDRESSES = sorted("./" if name == "index" else f"{name}/" for name in sources())
# Of the pages that one template writes from docstrings, one that is not long stands for all.
REFERENCE = {path for path in ADDRESSES if re.match("reference/.", path)}
SCANNED = {*ADDRESSES} - REFERENCE | {"reference/parts-of-memory/"}
SCRIPTED = (
    *("./", "calculator/", "live/", "models-on-gpus/", "numbers/", "plan/"),
    *("how-it-works/", "train-in-this-tab/"),
)


def test_every_page_has_a_title_a_description_and_a_policy_of_its_own(site: Path) -> None:
    assert sorted(pages_of(site)) == ADDRESSES
    assert {*ADDRESSES} >= SCANNED
    titles = set()
    for path in ADDRESSES:
        text = (site / path / "index.html").read_text("utf-8")
        (policy,) = re.findall(
            r'<meta http-equiv="?Content-Security-Policy"? content="([^"]*)"', text
        )
        assert "default-src 'self'" in policy, path
        # one click of the calculator asks the Hub; navigation keeps the first page's policy
        assert re.findall(r"[^;]*http[^;]*", policy) == [CONNECTIONS], path
        (scripts,) = [part for part in policy.split(";") if "script-src" in part]
        assert "unsafe" not in scripts, path
        assert re.search(r'<meta name="?description"? content="[^"]+"', text), path
        assert text.count("<h1") == 1, path
        titles.add(text.partition("<title>")[2].partition("</title>")[0])
    assert len(titles) == len(ADDRESSES)


@pytest.mark.parametrize("path", ADDRESSES)
def test_a_page_loads_only_its_own_files_stays_still_fits_and_is_accessible(
    visit: Visitor, path: str
) -> None:
    visitor = load(visit, path, PHONE)
    page = visitor.page
    own = (visitor.address, "data:", "blob:")
    assert [url for url in visitor.requests if not url.startswith(own)] == []
    assert len(visitor.requests) <= MOST_REQUESTS, visitor.requests
    assert page.context.cookies() == []
    page.evaluate(UNFOLD)
    page.evaluate(END_TRANSITIONS)
    assert page.evaluate(CUT_CHOICES) == []
    assert page.evaluate(CUT, "table.words, pre.terminal") == []
    assert_never_too_wide(page, path)
    assert page.evaluate(CUT_CHOICES) == []
    assert page.evaluate(CROOKED) == []
    assert page.evaluate(CUT, "main .scroller") == []
    if path in SCANNED:
        page.evaluate(AXE.read_text("utf-8"))
        page.evaluate(MARK_LOOKS)
        page.evaluate(DROP_REPEATED)
        assert findings(page) == []
        page.evaluate(SCHEME, "slate")
        if path in WIDER:
            assert findings(page, "color-contrast") == [], "in the dark"
        page.set_viewport_size({"width": PHONE, "height": 900})
        assert findings(page, *OF_LOOKS) == [], "on a phone in the dark"
    assert visitor.errors == []


def test_pages_with_scripts_stay_still_on_a_desktop_and_a_shared_state_on_a_phone(
    visit: Visitor,
) -> None:
    for path in SCRIPTED:
        load(visit, path, DESKTOP)
    load(visit, "calculator/?model=gpt2-xl&batch_size=2", PHONE)


def load(visit: Visitor, path: str, width: int) -> Visit:
    """A first visit to a page, once nothing more comes; nothing has moved meanwhile."""
    visitor, shifts = load_once(visit, path, width)
    if moved(shifts) >= MOST_SHIFT:  # a busy machine may paint a page before its style
        visitor.page.context.close()
        visitor, shifts = load_once(visit, path, width)
    assert moved(shifts) < MOST_SHIFT, (path, shifts)
    return visitor


def moved(shifts: list[tuple[float, list[str]]]) -> float:
    """The sum of all shifts, in shares of the window."""
    return sum(value for value, _ in shifts)


def load_once(visit: Visitor, path: str, width: int) -> tuple[Visit, list[tuple[float, list[str]]]]:
    """A first visit to a page, and what moved in it."""
    visitor = visit(viewport={"width": width, "height": 900})
    visitor.page.add_init_script(NOTE_SHIFTS)
    page = visitor.open_all(path)
    if path.startswith("calculator/"):
        advised(page)
    return visitor, page.evaluate("() => window.shifts")


@pytest.mark.one_python
def test_the_longest_figures_fit_the_window(visit: Visitor) -> None:
    page = visit().open("calculator/?model=gpt3-175b")
    expect(page.locator("#calculator-verdict")).to_contain_text("TiB")
    unfold(page)
    assert_never_too_wide(page, "gpt3-175b")


def assert_never_too_wide(page: Page, path: str) -> None:
    """At no width does a page stay wider than the window; charts follow a moment later."""
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        try:
            page.wait_for_function(FITS, arg=width, timeout=RESIZE_MS)
        except TimeoutExpired:
            wide = page.evaluate("() => document.documentElement.scrollWidth")
            pytest.fail(f"{path} is {wide} wide at {width}")


def findings(page: Page, *rules: str) -> list[tuple[str, str, list[str]]]:
    """Findings of axe, of all its rules or of these: the rule, its severity, and the place."""
    page.evaluate(MARK_LOOKS)
    found = page.evaluate(RUN_AXE, rules)["violations"]
    return [(v["id"], v["impact"], [n["target"] for n in v["nodes"]][:5]) for v in found]


@pytest.mark.one_python
def test_printing_the_calculator_keeps_the_choices(visit: Visitor) -> None:
    page = open_calculator(visit(), "precision=fp32&dropout=0.2")
    page.emulate_media(media="print")
    page.evaluate("() => dispatchEvent(new Event('beforeprint'))")
    for control in ("#model", "#gpu", "#precision", "#batch_size", "#optimizer", "#dropout"):
        expect(page.locator(control)).to_be_visible()
    expect(page.locator("#batch_size-help")).to_be_hidden()


def test_the_search_finds_a_page_and_breaks_no_policy(visit: Visitor) -> None:
    visitor = visit()
    page = visitor.open_all()  # typing before the theme's script is there is lost
    assert not any("/workers/search." in url for url in visitor.requests)
    page.locator(".md-search__input").click()
    page.keyboard.type("checkpointing")
    expect(page.locator(".md-search-result__item").first).to_be_visible()
    assert visitor.errors == []


def test_the_first_stop_of_the_keyboard_skips_to_the_content(visit: Visitor) -> None:
    page = visit().open("about/")
    page.keyboard.press("Tab")
    skip = page.locator(":focus")
    expect(skip).to_have_class(re.compile("md-skip"))
    expect(skip).to_be_visible()


def test_a_missing_page_offers_ways_on(visit: Visitor) -> None:
    page = visit().open("no/such/page/")
    page.locator("article a", has_text="Calculator").click()
    expect(page.locator("#calculator-form")).to_be_attached()


def test_the_tabs_come_back_when_one_scrolls_back(visit: Visitor) -> None:
    page = visit(viewport={"width": 1440, "height": 900}).open("about/")
    tabs = page.locator(".md-tabs")
    page.mouse.move(700, 600)
    page.mouse.wheel(0, 900)
    expect(tabs).to_have_attribute("hidden", "")
    page.mouse.wheel(0, -2000)
    expect(tabs).not_to_have_attribute("hidden", "")
    expect(tabs.get_by_text("Calculator")).to_be_visible()


def test_the_colors_change_at_once_and_stay_changed(visit: Visitor) -> None:
    page = visit(color_scheme="light").open("about/")
    body, color = page.locator("body"), page.locator("meta[name=theme-color]")
    expect(body).to_have_attribute("data-md-color-scheme", "default")
    before = color.get_attribute("content")
    page.get_by_title("Dark colors").click()
    expect(body).to_have_attribute("data-md-color-scheme", "slate")
    expect(body).not_to_have_attribute("data-md-color-switching", "")
    expect(color).not_to_have_attribute("content", before or "")
    page.reload()
    expect(body).to_have_attribute("data-md-color-scheme", "slate")
    page.get_by_title("Light colors").click()
    expect(body).to_have_attribute("data-md-color-scheme", "default")
    expect(color).to_have_attribute("content", before or "")
