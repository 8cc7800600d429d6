"""Interactions with the live page: charts, contributors, pictures, checkpoints."""

import re

import pytest
from playwright.sync_api import Page, expect

from templates.pieces.recorded_run import first_run
from tests.browser.test_every_page import AXE, findings
from tests.browser.visits import Visitor, touch
from tests.browser.written_run import LiveServer, WrittenRun, write_crowd

pytestmark = pytest.mark.browser

# Texts that live.js writes; "detail", "problems" and the like are empty in an archive.
WRITTEN = """() => Object.fromEntries([...document.querySelectorAll(
  "#live [data-live]:not(section, form, details, input, ul, table, .chart)")]
  .filter((element) => !["reader", "board", "announcement"].includes(element.dataset.live))
  .map((element) => [element.dataset.live, element.textContent.replace(/\\s+/g, " ").trim()]))"""


RUN = first_run()
FIRST, LAST = RUN.steps[0], RUN.steps[-1]
# Who did most first, as the table begins.
PEOPLE = sorted(RUN.peers, key=lambda peer: -peer["samples"])
NAMES = [peer["name"] for peer in PEOPLE]
PLOT = "document.querySelector('[data-chart=loss] [data-plot]')"


@pytest.fixture
def charts(archive: Page) -> Page:
    """The same with its loss drawn."""
    touch(archive)
    expect(archive.locator("[data-chart=loss] .main-svg").first).to_be_visible()
    return archive


def names(page: Page) -> list[str]:
    """The contributors in the table."""
    return page.locator(".board__name bdi").all_inner_texts()


def decimal(loss: float) -> str:
    """A loss as the page writes it."""
    return f"{loss:.3f}"


def test_the_script_writes_what_the_page_was_built_with(visit: Visitor, archive: Page) -> None:
    before = visit(java_script_enabled=False).open("live/").locator("#live")
    rows = before.locator(".board__table tbody tr").all_inner_texts()
    figures = ("step", "loss", "loss_before", "working", "others", "samples_per_second", "samples")
    figures += ("traffic", "traffic_step", "left", "state", "title", "note", "pictures-when")
    figures += ("join",)
    after = archive.evaluate(WRITTEN)
    for name in figures:
        text = " ".join(before.locator(f"[data-live={name}]").inner_text().split())
        assert after[name] == text, name
    drawn = archive.locator(".board__table tbody tr").all_inner_texts()
    assert [row.split() for row in drawn] == [row.split() for row in rows]
    expect(before.locator("[data-chart=loss] svg.plot")).to_be_visible()
    expect(before.locator(".through__row img").first).to_be_visible()
    expect(before.locator("#live-charts")).to_be_hidden()
    expect(before.locator(".board__name a")).to_have_count(len(NAMES))


def test_charts_say_what_is_pointed_at_zoom_are_saved_and_follow_controls_and_scheme(
    charts: Page,
) -> None:
    axes = f"() => [{PLOT}._fullLayout.xaxis, {PLOT}._fullLayout.yaxis].map((axis) => axis.type)"
    span = f"() => {PLOT}._fullLayout.xaxis.range"
    assert charts.evaluate(axes) == ["linear", "linear"]
    assert charts.evaluate(span) == [FIRST["step"], LAST["step"]]
    chart, zoom_out = charts.locator("[data-chart=loss]"), charts.locator("[data-live=zoom-out]")
    chart.locator("[data-plot]").hover()
    expect(chart.locator(".hoverlayer")).to_contain_text("loss")
    with charts.expect_download() as saved:
        chart.get_by_role("button", name="Download plot as a PNG").click()
    assert saved.value.suggested_filename == "loss.png"
    chart.get_by_role("button", name="Zoom in").click()
    expect(zoom_out).to_be_visible()
    assert charts.evaluate(span) != [FIRST["step"], LAST["step"]]
    chart.get_by_role("button", name="Reset axes").click()
    expect(zoom_out).to_be_hidden()
    charts.wait_for_function(f"() => ({span})()[0] === {FIRST['step']}")
    charts.get_by_label("by time").check()
    charts.get_by_label("Loss on a log scale").check()
    charts.wait_for_function(f"() => ({axes})().join() === 'date,log'")
    charts.get_by_label("by step").check()
    charts.get_by_label("Range").select_option("newest tenth")
    start = LAST["step"] - (LAST["step"] - FIRST["step"]) / 10
    charts.wait_for_function(f"(start) => ({span})()[0] === start", arg=start)
    colour = f"() => {PLOT}.data[1].line.color"
    light = charts.evaluate(colour)
    charts.evaluate("document.body.dataset.mdColorScheme = 'slate'")
    charts.wait_for_function(f"(light) => ({colour})() !== light", arg=light)


