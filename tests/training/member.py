"""`python member.py ...` is `python -m training ...` with the tests' own recipe, `short`."""

import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from training.__main__ import main
from training.run.recipes import RECIPES, TINY, ScheduleSettings

SHORT = replace(
    TINY,
    name="short",
    schedule=ScheduleSettings(total_steps=50, warmup_steps=3),
    # each look at the others' progress checks as many signatures as there are members
    swarm=replace(TINY.swarm, checkpoint_every=10, progress_refresh=(0.5, 1.0)),
    generation=replace(TINY.generation, images_per_prompt=1),
)

if __name__ == "__main__":
    RECIPES[SHORT.name] = SHORT
    raise SystemExit(main())
