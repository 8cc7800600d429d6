"""Messages of a volunteer's terminal and their meanings; tests look each one up in the code."""

from dataclasses import dataclass
from typing import Final

from training.run.status import Stage

STAGES: Final[dict[Stage, str]] = {
    Stage.STARTING: "Builds the model, in a few seconds. A start that hangs is retried.",
    Stage.ADMITTING: "Sends your token to the run's authority, if it has one.",
    Stage.PREPARING: "Draws and encodes captioned shapes, once, in a minute or two. Only "
    "runs that train on shapes need this.",
    Stage.CONNECTING: "Connects to the run's entry points.",
    Stage.SEARCHING: "Finds out which step the run has reached, in at most 20 seconds.",
    Stage.DOWNLOADING: "Downloads the newest weights from other volunteers, with a percentage.",
    Stage.COMPUTING: "Trains. This is the normal state.",
    Stage.WAITING: "Looks for a group, because there are enough sequences for a step.",
    Stage.AVERAGING: "Exchanges gradients. After this, the step counts for you.",
    Stage.HANDING_IN: "Uploads what it learned, in runs with the recipe <code>sparse</code>.",
    Stage.DISCONNECTED: "Waits, because your connection or the entry points are down, and then "
    "catches up. You don't have to do anything.",
    Stage.SHARING: "Stays for two minutes after the run's end, so that others can download it.",
    Stage.LEAVING: "Saves a backup and tells the others that it is leaving.",
    Stage.DONE: "Has ended.",
}


@dataclass(frozen=True, slots=True)
class Message:
    """A message in the terminal, with … for the parts that vary, its meaning, and what to do."""

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
        "The result of checking your machine; each problem follows on its own line.",
        "Nothing if it says <code>all fine</code>; otherwise, follow the lines below it.",
    ),
    Message(
        "joining as with --behind-firewall: this machine connects to the others",
        "The run's monitor could not connect to your machine.",
        "Nothing. If you like, open a port and name it with <code>--port</code>.",
    ),
    Message(
        "computing … sequences at once, …: the calculator counts … of … free on this …",
        "The number of sequences that your device computes at once, and the reason.",
        "Nothing. <code>--micro-batch</code> sets a different number.",
    ),
    Message(
        "continuing from this volunteer's own backup of step …",
        "You have trained in this run before. Next, your device catches up with the others.",
    ),
    Message(
        "the published checkpoint of step … arrived before a peer's state",
        "Your device asked for the weights in two places and took the first to arrive.",
    ),
    Message(
        "continuing from the published checkpoint of step …",
        "Your device has the weights and trains from here.",
    ),
    Message(
        "no peer sent a usable state in … s",
        "The others were too busy or too few. Your device takes the published checkpoint instead.",
    ),
    Message(
        "the run has not published a checkpoint yet",
        "The organizers publish the first one after some steps.",
        "Nothing while others train: your device takes their weights.",
    ),
    Message(
        "the published checkpoint could not be used: …",
        "Its address does not respond, or it is not the run's; the reason follows.",
        "Nothing while others train: your device takes their weights.",
    ),
    Message(
        "the checkpoint's optimizer states could not be used: …",
        "The optimizer states of the published checkpoint could not be downloaded or do not fit; "
        "the reason follows. Your optimizer keeps its own states.",
    ),
    Message(
        "access to the run is renewed", "Access lasts a few minutes and is renewed automatically."
    ),
    Message(
        "a micro-batch's loss was not finite: dropping this step's gradients",
        "One bad batch. Your work on this step is dropped; the others never see it.",
        "Nothing. If it happens again and again, run the doctor.",
    ),
    Message(
        "a micro-batch's loss was not finite: dropping it",
        "One bad batch. The others never see it.",
        "Nothing. If it happens again and again, run the doctor.",
    ),
    Message(
        "the step failed: …",
        "The peers could not average their gradients this time; the reason follows. Your device "
        "keeps its gradients for the next try, unless it has already sent some of them.",
        "Nothing. If it happens at every step, run the doctor.",
    ),
    Message(
        "all … volunteers are behind routers, so none of them accepts connections: their gradients "
        "count only if someone averages them. The organizers' monitor does that, or anyone with an "
        "open port: python -m training help RUN",
        "A machine behind a router can connect to others but accepts no connections. Each group "
        "needs a member that does.",
        "Nothing. If you like, open a port, or help from a machine that has an open one.",
    ),
    Message(
        "the moderators returned to the weights of step …: continuing with them as step …",
        "Something went wrong in the run, and the moderators undid it.",
    ),
    Message(
        "the run is over; others can still download its result from here",
        "The last step of the schedule is done.",
        "If you can, leave it running for two minutes.",
    ),
    Message(
        "leaving took too long and was cut short",
        "The others will notice that you have left.",
    ),
    Message(
        "trying again in … s (Ctrl-C to stop)",
        "The problem in the line above may be temporary.",
        "Nothing, or press Ctrl-C to stop.",
    ),
    Message(
        "the start made no progress for … s: again",
        "The averaging library sometimes hangs while it starts; your device tries again.",
    ),
    Message("doctor: no answer; joining without it", "The machine was too busy to be checked."),
)