def test_the_charts_are_read_by_keyboard_as_a_list_and_as_a_table(charts: Page) -> None:
    reader = charts.locator("#live-reader")
    reader.focus()
    charts.keyboard.press("Home")
    expect(charts.locator("[data-live=reader]")).to_contain_text(decimal(FIRST["loss"]))
    words = f"Step {FIRST['step']}, Loss {decimal(FIRST['loss'])}"
    expect(reader).to_have_attribute("aria-valuetext", re.compile(words))
    charts.keyboard.press("ArrowRight")
    expect(charts.locator("[data-chart=loss] .chart__cursor")).to_be_visible()
    charts.get_by_text("The charts as a table").click()
    rows = charts.locator("[data-live=table] tbody tr")
    expect(rows.first).to_contain_text(decimal(FIRST["loss"]))
    expect(rows.last).to_contain_text(decimal(LAST["loss"]))
    assert rows.count() <= 60
    left = [peer for peer in RUN.peers if peer["state"] == "left"]
    shapes = f"() => {PLOT}._fullLayout.shapes.length"
    assert charts.evaluate(shapes) == len(RUN.peers) + len(left) + len(RUN.checkpoints)
    charts.get_by_text("The events as a list").click()
    events = charts.locator(".events li")
    expect(events).to_have_count(len(RUN.peers) + len(left) + len(RUN.checkpoints))
    for peer in RUN.peers:
        expect(events.filter(has_text=f"{peer['name']} joined")).to_have_count(1)
    for peer in left:
        expect(events.filter(has_text=f"{peer['name']} left")).to_have_count(1)
    first = RUN.checkpoints[0]["step"]
    expect(events.filter(has_text=re.compile(rf"Checkpoint at step {first}\b"))).to_have_count(1)
    expect(charts.locator(".key--event-left")).to_be_visible()
    expect(charts.locator(".key--event-stalled")).to_be_hidden()
    line = charts.evaluate(f"() => (({{ x, y }}) => [[...x], [...y]])({PLOT}.data[2])")
    rates = [list(point) for point in zip(*line, strict=True)]
    corners = [corner for corner in RUN.card["schedule"]["corners"] if corner[0] <= LAST["step"]]
    assert [corner for corner in corners if corner not in rates] == []
    charts.get_by_label("Events").uncheck()
    charts.wait_for_function(f"() => ({shapes})() === 0")


def test_on_a_phone_the_charts_library_comes_when_a_chart_does(visit: Visitor) -> None:
    visitor = visit(viewport={"width": 390, "height": 844})
    page = visitor.open("live/")
    expect(page.locator("#live")).to_have_attribute("data-rounds", "1")
    visitor.rest()
    assert [url for url in visitor.requests if "plotly" in url] == []
    page.locator("[data-chart=loss]").scroll_into_view_if_needed()
    expect(page.locator("[data-chart=loss] .main-svg").first).to_be_visible()
    assert visitor.errors == []


def test_without_the_charts_library_the_page_says_so_and_keeps_the_curve(visit: Visitor) -> None:
    visitor = visit()
    visitor.page.route("**/plotly-basic.min.js", lambda route: route.fulfill(status=404))
    page = visitor.open("live/")
    touch(page)
    expect(page.locator("[data-live=charts-missing]")).to_be_visible()
    expect(page.locator("[data-chart=loss] svg.plot")).to_be_visible()
    expect(page.locator("[data-live=reader]")).to_contain_text(decimal(LAST["loss"]))
    assert visitor.errors == []


def test_contributors_are_searched_and_sorted(archive: Page) -> None:
    assert names(archive) == NAMES
    archive.get_by_role("button", name="Name").click()
    assert names(archive) == sorted(NAMES)
    expect(archive.locator("th[data-column=name]")).to_have_attribute("aria-sort", "ascending")
    archive.get_by_role("button", name="Name").click()
    assert names(archive) == sorted(NAMES, reverse=True)
    archive.get_by_role("button", name="Steps").click()
    by_steps = sorted(PEOPLE, key=lambda peer: -peer["steps"])
    assert names(archive) == [peer["name"] for peer in by_steps]
    wanted = NAMES[1][1:3].upper()
    archive.get_by_role("searchbox").fill(wanted)
    found = [name for name in names(archive) if wanted.lower() in name]
    assert names(archive) == found
    count = f"{len(found)} of {len(NAMES)} contributors"
    expect(archive.locator("[data-live=board-count]")).to_have_text(count)


