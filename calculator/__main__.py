"""The command line: ``python -m calculator estimate MODEL [options] [--json]``."""

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Final, NoReturn

from calculator.architecture import Architecture
from calculator.cards import TODAY, Card
from calculator.catalog import find_gpu, groups
from calculator.commandline import add_plan_options, given_options, plan_from
from calculator.curve import curve
from calculator.doors.check import add_check, beside, check
from calculator.doors.line import NAME as LINE
from calculator.doors.line import understood
from calculator.errors import LONGEST_MESSAGE, InputError, one_line
from calculator.explaining import describe_message, is_message, read_text
from calculator.named import architecture_named, origin_named
from calculator.parameters import count_parameters
from calculator.plan import Plan
from calculator.planner.commandline import (
    COMMANDS,
    add_numbers,
    add_planner_commands,
    run_planner,
)
from calculator.planner.compare import comparison_as_json, describe_comparison
from calculator.planner.job import OPTIONS as JOB
from calculator.planner.job import Job, training_as_json, training_words
from calculator.planner.need import judged, need_of
from calculator.planner.verdict import (
    describe_fit,
    describe_fits,
    describe_verdict,
    fit_as_json,
    fits_as_json,
    verdict_as_json,
)
from calculator.presets import plan_with
from calculator.program.write import Form, write_program
from calculator.report import Memory, Report
from calculator.resolution import resolve
from calculator.units import format_bytes, format_count
from calculator.way_out import WayOutError, as_command, offering

CLOSED_PIPE: Final = 141


class OneLineParser(argparse.ArgumentParser):
    """Says what is wrong with an option in one line."""

    def error(self, message: str) -> NoReturn:
        """Exit with status 2; a model where a command should be is told where it goes."""
        if message.startswith("argument command: invalid choice"):
            message = f"{message}; a model follows a command, as in: {self.prog} estimate MODEL"
        self.exit(2, f"error: {one_line(message, LONGEST_MESSAGE)}; see {self.prog} --help\n")


