"""Sources of a volunteer's Hugging Face token: never the command line; it is never shown."""

import getpass
import os
import re
import sys

from training.access.causes import TOKENS_PAGE, AccessRefusedError, Cause

MAX_CHARACTERS = 4096
_TOKEN = re.compile(rf"[A-Za-z0-9._~+/-]{{1,{MAX_CHARACTERS}}}={{0,2}}")  # RFC 6750's b64token


class Token:
    """A Hugging Face token that does not show itself in a log, an error or a trace.

    Raises:
        AccessRefusedError: when it holds a character that no token has, without showing it.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        if not _TOKEN.fullmatch(text):
            detail = "it is empty, too long or holds a character that no token has"
            raise AccessRefusedError(Cause.TOKEN_INVALID, detail)
        self._text = text

    def __repr__(self) -> str:
        return "Token(hidden)"

    def reveal(self) -> str:
        """The text, for the one header that carries it."""
        return self._text

    def headers(self) -> dict[str, str]:
        """The HTTP header that carries it."""
        return {"Authorization": f"Bearer {self._text}"}


def find_token() -> Token:
    """The token in ``HF_TOKEN``, else the one that ``hf auth login`` or a notebook has stored.

    Raises:
        AccessRefusedError: when there is none, or it cannot be one.
    """
    from huggingface_hub import get_token

    text = get_token()
    if not text:
        raise AccessRefusedError(Cause.TOKEN_MISSING)
    return Token(text)


def provide_token() -> None:
    """See to it that there is a token, if need be by asking for it on the terminal, unseen.

    What was typed is kept for this process and those that it starts, and is not stored.

    Raises:
        AccessRefusedError: when there is none and nobody to ask.
    """
    try:
        find_token()
    except AccessRefusedError as error:
        if error.cause is not Cause.TOKEN_MISSING or not sys.stdin.isatty():
            raise
    else:
        return
    print("This run admits people by their Hugging Face account.", file=sys.stderr)
    print(f"Create a token of the type 'read' at {TOKENS_PAGE}", file=sys.stderr)
    try:
        typed = Token(getpass.getpass("Token (not shown, not stored): ").strip())
    except EOFError:
        raise AccessRefusedError(Cause.TOKEN_MISSING) from None
    os.environ["HF_TOKEN"] = typed.reveal()