def test_a_typed_name_gives_rank_part_and_page_by_keyboard(archive: Page) -> None:
    archive.get_by_role("link", name="Find me").press("Enter")
    expect(archive.get_by_label("Find me")).to_be_focused()
    found = archive.locator("[data-live=found]")
    expect(found).to_be_hidden()
    for letter in "a", "z":
        archive.get_by_label("Find me").fill(letter)
        named = [name for name in NAMES if letter in name]
        expect(found.locator("a")).to_have_text(named)
        archive.keyboard.press("Enter")
        expect(archive.locator("h1")).to_have_text(RUN.card["title"])
    expect(found).to_contain_text("No contributor has this name or key.")
    rank, person = 2, PEOPLE[1]
    share = person["samples"] / sum(peer["samples"] for peer in PEOPLE)
    sentence = (
        f"{person['name']} has rank {rank} of {len(PEOPLE)}, with {person['samples']:,} "
        f"sequences: {100 * share:.1f} % of the run's."
    )
    archive.get_by_label("Find me").fill("")
    archive.keyboard.type(person["name"].upper())
    expect(found).to_contain_text(sentence)
    widths = found.locator(".whole span").evaluate_all(
        "(parts) => parts.map((part) => part.getBoundingClientRect().width)"
    )
    assert widths[1] / sum(widths) == pytest.approx(share, abs=0.01)
    archive.get_by_label("Find me").fill(person["id"])
    expect(found).to_contain_text(sentence)
    archive.keyboard.press("Enter")
    expect(archive.locator("h1")).to_have_text(person["name"])
    expect(archive.locator("h1")).to_be_focused()
    assert archive.url.endswith(f"?run={RUN.name}&who={person['id']}")
    part = archive.get_by_role("img", name=f"{person['name']} {100 * share:.1f}")
    expect(part).to_be_visible()


def test_a_contributors_page_has_an_address_and_a_way_back(visit: Visitor, archive: Page) -> None:
    last, title = PEOPLE[-1], RUN.card["title"]
    archive.get_by_role("link", name=last["name"]).click()
    expect(archive.locator("h1")).to_have_text(last["name"])
    assert archive.url.endswith(f"?run={RUN.name}&who={last['id']}")
    expect(archive.locator("[data-live=contributor]")).to_contain_text(f"{last['samples']:,}")
    there = [
        entry
        for entry in RUN.samples["checkpoints"]
        if last["first_seen"] <= entry["time"] <= last["last_seen"]
    ]
    words = archive.locator("[data-live=pictures-when]")
    expect(words).to_contain_text(f"Checkpoint {len(there)} of {len(there)}")
    archive.go_back()
    expect(archive.locator("h1")).to_have_text(title)
    expect(archive.locator(".board__name").first).to_be_visible()
    page = visit(bypass_csp=True).open(f"live/?run={RUN.name}&who={last['id']}")
    expect(page.locator("h1")).to_have_text(last["name"])
    touch(page)
    expect(page.locator("[data-chart=loss] .main-svg").first).to_be_visible()
    page.add_script_tag(path=AXE)
    assert findings(page) == []
    page.get_by_role("link", name=title).click()
    expect(page.locator("[data-live=step]")).to_be_visible()


def test_the_pictures_are_fetched_when_the_visitor_comes_near(visit: Visitor) -> None:
    visitor = visit()
    page = visitor.open("live/")
    page.wait_for_selector("#live[data-rounds]")
    pictures = page.locator(".through__row img")
    expected = sum(len(row) for row in RUN.samples["checkpoints"][-1]["images"])
    expect(pictures).to_have_count(expected)
    place = pictures.last.bounding_box()
    assert not [url for url in visitor.requests if "/samples/" in url]
    pictures.last.scroll_into_view_if_needed()
    for picture in pictures.all():
        expect(picture).not_to_have_js_property("naturalWidth", 0)
    assert len({url for url in visitor.requests if "/samples/" in url}) == expected
    after = pictures.last.bounding_box()
    assert place
    assert after
    assert (place["width"], place["height"]) == (after["width"], after["height"])


