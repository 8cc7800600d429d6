"""What a volunteer's terminal says, and what it means; the tests look each up in the code."""

from dataclasses import dataclass
from typing import Final

from training.run.status import Stage

STAGES: Final[dict[Stage, str]] = {
    Stage.STARTING: "The model is being built. Some seconds; a start that hangs is begun again.",
    Stage.ADMITTING: "If the run has an authority, it is shown your token.",
    Stage.PREPARING: "Only in a run on captioned shapes, and once: they are drawn and encoded, "
    "for a minute or two.",
    Stage.CONNECTING: "It calls the entry points of the run file.",
    Stage.SEARCHING: "It asks at which step the others are, for 20 seconds at most.",
    Stage.DOWNLOADING: "It takes the newest weights from the others, with the per cent that are "
    "there.",
    Stage.COMPUTING: "Your device trains. This is the normal state.",
    Stage.WAITING: "Enough sequences are there for a step, and a group is being found.",
    Stage.AVERAGING: "Gradients travel. The step counts for you when this is done.",
    Stage.DISCONNECTED: "Your line or the entry points are down. Nothing to do: it waits, and "
    "takes what it missed from the others.",
    Stage.SHARING: "The run is over; others can take its result from you for two minutes.",
    Stage.LEAVING: "A backup is kept, and the others are told.",
    Stage.DONE: "It has ended.",
}


@dataclass(frozen=True, slots=True)
class Message:
    """A sentence of the terminal, with … for what differs, its meaning, and what to do."""

    text: str
    meaning: str
    todo: str = "Nothing."

    @property
    def cells(self) -> list[str]:
        """The row of a table, its heading first."""
        return [f"<code>{self.text}</code>", self.meaning, self.todo]


EXPECTED: Final = (
    Message(
        "doctor: …",
        "What came of looking at your machine; what is not fine follows line by line.",
        "Nothing at <code>all fine</code>, else what the lines say.",
    ),
    Message(
        "joining as with --behind-firewall: this machine calls the others",
        "The run's monitor could not connect to your machine.",
        "Nothing, or open a port and name it with <code>--port</code>.",
    ),
    Message(
        "computing … sequences at once, …: the calculator counts … of … free on this …",
        "How much your device computes at a time, and why.",
        "Nothing. <code>--micro-batch</code> sets another number.",
    ),
    Message(
        "going on from this volunteer's own backup of step …",
        "You were here before; what the others did since comes next.",
    ),
    Message(
        "the published checkpoint of step … was here before a peer's state",
        "The weights were asked for at two places, and this one was sooner.",
    ),
    Message(
        "going on from the published checkpoint of step …",
        "You have the weights, and train from here.",
    ),
    Message(
        "no peer sent a usable state in … s",
        "The others were busy or few; the published checkpoint is taken instead.",
    ),
    Message(
        "no published checkpoint: …",
        "There is none yet, or its address does not answer.",
        "Nothing while others train: then their weights are taken.",
    ),
    Message(
        "the optimizer's states of the checkpoint are not taken: …",
        "The optimizer's part of the published checkpoint could not be downloaded or does not fit; "
        "the reason follows. Your optimizer keeps the states it has.",
    ),
    Message("access to the run is renewed", "Access lasts some minutes and is asked for again."),
    Message(
        "a micro-batch's loss was not finite: this step's are left out",
        "One odd batch. What you computed for this step is dropped; the others never see it.",
        "Nothing, unless it comes again and again: then run the doctor.",
    ),
    Message(
        "a micro-batch's loss was not finite: it is left out",
        "One odd batch. The others never see it.",
        "Nothing, unless it comes again and again: then run the doctor.",
    ),
    Message(
        "no step was made: …",
        "The peers could not average their gradients this time; the reason follows. Your gradients "
        "are kept for the next try, unless some of them were already sent.",
        "Nothing. If it comes at every step, run the doctor.",
    ),
    Message(
        "all … volunteers are behind routers, so nobody can be called: what they compute counts "
        "only when somebody averages it. The organisers' monitor does that, or anyone with an open "
        "port: python -m training help RUN",
        "Whoever is behind a router can call others, but nobody can call them, and a group needs "
        "one member that can be called.",
        "Nothing, or open a port, or help from a machine that has one.",
    ),
    Message(
        "the moderators went back to the weights of step …: going on with them as step …",
        "Something had gone wrong in the run, and was undone.",
    ),
    Message(
        "the run is over; others may still take its result from here",
        "The last step of the schedule is made.",
        "Leave it on for two minutes, if you can.",
    ),
    Message(
        "the goodbye took too long and was cut short",
        "The others notice by themselves that you are gone.",
    ),
    Message(
        "trying again in … s (Ctrl-C to stop)",
        "What stands above this line may pass.",
        "Nothing, or Ctrl-C.",
    ),
    Message(
        "the start did not answer within … s",
        "The averaging library hangs in a start now and then; it is begun again.",
    ),
    Message("doctor: gave no answer; joining without", "The machine was too busy to be examined."),
)

