"""The milestones of a run as an Atom feed: its start, its checkpoints and its end."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode
from xml.etree import ElementTree

ATOM: Final = "http://www.w3.org/2005/Atom"
MOST_CHECKPOINTS: Final = 50


def atom(card: Mapping[str, Any], checkpoints: Sequence[Mapping[str, Any]]) -> bytes:
    """The feed as XML, newest entry first.

    Its links are relative to the run's folder of live data, which lies below the live page, so the
    feed works wherever the folder is served.

    Args:
        card: the content of ``run.json``.
        checkpoints: the content of ``checkpoints.json``, oldest first.
    """
    page = f"../?{urlencode({'run': card['name']})}"
    feed = ElementTree.Element("feed", xmlns=ATOM)
    entries = [("Started", card["start"]), *map(_checkpoint, checkpoints[-MOST_CHECKPOINTS:])]
    if card.get("finished"):
        entries.append(("Finished", card["finished"]))
    _add(feed, "id", _identity(card))
    _add(feed, "title", card["title"])
    _add(feed, "updated", max(time for _, time in entries))
    _add(ElementTree.SubElement(feed, "author"), "name", card["title"])
    ElementTree.SubElement(feed, "link", rel="alternate", href=page)
    for title, time in reversed(entries):
        entry = ElementTree.SubElement(feed, "entry")
        _add(entry, "id", _identity(card, title))
        _add(entry, "title", title)
        _add(entry, "updated", time)
        ElementTree.SubElement(entry, "link", rel="alternate", href=page)
    ElementTree.indent(feed)
    text: bytes = ElementTree.tostring(feed, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _checkpoint(entry: Mapping[str, Any]) -> tuple[str, str]:
    loss = "" if entry["loss"] is None else f", loss {entry['loss']:.3f}"
    return f"Checkpoint at step {entry['step']:,}{loss}", entry["time"]


def _identity(card: Mapping[str, Any], *entry: str) -> str:
    """The same for the same entry of the same run, whenever the feed is written."""
    parts = "\n".join([card["name"], card["start"], *entry])
    return f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, parts)}"


def _add(parent: ElementTree.Element, name: str, text: str) -> None:
    """A child with text, without the control characters that XML does not allow."""
    printable = "".join(letter for letter in text if letter.isprintable())
    ElementTree.SubElement(parent, name).text = printable
