"""Data for 'Security': what volunteers send, what bad ones can do, how our defence measured."""

from typing import Final

from calculator.catalog import SOURCES
from templates.pages.measurements import chaos, defence, judging
from templates.pages.measurements.protections import BOUNDED, CLOSED

# What a volunteer sends, to whom, and what the recipient checks.
SENT: Final = (
    (
        "Gradients and averages",
        "the peers of its group",
        "shape, finite values, length, and a number of sequences that fits the sender's pace so "
        "far",
    ),
    (
        "Weights and optimizer states",
        "newcomers that ask for them",
        "completeness, shape, finite values, agreement with two other peers",
    ),
    (
        "Records: progress, search for a group",
        "everyone in the run",
        "key, owner, signature, access, size, expiry",
    ),
    (
        "Reports: name, sequences, speed, loss, traffic",
        "the monitor, which publishes them",
        "the caller's identity and access, form, size, freshness",
    ),
    (
        "Updates, in a run with local steps",
        "the monitor's web host or an object store, where all can read them",
        "key, signature, access, round, size, effect on the loss; SHA-256 after each download",
    ),
    (
        "Hugging Face token, if the run has an authority",
        "the authority, which asks the Hub who you are and does not keep the token",
        "you: the token is sent only after you agree",
    ),
)


def _state(state: str, words: str) -> str:
    return f'<span class="verdict-word" data-state="{state}">{words}</span>'


PREVENTED, LIMITED, OPEN = (
    _state("close", "prevented"),
    _state("fair", "limited"),
    _state("off", "not prevented"),
)
# In the words of the protections, and of what protects from nothing.
OUTCOMES: Final = (
    (
        "Values that are not finite or parts of the wrong shape",
        PREVENTED,
        "The group leaves their sender out of the round and goes on.",
    ),
    (
        "Records under other names, or thousands of one peer",
        PREVENTED,
        "Only records signed by their owner count, and each peer counts once.",
    ),
    (
        "A claim of work to get credit",
        PREVENTED,
        "While others train, a sequence is credited only if another peer saw the volunteer in an "
        "averaging round.",
    ),
    (
        "A false checkpoint, or broken data",
        PREVENTED,
        "A checkpoint must match its hash and the model's own tensors, and code that it names is "
        "never loaded. Broken rows are skipped.",
    ),
    (
        "Finite but wrong gradients",
        LIMITED,
        "By CenteredClip, as long as fewer than half of a group of three or more are bad. With "
        "the mean, only their length is limited.",
    ),
    (
        "A claim of more sequences, to weigh more or end a step early",
        LIMITED,
        "It counts as far as the volunteer's pace so far supports it, and for no more than four "
        "times the median pace.",
    ),
    (
        "A claim to be far ahead",
        LIMITED,
        "It is ignored as long as fewer than a quarter of the peers do so.",
    ),
    (
        "False weights for a newcomer",
        LIMITED,
        "The newcomer compares them with two other peers. Two that lie together are believed, and "
        "optimizer states are not compared.",
    ),
    (
        "Small lies in every step",
        OPEN,
        "Lies within the clipping radius bias each average slightly.",
    ),
    (
        "A false average of its part",
        OPEN,
        "Peers could recompute each other's work, but we have not built that.",
    ),
    (
        "Joining groups and sending nothing",
        OPEN,
        "Each wait ends at a deadline, but the next one can follow. The remedy is a ban.",
    ),
    (
        "Many keys, or several that collude",
        OPEN,
        "Without an authority keys are free, and many can outvote the honest ones. With one, each "
        "account has one key, but accounts can vouch for each other, up to a step's work.",
    ),
    (
        "Inferring training data from gradients",
        OPEN,
        "Peers of a group see each other's gradients. Do not train on private data this way.",
    ),
    (
        "A monitor that leaves out honest updates",
        OPEN,
        "In a run with local steps, nobody checks which it leaves out.",
    ),
)


def context() -> dict[str, object]:
    """The names that `page.md.j2` uses."""
    measured = defence.read()
    return {
        "measured": measured,
        "judged": judging.rejected(),
        "chaos": chaos.read(),
        "losses": [[row[0], row[2], row[4]] for row in measured.rows] if measured else [],
        "sent": SENT,
        "outcomes": OUTCOMES,
        "protections": len(CLOSED) + len(BOUNDED),
        "sources": SOURCES,
    }
