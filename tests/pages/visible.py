"""The text of a built page as a reader sees it."""

from dataclasses import dataclass
from html.parser import HTMLParser
from xml.etree.ElementTree import HTML_EMPTY

UNSEEN = {"head", "noscript", "script", "style", "template"}
CODE = {"code", "kbd", "pre", "samp"}


@dataclass(frozen=True, slots=True)
class Piece:
    """Text between two tags."""

    text: str
    is_code: bool
    line: int


class VisibleText(HTMLParser):
    """Collects the pieces of text that a browser shows, those in code marked."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.pieces: list[Piece] = []
        self._open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in HTML_EMPTY:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._open:
            while self._open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        inside = set(self._open)
        if data.strip() and not inside & UNSEEN:
            self.pieces.append(Piece(data, bool(inside & CODE), self.getpos()[0]))
