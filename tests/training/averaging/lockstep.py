"""One volunteer of four that train in step: `python lockstep.py FOLDER INDEX STEPS`.

Each volunteer hands in the same sixteen sequences at a step as its quarter of the plain loop's
batch, and waits until all have: what then differs from the plain loop is rounding.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

import torch

from tests.training.processes import wait_for
from training.averaging.optimizer import SwarmOptimizer, open_optimizer
from training.averaging.wire import WireFormat
from training.model.build import build_model
from training.model.transformer import TextToImageTransformer
from training.network import worker
from training.network.connection import Endpoint, Identity, Network
from training.run import atomic
from training.run.recipes import TINY

VOLUNTEERS = 4
BATCH = 16
WAIT_SECONDS = 120.0
RECIPE = replace(
    TINY,
    # a larger epsilon, or LAMB would blow up the rounding of the smallest gradients
    optimizer=replace(TINY.optimizer, state_bits=32, epsilon=1e-4),
    swarm=replace(
        TINY.swarm,
        target_batch_size=VOLUNTEERS * BATCH,
        # long enough for all to come on a busy machine; a full group starts at once
        matchmaking_seconds=20.0,
        averaging_timeout=90.0,
        allreduce_timeout=60.0,
        average_state_every=10**6,
    ),
)


def make_batch(step: int, index: int) -> dict[str, torch.Tensor]:
    """Make sixteen sequences, the same in every process; codes follow from the text."""
    generator = torch.Generator().manual_seed(1000 * step + index)
    model = RECIPE.model
    text = torch.randint(
        model.text_vocabulary_size, (BATCH, model.text_length), generator=generator
    )
    codes = (text[:, :1] + torch.arange(model.image_side**2)) % model.image_vocabulary_size
    return {"text_ids": text, "image_codes": codes}


def held_out_loss(model: TextToImageTransformer) -> float:
    """Compute the loss on sequences that no step trains on."""
    with torch.no_grad():
        return float(model(**make_batch(-1, 0)).loss)


def make_step(
    optimizer: SwarmOptimizer, model: TextToImageTransformer, step: int, index: int
) -> None:
    """Compute this volunteer's quarter, wait for the others' and make the step with them."""
    model(**make_batch(step, index)).loss.backward()
    # told before it is handed in, so that handing in already finds the batch complete
    optimizer.tracker.report_local_progress(step, BATCH)

    def have_come() -> bool:
        """True if the batch is complete, or the others have begun with the step."""
        complete = optimizer.tracker.global_progress.samples_accumulated >= VOLUNTEERS * BATCH
        return complete or optimizer.tracker.global_epoch > step

    wait_for(f"the others at step {step}", have_come, WAIT_SECONDS)
    optimizer.step(batch_size=BATCH)
    assert optimizer.local_epoch == step + 1, f"step {step} was not made"


def train(folder: Path, index: int, steps: int) -> None:
    """Train and write the held-out loss after each step to ``losses.json``."""
    torch.set_num_threads(1)
    model = build_model(RECIPE)
    first = folder.parent / "0" / "address"
    if index:
        wait_for("the first one's address", first.exists)
    entry_points = (first.read_text(),) if index else ()
    network = Network("lockstep", Identity.read(folder), entry_points, Endpoint("127.0.0.1"))
    optimizer = open_optimizer(network, RECIPE, model, BATCH, WireFormat.EXACT, delayed_step=False)
    if not index:
        atomic.write_bytes(first, network.addresses()[0].encode())
    losses = []
    for step in range(steps):
        make_step(optimizer, model, step, index)
        losses.append(held_out_loss(model))
    (folder / "losses.json").write_text(json.dumps(losses))
    everybody = [folder.parent / str(each) / "losses.json" for each in range(VOLUNTEERS)]
    wait_for("the others to have read all", lambda: all(path.exists() for path in everybody))
    optimizer.close()
    network.close()


if __name__ == "__main__":
    folder, index, steps = sys.argv[1:]
    worker.run(lambda _stop: train(Path(folder), int(index), int(steps)), Path(folder))
