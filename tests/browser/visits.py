"""Visits to the built site: a page, what it asked servers for, and what went wrong in it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from playwright.sync_api import ConsoleMessage, Page, Request, ViewportSize

# Slow machines start Pyodide slowly; nothing here measures time.
PATIENCE_MS = 120_000
# A page that asks for nothing for so long is done.
QUIET_MS = 500


@dataclass
class Visit:
    """A page, what it asked servers for, how many answers it waits for, and what went wrong."""

    page: Page
    address: str
    requests: list[str] = field(default_factory=list)
    waiting: int = 0
    errors: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        context = self.page.context
        context.on("request", self._begin)
        context.on("requestfinished", self._end)
        context.on("requestfailed", self._end)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", self._hear)

    def _begin(self, request: Request) -> None:
        self.requests.append(request.url)
        self.waiting += 1

    def _end(self, _: Request) -> None:
        self.waiting -= 1

    def _hear(self, message: ConsoleMessage) -> None:
        """Count as an error a refusal by the page's content security policy."""
        if "Content Security Policy" in message.text:
            self.errors.append(message.text)

    def open(self, path: str = "") -> Page:
        """Go to a page of the site."""
        self.page.goto(self.address + path)
        return self.page

    def open_all(self, path: str = "") -> Page:
        """The same, and wait until nothing more comes."""
        page = self.open(path)
        self.rest()
        return page

    def rest(self) -> None:
        """Wait until the page has loaded and asks for nothing more.

        Playwright's own "networkidle" never comes to a page that pauses before it has loaded.
        """
        self.page.wait_for_load_state()
        for _ in range(PATIENCE_MS // QUIET_MS):
            asked = len(self.requests)
            self.page.wait_for_timeout(QUIET_MS)
            if not self.waiting and len(self.requests) == asked:
                return
        raise TimeoutError(f"{self.page.url} waits for {self.waiting} of {self.requests}")


Visitor = Callable[..., Visit]
# A click on a link of the site, which the theme follows without loading the whole page again.
FOLLOW = """(address) => {
  const link = Object.assign(document.createElement("a"), {href: address});
  document.body.append(link);
  link.click();
  link.remove();
}"""
ELSEWHERE = "about/"
USUAL: ViewportSize = {"width": 1280, "height": 720}
FORMS = ("#calculator-form", "#plan")
ASKING = ("calculator-curve", "calculator-frontier", "calculator-program")  # once unfolded
MOUNTED = ", ".join(f"{form}[data-mounted]" for form in FORMS)
# To search for advice takes Python longer than all else, and few tests look at it. In the others it
# is refused at once, which the page passes over.
HUSH = """
const { postMessage } = Worker.prototype;
Worker.prototype.postMessage = function (question, ...others) {
  const { id, method } = window.hushed ? JSON.parse(question) : {};
  if (method !== "advise") return postMessage.call(this, question, ...others);
  const data = JSON.stringify({ id, kind: "error", error: {} });
  queueMicrotask(() => this.dispatchEvent(new MessageEvent("message", { data })));
};
"""


def open_address(visitor: Visit) -> Page:
    """Go to the address that the calculator shows, as whoever it is sent to."""
    page = visitor.open(visitor.page.url.removeprefix(visitor.address))
    settled(page)
    return page


@dataclass
class Return(Visit):
    """A visit of a page with a form from another page, where Python may run already."""

    advice: bool = False  # whether Python is asked for it

    def open(self, path: str = "") -> Page:
        """Go to a state of the form; only what comes then is noted."""
        self.page.unroute_all()
        self.page.set_viewport_size(USUAL)
        self.page.emulate_media(media="null")
        if not self.page.url.startswith(self.address):
            super().open(ELSEWHERE)
        self._follow(ELSEWHERE, ", ".join(FORMS), "detached")
        self.requests.clear()
        self.errors.clear()
        self.page.evaluate("(hushed) => { window.hushed = hushed; }", not self.advice)
        self._follow(path, MOUNTED, "visible")
        return self.page

    def _follow(self, path: str, place: str, state: Literal["detached", "visible"]) -> None:
        self.page.evaluate(FOLLOW, self.address + path)
        self.page.wait_for_selector(place, state=state)


def touch(page: Page) -> None:
    """Move the mouse, as visitors do: what costs much waits for it."""
    page.mouse.move(200, 300)
    page.mouse.move(210, 310)


def ask_now(page: Page) -> None:
    """Have a page of a run ask for what is new at once, not after a pause."""
    page.evaluate("dispatchEvent(new Event('online'))")


def settled(page: Page) -> None:
    """Wait until Python has answered the form's present state."""
    page.wait_for_selector("#calculator-answer[aria-busy='false']")


def unfold(page: Page, but: Sequence[str] = ()) -> None:
    """Open all that the calculator folds away, but what these name."""
    page.evaluate(
        "(but) => { for (const one of document.querySelectorAll('details:is(.more, .form__more)'))"
        " if (!but.includes(one.id)) one.open = true; }",
        but,
    )


def advised(page: Page) -> None:
    """Wait until Python has answered the form's present state, and found all its advice."""
    settled(page)
    page.wait_for_selector("#calculator-advice[aria-busy='false']")


def open_calculator(visitor: Visit, query: str = "model=gpt2-l") -> Page:
    """Open the calculator, wait for Python's first answer, and unfold what asks Python nothing."""
    page = visitor.open("calculator/" + (f"?{query}" if query else ""))
    settled(page)
    unfold(page, but=ASKING)
    return page


def choose_model(page: Page, name: str) -> None:
    """Choose a model by its whole name, as a visitor does who types it."""
    page.locator("#model").fill(name)
    page.locator(f"#model-list [data-value='{name}']").click()
