"""CPU time of the monitor's records for one step of a run with a thousand volunteers."""

import random
import time

from benchmarks.figures import Figure, Table, median

TARGET_SECONDS = 0.1  # a step, at a thousand volunteers
GROUP = 32
BATCH = 4096


def run(quick: bool) -> Table:
    """Hand the reports of some steps to a tally, as they come, and read its lines."""
    figures = []
    for volunteers in (100, 1_000) if quick else (100, 1_000, 10_000):
        seconds = [_step_seconds(volunteers, seed) for seed in range(1 if quick else 5)]
        target = TARGET_SECONDS if volunteers == 1_000 else None
        figures.append(Figure(f"{volunteers:,} volunteers", median(seconds), "s", target=target))
    return Table("The monitor's books: processor time a step", figures)


def _step_seconds(volunteers: int, seed: int) -> float:
    """The processor time of a step whose reports are all there, each with 16 witnesses."""
    from training.monitor.tally import Tally
    from training.records.owners import contributor_of
    from training.records.reports import MOST_SEEN, PeerReport, StepReport, Witness

    generator = random.Random(seed)
    names = [contributor_of(str(number)) for number in range(volunteers)]
    tally, start, steps = Tally(BATCH), 1000.0, (1, 2, 3)
    began = 0.0
    for step in steps:
        reports = {}
        for number, name in enumerate(names):
            group = range(number - number % GROUP, min(volunteers, number - number % GROUP + GROUP))
            seen = generator.sample(group, min(MOST_SEEN, len(group)))
            told = StepReport(
                step=step,
                time=start + step,
                samples=4,
                loss=8.0,
                mini_steps=2,
                bytes_sent=1,
                bytes_received=1,
                seen=[Witness(contributor=names[other], weight=4.0) for other in seen],
            )
            reports[name] = PeerReport(
                name=f"volunteer {number}",
                state="training",
                session=start,
                time=start + step,
                step=step,
                samples=4 * step,
                samples_per_second=1.0,
                steps=step,
                rejected=0,
                recent=[told],
            )
        began = time.process_time()
        tally.observe(reports, start + step)
        lines = list(tally.finished_lines(start + step))
        tally.contributors()
        assert [line.samples for line in lines] == [4 * volunteers]
    return time.process_time() - began