SERIOUS: Final = (
    Message(
        "not joining until this is fixed; --no-doctor joins anyway",
        "The doctor found a problem that makes joining fail.",
        "Follow its lines.",
    ),
    Message(
        "error: …",
        "An option or a field of the run file is invalid; the field, its value and the rule "
        "follow.",
        "Fix it and start again.",
    ),
    Message(
        "access refused: …",
        "The run does not admit you. The cause and the remedy follow; see the full list below.",
        "Follow the message.",
    ),
    Message(
        "access could not be renewed and lasts until …: …",
        "The authority does not respond, or now refuses you. Training continues while your access "
        "lasts.",
        "Nothing at first: your device tries again.",
    ),
    Message(
        "access has ended: the others reject this peer until it is renewed",
        "The authority has not responded for a long time.",
        "Check your connection. If it works, the organizers have to fix this.",
    ),
    Message(
        "cannot join the run: …",
        "One of the next four.",
        "Nothing at first: your device tries again.",
    ),
    Message(
        "none of the run's entry points answered (…). Either they are down, or a firewall blocks "
        "them, or this machine has no connection.",
        "Your device could not connect to anyone in the run.",
        "Run the doctor to find the cause. The run's page shows whether others are training.",
    ),
    Message(
        "others cannot connect to this machine: a firewall or router blocks them. Start with "
        "--behind-firewall, or open a port and name it with --port",
        "Your machine was supposed to accept connections and cannot.",
        "Do one of the two.",
    ),
    Message(
        "port … is taken on this machine: choose another with --port",
        "Another program, or another volunteer, uses this port.",
        "Choose another port, or leave <code>--port</code> out.",
    ),
    Message(
        "the network daemon did not start: …",
        "The program that talks to the other peers could not start.",
        "Run the doctor. If it finds nothing, send the organizers the rest of the message.",
    ),
    Message(
        "the network daemon of this machine ended unexpectedly",
        "The same program stopped later.",
        "Nothing: it restarts. If it happens again and again, check the machine's free memory.",
    ),
    Message(
        "the weights are broken: returning to the last good state",
        "The model broke, on your device or in the whole run.",
        "If the live page shows no loss either, tell the organizers.",
    ),
    Message(
        "the weights that the moderators chose are not available yet: …",
        "The run returns to older weights, and your device cannot load them.",
        "Nothing at first: your device tries again.",
    ),
    Message(
        "the weights that the moderators chose do not match the published ones",
        "The loaded weights are not those that the order names, so your device does not use them.",
        "Tell the organizers.",
    ),
    Message(
        "ended unexpectedly: … (more in the log)",
        "The program or the machine failed. It restarts automatically.",
        "Nothing, unless it happens again.",
    ),
    Message(
        "ended unexpectedly … times in a row: giving up",
        "Restarting did not help.",
        "Send the organizers the file <code>log.txt</code> from your folder.",
    ),
)
