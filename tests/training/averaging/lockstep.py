"""One volunteer of four that train in step: `python lockstep.py FOLDER INDEX STEPS [PEER]`.

Each volunteer hands in the same sixteen sequences at a step as its quarter of the plain loop's
batch, and waits until all have: what then differs from the plain loop is rounding.
"""

import json
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

import torch

from training.averaging.optimizer import SwarmOptimizer, open_optimizer
from training.averaging.wire import WireFormat
from training.model.build import build_model
from training.model.transformer import TextToImageTransformer
from training.network import worker
from training.network.connection import Endpoint, Identity, Network
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
    deadline = time.monotonic() + WAIT_SECONDS
    while optimizer.tracker.global_progress.samples_accumulated < VOLUNTEERS * BATCH:
        if optimizer.tracker.global_epoch > step:
            break  # the others have begun with the step
        assert time.monotonic() < deadline, f"step {step}: the others did not come"
        time.sleep(0.02)
    optimizer.step(batch_size=BATCH)
    assert optimizer.local_epoch == step + 1, f"step {step} was not made"


def train(folder: Path, index: int, steps: int, entry_points: tuple[str, ...]) -> None:
    """Train and write the held-out loss after each step to ``losses.json``."""
    torch.set_num_threads(1)
    model = build_model(RECIPE)
    network = Network("lockstep", Identity.read(folder), entry_points, Endpoint("127.0.0.1"))
    optimizer = open_optimizer(network, RECIPE, model, BATCH, WireFormat.EXACT, delayed_step=False)
    (folder / "address").write_text(network.addresses()[0])
    losses = []
    for step in range(steps):
        make_step(optimizer, model, step, index)
        losses.append(held_out_loss(model))
    (folder / "losses.json").write_text(json.dumps(losses))
    all_losses = [folder.parent / str(each) / "losses.json" for each in range(VOLUNTEERS)]
    while not all(path.exists() for path in all_losses):
        time.sleep(0.02)  # the others may still be reading
    optimizer.close()
    network.close()


if __name__ == "__main__":
    folder, index, steps, *peers = sys.argv[1:]

    def work(_stop: threading.Event) -> None:
        """Train as the command line says."""
        train(Path(folder), int(index), int(steps), tuple(peers))

    worker.run(work, Path(folder))
