"""Reasons for refusing access to a run, in words, and what to do about each."""

from dataclasses import dataclass
from enum import StrEnum

TOKENS_PAGE = "https://huggingface.co/settings/tokens"


class Cause(StrEnum):
    """Causes of a refusal, under the names in the authority's answers and its log."""

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
    """Explanation of a cause to a volunteer.

    Attributes:
        meaning: the problem. fix: what to do.
        passes: True if waiting may help, so that trying again makes sense.
    """

    meaning: str
    fix: str
    passes: bool = False


EXPLANATIONS: dict[Cause, Explanation] = {
    Cause.TOKEN_MISSING: Explanation(
        "this run admits people by their Hugging Face account, and you have not given a token",
        f"create one of the type 'read' at {TOKENS_PAGE}, then run 'hf auth login', or set the "
        "environment variable HF_TOKEN",
    ),
    Cause.TOKEN_INVALID: Explanation(
        "Hugging Face does not accept the token: it is mistyped, revoked or expired, or belongs "
        "to no user",
        f"create a new one of the type 'read' at {TOKENS_PAGE}; if HF_TOKEN is set, it takes "
        "precedence over the token that 'hf auth login' stores",
    ),
    Cause.NOT_A_MEMBER: Explanation(
        "the token's user is not a member of the run's organization",
        "ask to join on the organization's page on Hugging Face, and come back when you are a "
        "member; a fine-grained token needs permission to read the organization",
    ),
    Cause.NOT_ALLOWED: Explanation(
        "the run admits only users on its list, and the token's user is not on it",
        "ask the organizers to add you",
    ),
    Cause.BANNED: Explanation(
        "the moderators have banned this user or this device",
        "if this is a mistake, write to the organizers",
    ),
    Cause.RATE_LIMITED: Explanation(
        "too many requests came from this address or user",
        "wait; this machine tries again automatically",
        passes=True,
    ),
    Cause.WRONG_RUN: Explanation(
        "the authority in the run file belongs to another run",
        "get the newest run file from its organizers",
    ),
    Cause.BAD_REQUEST: Explanation(
        "the authority does not understand the request",
        "update this program; if that does not help, tell the organizers",
    ),
    Cause.HUB_UNREACHABLE: Explanation(
        "the run's authority cannot reach Hugging Face, and so cannot check the token",
        "wait; this machine tries again automatically",
        passes=True,
    ),
    Cause.AUTHORITY_UNREACHABLE: Explanation(
        "the run's authority does not respond",
        "check this machine's connection; if it works, wait: this machine tries again "
        "automatically",
        passes=True,
    ),
    Cause.CLOCK_OFF: Explanation(
        "this machine's clock is wrong, and peers whose clocks differ by more than 3 seconds "
        "cannot work together",
        "set it from the network: 'sudo timedatectl set-ntp true' on Linux, 'wsl --shutdown' "
        "and a restart on WSL, System Settings > General > Date & Time on macOS",
        passes=True,
    ),
    Cause.NETWORK_REFUSED: Explanation(
        "the run's entry points respond but do not admit this peer",
        "get the newest run file from its organizers: a run with an authority admits no one "
        "without its grant; if you have the newest, they rejected your access: wait for its "
        "renewal, this machine tries again automatically",
        passes=True,
    ),
    Cause.NOT_TRUSTED: Explanation(
        "no one has agreed to send your Hugging Face token to the run's authority",
        "if you know whose server it is, start again in a terminal and answer yes, or name it "
        "with --trust-authority; your answer is remembered",
    ),
    Cause.ANOTHER_KEY: Explanation(
        "the authority signs with a key other than the one in the run file, so it may not be the "
        "organizers' own",
        "get the run file again from its organizers, and tell them if that does not help",
    ),
    Cause.KEY_IN_USE: Explanation(
        "your account already takes part with another device, and the run admits one at a time",
        "stop the other one, or wait until its access ends; this machine tries again automatically",
        passes=True,
    ),
}


class AccessRefusedError(PermissionError):
    """Access was refused or could not be obtained; the message says why and what to do.

    Attributes:
        detail: anything else known: the user's name, the moderators' reason, the seconds to wait.
    """

    def __init__(self, cause: Cause, detail: str = "") -> None:
        self.cause, self.detail = cause, detail
        explanation = EXPLANATIONS[cause]
        self.passes = explanation.passes
        more = f" ({detail})" if detail else ""
        super().__init__(f"{explanation.meaning}{more}. What to do: {explanation.fix}.")