SERIOUS: Final = (
    Message(
        "not joining until this is fixed; --no-doctor joins all the same",
        "The doctor found what makes joining fail.",
        "What its lines say.",
    ),
    Message(
        "error: …",
        "Something that you typed, or that the run file says, is not as it must be: the field, "
        "its value and the rule follow.",
        "Fix it, and start again.",
    ),
    Message(
        "access refused: …",
        "The run does not admit you. The cause follows, and what to do: the list is below.",
        "What it says.",
    ),
    Message(
        "access could not be renewed, it lasts until …: …",
        "The authority does not answer, or refuses you now. You train on while your access lasts.",
        "Nothing at first: it is tried again.",
    ),
    Message(
        "access has ended: the others refuse this peer until it is renewed",
        "The authority has not answered for long.",
        "Look at your line; the organisers see to the rest.",
    ),
    Message("cannot join the run: …", "One of the next four.", "It is tried again by itself."),
    Message(
        "none of the run's entry points answered (…). Either they are down, or a firewall lies "
        "between, or this machine has no connection.",
        "Nobody of the run could be called.",
        "The doctor says which. The run's page shows whether others train.",
    ),
    Message(
        "the others cannot call this machine back: a firewall or router lies between. Start with "
        "--behind-firewall, or open a port and name it with --port",
        "Your machine was to be called, and cannot be.",
        "One of the two.",
    ),
    Message(
        "port … is taken on this machine: choose another with --port",
        "Another program, or another volunteer, listens there.",
        "Choose another, or leave <code>--port</code> out.",
    ),
    Message(
        "the network daemon did not start: …",
        "The part that speaks with the others could not begin.",
        "The doctor; if it finds nothing, tell the organisers the words that follow.",
    ),
    Message(
        "the network daemon of this machine ended unexpectedly",
        "The same, later.",
        "Nothing: it comes back. If it does so again and again, look at the machine's memory.",
    ),
    Message(
        "the weights are not sound any more: going back to the last sound state",
        "The model broke on your device, or the run did.",
        "If the live page shows no loss either, tell the organisers.",
    ),
    Message(
        "the weights that the moderators ordered cannot be had yet: …",
        "The run goes back to older weights, and they do not load.",
        "Nothing at first: it is tried again.",
    ),
    Message(
        "the weights that the moderators ordered are not what is published now",
        "What was loaded is not what the order names, and is not used.",
        "Tell the organisers.",
    ),
    Message(
        "ended unexpectedly: … (more in the log)",
        "A fault of the program or the machine. It is begun again by itself.",
        "Nothing, unless it comes again.",
    ),
    Message(
        "it ended unexpectedly … times in a row: giving up",
        "It does not go away.",
        "Send the organisers the file <code>log.txt</code> of your folder.",
    ),
)
