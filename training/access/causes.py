"""Why somebody is not let into a run, in words, and what to do about it."""

from dataclasses import dataclass
from enum import StrEnum

TOKENS_PAGE = "https://huggingface.co/settings/tokens"


class Cause(StrEnum):
    """The causes of a refusal; the names are those in the authority's answers and its log."""

    TOKEN_MISSING = "token-missing"
    TOKEN_INVALID = "token-invalid"
    NOT_A_MEMBER = "not-a-member"
    NOT_ALLOWED = "not-allowed"
    BANNED = "banned"
    RATE_LIMITED = "rate-limited"
    WRONG_RUN = "wrong-run"
    BAD_REQUEST = "bad-request"
    HUB_UNREACHABLE = "hub-unreachable"
    AUTHORITY_UNREACHABLE = "authority-unreachable"
    CLOCK_OFF = "clock-off"
    NETWORK_REFUSED = "network-refused"
    NOT_TRUSTED = "not-trusted"
    ANOTHER_KEY = "another-key"
    KEY_IN_USE = "key-in-use"


@dataclass(frozen=True)
class Explanation:
    """What a cause means to a volunteer.

    Attributes:
        meaning: what is the matter. fix: what to do.
        passes: whether waiting may help, so that it is worth trying again.
    """

    meaning: str
    fix: str
    passes: bool = False


EXPLANATIONS: dict[Cause, Explanation] = {
    Cause.TOKEN_MISSING: Explanation(
        "this run admits people by their Hugging Face account, and there is no token of yours",
        f"make one of the type 'read' at {TOKENS_PAGE}, then run 'hf auth login', or set the "
        "environment variable HF_TOKEN",
    ),
    Cause.TOKEN_INVALID: Explanation(
        "Hugging Face does not accept the token: it is mistyped, revoked or expired, or belongs "
        "to no user",
        f"make a new one of the type 'read' at {TOKENS_PAGE}; HF_TOKEN, where it is set, comes "
        "before the token that 'hf auth login' stores",
    ),
    Cause.NOT_A_MEMBER: Explanation(
        "the token's user is not a member of the run's organisation",
        "ask to join on the organisation's page on Hugging Face and come back when you are in it; "
        "a fine-grained token must be allowed to read the organisation",
    ),
    Cause.NOT_ALLOWED: Explanation(
        "the run admits only users on its list, and the token's user is not on it",
        "ask the organisers to add you",
    ),
    Cause.BANNED: Explanation(
        "the moderators have excluded this user or this device",
        "if this is a mistake, write to the organisers",
    ),
    Cause.RATE_LIMITED: Explanation(
        "too many requests came from this address or user",
        "wait; it is tried again by itself",
        passes=True,
    ),
    Cause.WRONG_RUN: Explanation(
        "the authority named in the run file is another run's",
        "get the newest run file from its organisers",
    ),
    Cause.BAD_REQUEST: Explanation(
        "the authority does not understand the request",
        "update this program; if that does not help, tell the organisers",
    ),
    Cause.HUB_UNREACHABLE: Explanation(
        "the run's authority cannot reach Hugging Face, and so cannot check the token",
        "wait; it is tried again by itself",
        passes=True,
    ),
    Cause.AUTHORITY_UNREACHABLE: Explanation(
        "the run's authority does not answer",
        "check this machine's connection; if it is fine, wait: it is tried again by itself",
        passes=True,
    ),
    Cause.CLOCK_OFF: Explanation(
        "this machine's clock is wrong, and peers whose clocks differ by more than 3 seconds "
        "cannot work together",
        "set it by the network's time: 'sudo timedatectl set-ntp true' on Linux, 'wsl --shutdown' "
        "and a new start on WSL, System Settings > General > Date & Time on macOS",
        passes=True,
    ),
    Cause.NETWORK_REFUSED: Explanation(
        "the run's entry points can be reached and do not admit this peer",
        "get the newest run file from its organisers: a run with an authority admits nobody who "
        "comes without its grant; if it is the newest, your access was refused by them: wait for "
        "its renewal, it is tried again by itself",
        passes=True,
    ),
    Cause.NOT_TRUSTED: Explanation(
        "nobody has agreed to send your Hugging Face token to the run's authority",
        "if you know whose server that is, start again in a terminal and answer yes, or name it "
        "with --trust-authority; the answer is remembered",
    ),
    Cause.ANOTHER_KEY: Explanation(
        "the authority signs with another key than the run file says, so it may not be the "
        "organisers' own",
        "get the run file again from its organisers, and tell them if that does not help",
    ),
    Cause.KEY_IN_USE: Explanation(
        "your account already takes part with another device, and the run admits one at a time",
        "stop the other one, or wait until its access ends; it is tried again automatically",
        passes=True,
    ),
}


class AccessRefusedError(PermissionError):
    """Access was refused or could not be had; the message says why and what to do.

    Attributes:
        cause: which one it is.
        detail: what else is known: the user's name, the moderators' reason, the seconds to wait.
    """

    def __init__(self, cause: Cause, detail: str = "") -> None:
        self.cause, self.detail = cause, detail
        explanation = EXPLANATIONS[cause]
        self.passes = explanation.passes
        more = f" ({detail})" if detail else ""
        super().__init__(f"{explanation.meaning}{more}. What to do: {explanation.fix}.")
