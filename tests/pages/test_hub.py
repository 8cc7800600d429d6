"""The page's request to the Hub, in Node.js with a server in its place, and names as Python's."""

import json

from calculator.catalog.names import hub_id
from tests.pages.scripts import call, printed
from tools.console import ROOT

NAMES = [
    *("Qwen/Qwen2.5-7B", "https://huggingface.co/Qwen/Qwen2.5-7B/tree/main", "gpt2", ""),
    *("hf.co/gpt2/blob/main/config.json", "huggingface.co/a/b?library=x", "../models/mine"),
    *("a/b/c", "me/--", "https://example.com/a/b", "<img src=x>", "x" * 500),
]


def test_a_name_is_read_as_on_the_command_line() -> None:
    found = call("templates/pages/calculator/hub.js", "hubId", [[name] for name in NAMES])
    assert found == [hub_id(name) for name in NAMES]


# Prints, for each name and answer of a server, the text or the error, and the requests made.
PROGRAM = """
import { fetchConfig } from ADDRESS;
import { readFileSync } from "node:fs";
const ask = async ([name, status, text]) => {
  const asked = [];
  const get = async (address, settings) => {
    asked.push([address, settings.credentials]);
    if (status === 0) throw new TypeError("no network");
    return new Response(text, { status });
  };
  const told = await fetchConfig(name, 100, get).catch((error) => `refused: ${error.message}`);
  return [told, asked];
};
const cases = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify(await Promise.all(cases.map(ask))));
"""
# Each answer's status and text, and what is told.
TROUBLES = [
    (401, "", "is gated, or there is no such model"),
    (403, "", "is gated"),
    (404, "", "has no config.json on the Hub"),
    (503, "", "answered with status 503"),
    (200, "", "did not arrive"),
    (200, "x" * 101, "more than 100 characters"),
    (0, "", "cannot be reached"),
]


def told(*cases: tuple[str, int, str]) -> list[tuple[str, list[list[str]]]]:
    address = (ROOT / "templates" / "pages" / "calculator" / "hub.js").as_uri()
    return json.loads(printed(PROGRAM.replace("ADDRESS", json.dumps(address)), json.dumps(cases)))


def test_one_request_without_cookies_brings_the_text_and_what_is_no_name_asks_nobody() -> None:
    address = "https://huggingface.co/Qwen/Qwen2.5-7B"
    found, (answer, asked) = told((f"{address}/tree/main", 200, "{}"), ("../mine", 200, "{}"))
    assert found == ["{}", [[f"{address}/resolve/main/config.json", "omit"]]]
    assert "Enter a model's name on the Hub" in answer
    assert asked == []


def test_each_trouble_is_told_with_the_way_out() -> None:
    found = told(*(("me/mine", status, text) for status, text, _ in TROUBLES))
    for (answer, asked), (*_, words) in zip(found, TROUBLES, strict=True):
        assert answer.startswith("refused: ")
        assert words in answer
        assert len(asked) == 1
