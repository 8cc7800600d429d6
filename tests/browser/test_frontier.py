"""Number of sequences that fit at each length, on the calculator's page."""

import pytest
from playwright.sync_api import expect

from tests.browser.visits import Visitor, settled
from tests.calculator.plans import ask

pytestmark = [pytest.mark.browser, pytest.mark.one_python]


def test_a_row_leads_to_its_state(visit: Visitor) -> None:
    page = visit().open("calculator/?model=bert-base")
    settled(page)
    page.locator("#calculator-frontier > summary").click()
    expected = ask("frontier", model="bert-base")["value"]["rows"]
    places = page.locator(".frontier > li")
    expect(places).to_have_count(len(expected))
    for place, row in zip(places.all(), expected, strict=True):
        expect(place).to_have_text(f"{row['length']} tokens{row['batch']}")
    last = expected[0]
    page.get_by_role("button", name=f"{last['length']} tokens").click()
    expect(page.locator("#batch_size")).to_have_value(last["batch"].replace(",", ""))
    expect(page.locator("#sequence_length")).to_have_value(last["length"])
    settled(page)
    assert page.url.endswith(f"?{last['query']}")