def build_parser() -> argparse.ArgumentParser:
    """All commands and options."""
    parser = OneLineParser(prog="python -m calculator", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("estimate", help="what one training step of a model needs")
    _add_model(one)
    add_plan_options(one)
    one.add_argument("--gpu", help="say whether it fits this GPU; exit with 1 if it does not")
    one.add_argument("--json", action="store_true", help="print one JSON object, sizes in bytes")
    fit = commands.add_parser(
        "fit", help="GPUs that a step fits, and changes that would make it fit one"
    )
    _add_model(fit)
    add_plan_options(fit)
    fit.add_argument("--gpu", help="a GPU's name; default: one line for every GPU")
    fit.add_argument("--json", action="store_true", help="print one JSON object, sizes in bytes")
    two = commands.add_parser(
        "compare",
        help="two plans side by side",
        usage="%(prog)s MODEL [options] -- [MODEL] [what changes]",
        description="The second plan is the first with what stands after -- changed. With --gpu "
        "the status is 0 where the second plan fits, 1 where it does not.",
    )
    _add_model(two)
    add_plan_options(two)
    two.add_argument("--gpu", help="say whether each fits this GPU")
    two.add_argument("--json", action="store_true", help="print one JSON object, sizes in bytes")
    drawn = commands.add_parser("curve", help="memory on the GPU at each operation of a step")
    _add_model(drawn)
    add_plan_options(drawn)
    drawn.add_argument(
        "--points", metavar="NUMBER", help="approximate number of points; default: all"
    )
    drawn.add_argument("--json", action="store_true", help="print one JSON object instead of CSV")
    drawn.add_argument("--gpu", help="the card whose kernels run; default: one of today")
    code = commands.add_parser("code", help="a PyTorch program that carries out the plan")
    _add_model(code)
    code.add_argument(
        "--form",
        choices=[form.value for form in Form],
        default=Form.LOOP.value,
        help="a plain loop, which takes exactly the counted step (default), or Trainer",
    )
    add_plan_options(code)
    code.add_argument("--gpu", help="the card, which decides the 16-bit format")
    why = commands.add_parser(
        "explain", help="what an out-of-memory message means beside a plan, and what to change"
    )
    _add_model(why)
    why.add_argument(
        "message",
        nargs="?",
        default="-",
        help="the message, or a file with it; default: standard input",
    )
    add_plan_options(why)
    why.add_argument("--gpu", help="the card; default: one with the memory of the message")
    brought = commands.add_parser(
        "check",
        help="files that configure a training: what it needs, and a patch where it does not fit",
        description="The files of one run, or of several. The status is 0 where each run fits, 1 "
        "where one does not, 2 where we cannot say.",
    )
    add_check(brought)
    for timed in (one, fit, two, brought):
        add_numbers(timed, JOB)
    table = commands.add_parser("models", help="the models known by name")
    table.add_argument("--json", action="store_true", help="print a JSON list")
    add_planner_commands(commands)
    return parser


def _add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model",
        help="a name from `models` or on the Hugging Face Hub, an address there, or the path of "
        "a config.json",
    )
    parser.add_argument(
        "--offline",
        action="store_true",
        help="use only config.json files already kept",
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; 0 when it worked, 2 for a bad option, with one line on standard error.

    `estimate`, `fit` and `compare` with a GPU return 1 where the step, of two the second, does not
    fit it or may not.

    A reader that goes away before the end, such as ``head``, ends the command quietly with 141, as
    the shell counts a closed pipe (128 + SIGPIPE).
    """
    words, changes = _split(list(sys.argv[1:] if argv is None else argv))
    arguments, others = _parsed(words)
    status = 0
    try:
        _take(arguments, others)
        if arguments.command == "compare":
            status = _print_comparison(arguments, changes)
        elif arguments.command == "models":
            _print_models(arguments.json)
        elif arguments.command in COMMANDS:
            print(run_planner(arguments))
        elif arguments.command == "curve":
            _print_curve(arguments)
        elif arguments.command == "code":
            _print_program(arguments)
        elif arguments.command == "explain":
            _print_explanation(arguments)
        elif arguments.command == "check":
            text, status = check(arguments)
            print(text)
        else:
            status = (_print_fit if arguments.command == "fit" else _print_estimate)(arguments)
        sys.stdout.flush()
    except InputError as error:
        beside = f"; {as_command(error.changes)}" if isinstance(error, WayOutError) else ""
        print(f"error: {error}{beside}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        sys.stdout = None  # else Python writes the rest at its end
        return CLOSED_PIPE
    return status


def _parsed(words: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """The command's arguments, and options of other libraries where it takes a plan's."""
    parser = build_parser()
    arguments, others = parser.parse_known_args(words)
    if arguments.command == "explain" and len(others) == 1 and is_message(others[0]):
        arguments.message = others.pop()  # it stands behind options
    if others and not (hasattr(arguments, "lora") and others[0].startswith("--")):
        joined = "" if others[0].startswith("-") else " (join several values of one by commas)"
        parser.error(f"unrecognized arguments: {' '.join(others)}{joined}")
    return arguments, others


def _take(arguments: argparse.Namespace, others: list[str]) -> None:
    """Give the arguments what options of other libraries mean, and say what is not counted."""
    if not others:
        return
    run = understood(others, given_options(arguments), beside)
    for note in run.notes:
        place = f"--{note.key}" if note.file == LINE else f"{note.file}: {note.key}"
        print(f"note: {place} {note.words}", file=sys.stderr)
    for name, value in run.assumed:
        if name == "gpus":
            print(
                f"note: {value} GPUs are assumed; --gpus says how many there are", file=sys.stderr
            )
    for name, value in run.options.items():
        setattr(arguments, name, value)


def _print_estimate(arguments: argparse.Namespace) -> int:
    """Print a step's report; 1 where it does not surely fit the GPU."""
    model = _architecture(arguments.model, arguments)
    report = _answered(model, plan_from(arguments, model))
    gpu = find_gpu(arguments.gpu) if arguments.gpu is not None else None
    job = Job.asked(vars(arguments))
    if arguments.json:
        verdict = {"fit": verdict_as_json(need_of(report), gpu)} if gpu else {}
        print(json.dumps({**report.as_json(), **training_as_json(report, job), **verdict}))
    else:
        verdicts = [describe_verdict(need_of(report), gpu)] if gpu else []
        print("\n".join([_describe(report), *training_words(report, job), *verdicts]))
    return 0 if gpu is None or need_of(report).fits(gpu.memory) else 1


def _print_fit(arguments: argparse.Namespace) -> int:
    """Print where a step fits, or what would make it fit; 1 where it does not surely fit."""
    model = _architecture(arguments.model, arguments)
    plan, job, fits = plan_from(arguments, model), Job.asked(vars(arguments)), True
    if arguments.gpu is None:
        if job is not None:
            raise InputError("gpu", "", "must be given for the hours of a training")
        with offering(model, plan):
            found = fits_as_json(model, plan) if arguments.json else describe_fits(model, plan)
        print(json.dumps(found) if arguments.json else found)
    else:
        report = _answered(model, plan)
        fits = need_of(report).fits(plan.card.memory)
        if arguments.json:
            print(json.dumps({**fit_as_json(model, plan, report), **training_as_json(report, job)}))
        else:
            print("\n".join([describe_fit(model, plan, report), *training_words(report, job)]))
    if model.note and not arguments.json:
        print(f"Note: {one_line(model.note, LONGEST_MESSAGE)}")
    return 0 if fits else 1


def _answered(architecture: Architecture, plan: Plan) -> Report:
    """The report of a plan, with the allocator simulated; a refusal names the way out."""
    with offering(architecture, plan):
        return judged(architecture, plan)


def _print_program(arguments: argparse.Namespace) -> None:
    """Print the program of a plan."""
    origin, form = origin_named(arguments.model, arguments.offline), Form(arguments.form)
    plan = plan_from(arguments, origin.architecture)
    with offering(origin.architecture, plan):
        resolve(origin.architecture, plan)
    print(write_program(origin, plan, form), end="")


def _print_explanation(arguments: argparse.Namespace) -> None:
    """Print what an out-of-memory message means."""
    model = _architecture(arguments.model, arguments)
    plan = plan_from(arguments, model)
    gpu = find_gpu(arguments.gpu) if arguments.gpu is not None else None
    with offering(model, plan):
        print(describe_message(model, plan, gpu, read_text(arguments.message)))


def _split(words: list[str]) -> tuple[list[str], list[str]]:
    """The words before and after the ``--`` of `compare`; no other command has one."""
    if words[:1] != ["compare"] or "--" not in words:
        return words, []
    place = words.index("--")
    return words[:place], words[place + 1 :]


def _print_comparison(arguments: argparse.Namespace, changes: list[str]) -> int:
    """Print two plans side by side; 1 where the second does not surely fit the GPU."""
    if not changes:
        rule = "must be followed by -- and what changes, as in: compare gpt2-l -- --batch-size 4"
        raise InputError("compare", arguments.model, rule)
    second = _changes_parser().parse_args(changes)
    gpu = find_gpu(arguments.gpu) if arguments.gpu is not None else None
    given, changed = given_options(arguments), given_options(second)
    reports = [
        _answered(model, plan_with(model, gpu or TODAY, options))
        for model, options in (
            (_architecture(arguments.model, arguments), given),
            (_architecture(second.model or arguments.model, arguments), {**given, **changed}),
        )
    ]
    (first, last), job = reports, Job.asked(vars(arguments))
    both = {"first": first, "second": last}
    if arguments.json:
        answer = comparison_as_json(first, last, gpu)
        hours = {name: answer[name] | training_as_json(one, job) for name, one in both.items()}
        print(json.dumps({**answer, **hours}))
    else:
        lines = [
            f"{name}: {line}" for name, one in both.items() for line in training_words(one, job)
        ]
        print("\n".join([describe_comparison(first, last, gpu), *lines]))
    return 0 if gpu is None or need_of(last).fits(gpu.memory) else 1


def _changes_parser() -> OneLineParser:
    parser = OneLineParser(prog="python -m calculator compare ... --", add_help=False)
    parser.add_argument("model", nargs="?")
    add_plan_options(parser)
    return parser


def _print_curve(arguments: argparse.Namespace) -> None:
    """Print a step's points, as CSV or as JSON."""
    model = _architecture(arguments.model, arguments)
    plan, points = plan_from(arguments, model), _points(arguments.points)
    with offering(model, plan):
        found = curve(model, plan, points)
    print(json.dumps(found.as_json()) if arguments.json else found.as_csv())


def _points(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise InputError("points", text, "must be a whole number, at least 1")
    return number


def _architecture(name: str, arguments: argparse.Namespace) -> Architecture:
    return architecture_named(name, arguments.offline)


def _print_models(as_json: bool) -> None:
    if as_json:
        print(
            json.dumps([{"name": m.name, "title": m.title, "family": m.family} for m in _models()])
        )
        return
    for model in _models():
        count = format_count(count_parameters(model, resolve(model, Plan())))
        print(f"{model.name:<46}{count:>18}  {model.title}")


def _models() -> list[Architecture]:
    """Every model that can be asked for by name, group by group."""
    return [model for models in groups().values() for model in models]


def _describe(report: Report) -> str:
    lines = [
        f"{one_line(report.model)}: {format_count(report.parameters)} parameters, "
        f"{format_count(report.trainable_parameters)} trained",
        f"GPU memory at the peak ({report.peak_phase}): {format_bytes(report.gpu.total)}",
        *_parts(report.gpu),
        f"PyTorch allocates {format_bytes(report.allocated)} and reserves "
        f"{format_bytes(report.reserved)}; the driver shows {format_bytes(report.used)} on "
        f"{_with_article(report.plan.card)}",
        "Highest in each phase:",
    ]
    lines += [f"  {m:<14}{format_bytes(memory.total):>12}" for m, memory in report.phases.items()]
    if report.ram.total:
        lines += [f"RAM: {format_bytes(report.ram.total)}", *_parts(report.ram)]
        moved = f"{format_bytes(report.to_ram)} to RAM, {format_bytes(report.to_gpu)} to the GPU"
        lines.append(f"Moved in each step: {moved}")
    if report.paged:
        size = format_bytes(report.paged)
        lines += [
            f"Paged states: {size}, on the GPU while there is room, else in RAM",
            f"  all on the GPU{format_bytes(report.gpu.total + report.paged):>12}  moves nothing",
            f"  all in RAM    {format_bytes(report.gpu.total):>12}  moves {size} to the GPU and "
            "back in each step",
        ]
    if report.seconds is not None:
        lines.append(report.seconds.words)
    lines.append(report.evidence.words)
    return "\n".join(
        [*lines, *(f"Note: {one_line(note, LONGEST_MESSAGE)}" for note in report.notes)]
    )


def _with_article(card: Card) -> str:
    return f"a {card.title}" if card.name else card.title


def _parts(memory: Memory) -> list[str]:
    sizes = {name: getattr(memory, name) for name in memory.__slots__}
    return [f"  {name:<14}{format_bytes(size):>12}" for name, size in sizes.items() if size]


if __name__ == "__main__":
    raise SystemExit(main())