def test_the_pictures_of_the_page_itself_show_where_no_data_come(visit: Visitor) -> None:
    visitor = visit()
    visitor.page.route("**/live/rehearsal/*.json*", lambda route: route.abort())
    page = visitor.open("live/")
    image = page.locator(".through__row img").first
    page.locator(".through__grid").scroll_into_view_if_needed()
    expect(image).to_have_attribute("src", re.compile(r"samples/\d+-00-00\.png$"))


def test_pictures_go_through_the_run_by_keyboard_and_checkpoints_show_theirs(archive: Page) -> None:
    first, last = RUN.samples["checkpoints"][0], RUN.samples["checkpoints"][-1]
    slider = archive.locator("#live-checkpoint")
    image = archive.locator(".through__row img").first
    image.scroll_into_view_if_needed()
    expect(image).to_have_attribute("src", re.compile(last["images"][0][0]))
    slider.focus()
    archive.keyboard.press("Home")
    expect(image).to_have_attribute("src", re.compile(first["images"][0][0]))
    words = f"{RUN.samples['prompts'][0]}: drawing 1 of {len(first['images'][0])} at step"
    expect(image).to_have_attribute("alt", f"{words} {first['step']}")
    expect(slider).to_have_attribute("aria-valuetext", re.compile(f"Step {first['step']}, loss"))
    archive.context.grant_permissions(["clipboard-read", "clipboard-write"])
    first, last = RUN.checkpoints[0], RUN.checkpoints[-1]
    archive.get_by_role("button", name=f"Copy the SHA-256 of step {last['step']}").click()
    assert archive.evaluate("navigator.clipboard.readText()") == last["sha256"]
    archive.locator("[data-live=use-command] + button").click()
    expect(archive.locator("[data-live=use-command] ~ [role=status]")).to_have_text("Copied")
    archive.get_by_role("button", name=f"Show all {len(RUN.checkpoints)} checkpoints").click()
    expect(archive.locator(".checkpoints__table tbody tr")).to_have_count(len(RUN.checkpoints))
    archive.get_by_role("button", name=f"Samples of step {first['step']}", exact=True).click()
    when = archive.locator("[data-live=pictures-when]")
    expect(when).to_contain_text(f"Step {first['step']}")


def test_a_run_of_31250_steps_and_10000_contributors_is_drawn_in_parts(
    visit: Visitor, stage: tuple[LiveServer, WrittenRun]
) -> None:
    server, run = stage
    write_crowd(run, steps=31_250, people=10_000)
    page = visit(server.address).open("live/")
    expect(page.locator("[data-live=step]")).to_have_text("31,250")
    expect(page.locator("[data-live=board-count]")).to_have_text("10,000 contributors")
    assert server.ranges_of("progress.jsonl.gz") == server.ranges_of("peers.json.gz") == [""]
    assert server.ranges_of("progress.jsonl")[0] != "", "the whole plain file was not needed"
    assert server.ranges_of("peers.json") == []
    page.wait_for_function(f"() => {PLOT}.dataset.points")
    points = int(page.locator("[data-chart=loss] [data-plot]").get_attribute("data-points") or 0)
    assert 500 < points < 10_000
    table = page.locator(".board__table")
    expect(table).to_have_attribute("aria-rowcount", "10001")
    page.locator("[data-live=board]").scroll_into_view_if_needed()
    expect(table.locator("tbody tr")).to_have_count(100)
    page.get_by_role("button", name="Show 500 more").click()
    expect(table.locator("tbody tr")).to_have_count(600)
    expect(page.locator("tr:has(:focus)")).to_have_attribute("aria-rowindex", "102")
    page.get_by_role("button", name="Name").click()
    page.get_by_role("button", name="Name").click()
    expect(table.locator("tbody tr")).to_have_count(100)
    first = table.locator("tbody tr").first
    expect(first).to_have_attribute("aria-rowindex", "2")
    expect(first.locator("a")).to_have_text("<b>volunteer 9999</b>")
    page.get_by_role("searchbox").fill("volunteer 77")
    expect(page.locator("[data-live=board-count]")).to_have_text("111 of 10,000 contributors")
    page.get_by_role("searchbox").fill("")
    page.get_by_label("Seen").select_option("in the last hour")
    expect(page.locator("[data-live=board-count]")).to_have_text(
        re.compile(r"^(59|60|61) of 10,000")
    )
