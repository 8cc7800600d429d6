"""Checkpoints on the Hugging Face Hub, where the run file names a repository.

A checkpoint is one commit: weights, configuration, model card and sum, or nothing. What was
uploaded before a failure is not uploaded again, and the newest checkpoint is tried until it is
there. The token is huggingface_hub's own, from HF_TOKEN or its login; it is shown nowhere.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, replace

from huggingface_hub import CommitOperationAdd, HfApi, get_token, hf_hub_url
from huggingface_hub.errors import HfHubHTTPError

from training.run import download
from training.run.live import CheckpointEntry, LiveFolder
from training.run.recipes import LanguageSettings, Recipe
from training.run.runfile import RunFile
from training.run.status import first_line

logger = logging.getLogger(__name__)

WEIGHTS, CONFIG = "model.safetensors", "config.json"
FIRST_PAUSE, LONGEST_PAUSE = 30.0, 1800.0  # seconds after a failure, doubled each time
_REFUSALS = (401, 403)


class PublishError(RuntimeError):
    """The Hub did not take a checkpoint; the message says why."""


def upload(run: RunFile, live: LiveFolder, entry: CheckpointEntry) -> str:
    """Put one checkpoint of the live folder on the Hub; the address of the weights in its commit.

    Raises:
        PublishError: the Hub does not answer, or refuses.
    """
    folder = (live.path / (entry.address or "")).parent
    card = make_card(run, live, entry)
    loss = "" if entry.loss is None else f", loss {entry.loss:.3f}"
    try:
        api = HfApi()
        api.create_repo(run.checkpoints, exist_ok=True)
        commit = api.create_commit(
            run.checkpoints,
            [
                CommitOperationAdd(WEIGHTS, folder / WEIGHTS),
                CommitOperationAdd(CONFIG, folder / CONFIG),
                CommitOperationAdd(f"{WEIGHTS}.sha256", f"{entry.sha256}  {WEIGHTS}\n".encode()),
                CommitOperationAdd("README.md", card.encode()),
            ],
            commit_message=f"Step {entry.step}{loss}",
        )
    except HfHubHTTPError as error:
        raise PublishError(_explain(run.checkpoints, error)) from error
    except Exception as error:  # of its HTTP library, another one in every other version
        cause = error.__cause__ if isinstance(error.__cause__, Exception) else error
        raise PublishError(f"{run.checkpoints}: {first_line(cause)}") from error
    return hf_hub_url(run.checkpoints, WEIGHTS, revision=commit.oid, endpoint=api.endpoint)


def find_pending(live: LiveFolder) -> CheckpointEntry | None:
    """The newest checkpoint, if it is not on the Hub yet."""
    entries = live.read_checkpoints()
    newest = entries[-1] if entries else None
    there = newest is None or newest.address is None or download.is_web(newest.address)
    return None if there else newest


def publish_newest(run: RunFile, live: LiveFolder) -> str | None:
    """Upload the newest checkpoint and put its address into the list; None: it is there already.

    Raises:
        PublishError: as `upload` does.
    """
    entry = find_pending(live)
    if entry is None:
        return None
    address = upload(run, live, entry)
    with live.lock:
        entries = live.read_checkpoints()
        live.write_checkpoints(
            [replace(old, address=address) if old.step == entry.step else old for old in entries]
        )
    return address


class Uploader:
    """A thread that brings each new checkpoint to the Hub, as often as it takes.

    Args:
        run: names the repository. live: the folder that the monitor writes.
        say: told what was published, and what went wrong.
    """

    def __init__(
        self,
        run: RunFile,
        live: LiveFolder,
        say: Callable[[str], None] = print,
        first_pause: float = FIRST_PAUSE,
    ) -> None:
        self.run, self.live, self.say = run, live, say
        self._first_pause = first_pause
        self._new, self._closed = threading.Event(), threading.Event()
        self._new.set()  # what a monitor before us left
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def look(self) -> None:
        """Tell that there is a new checkpoint."""
        self._new.set()

    def finish(self, seconds: float) -> bool:
        """Wait until the newest checkpoint is on the Hub; False when it was not in time."""
        deadline = time.monotonic() + seconds
        self._new.set()
        while find_pending(self.live) is not None and time.monotonic() < deadline:
            time.sleep(0.1)
        return find_pending(self.live) is None

    def close(self) -> None:
        """Begin nothing new."""
        self._closed.set()
        self._new.set()

    def _work(self) -> None:
        pause = self._first_pause
        while not self._closed.is_set():
            self._new.wait()
            self._new.clear()
            if self._closed.is_set():
                return
            if self._try():
                pause = self._first_pause
                continue
            self._closed.wait(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
            self._new.set()

    def _try(self) -> bool:
        try:
            address = publish_newest(self.run, self.live)
        except PublishError as error:
            self.say(f"the checkpoint is not on the Hub yet, trying again: {error}")
            return False
        except Exception:  # whatever it is, the monitor goes on
            logger.exception("publishing a checkpoint failed")
            return False
        if address is not None:
            self.say(f"the checkpoint is on the Hub: {address}")
        return True


def _explain(repository: str, error: HfHubHTTPError) -> str:
    status = error.response.status_code
    if status in _REFUSALS:
        token = "the token may not write there" if get_token() else "there is no token"
        return f"{repository}: the Hub refuses ({status}): {token}; HF_TOKEN must hold one that may"
    return f"{repository}: the Hub answers {status}: {first_line(error)}"


def make_card(run: RunFile, live: LiveFolder, entry: CheckpointEntry) -> str:
    """The model card of a checkpoint, in Markdown with the Hub's YAML header."""
    recipe = run.get_recipe()
    contributors = live.read_peers()
    samples = sum(who.samples for who in contributors)
    loss = "not reported" if entry.loss is None else f"{entry.loss:.3f}"
    source = run.data or recipe.data.source or "named in the run file"
    repository = run.checkpoints or "CHECKPOINT"
    kind, use = _describe_use(recipe, repository)
    tag = "text-generation" if isinstance(recipe.model, LanguageSettings) else "text-to-image"
    header = ["---", f"pipeline_tag: {tag}", "tags:", f"- {tag}", "- hivemind"]
    if run.license:
        header.append(f"license: {run.license}")
    shape = asdict(recipe.model)
    if isinstance(config := shape.get("config"), dict):
        shape = {"sequence_length": shape["sequence_length"], **config}
    settings = "\n".join(f"| {name} | {value} |" for name, value in shape.items())
    return f"""{chr(10).join([*header, "---"])}

# {run.title or run.name}, step {entry.step:,}

{kind} that volunteers trained together over the internet.

| | |
|---|---|
| run | {run.name} |
| recipe | {recipe.name} |
| global step | {entry.step:,} of {recipe.schedule.total_steps:,} |
| loss, mean over the volunteers' micro-batches | {loss} |
| {_step_size(recipe)} |
| data | {source} |
| contributors so far | {len(contributors):,}, {samples:,} sequences |
| time | {entry.time} |
| SHA-256 of `model.safetensors` | `{entry.sha256}` |
| license | {run.license or "the organizers have not named one"} |

{use}

## Limits

This checkpoint was published during the run and is only as good as its loss. It reflects its
training data, including everything that is missing or wrong there, and no one has tested it for any
other use.

## Shape

| setting | value |
|---|---|
{settings}
"""


def _describe_use(recipe: Recipe, repository: str) -> tuple[str, str]:
    """The kind of model, and the section on its use."""
    if isinstance(recipe.model, LanguageSettings):
        return (
            "A causal language model",
            f"""## Write with it

```console
$ python -m training generate {repository} "Once upon a time"
```

`AutoModelForCausalLM` of transformers loads it too. Its tokenizer is `{recipe.data.tokenizer}`.""",
        )
    return (
        "A text-to-image transformer",
        f"""## Draw with it

```console
$ python -m training generate {repository} "a caption" --output pictures.png
```

The tokenizer `{recipe.data.tokenizer}` turns captions into ids; the VQ-GAN
`{recipe.data.codes or "named by the run's organizers"}` turns the model's codes into pixels.""",
    )


def _step_size(recipe: Recipe) -> str:
    """The row that says what ends a step: a number of sequences, or time."""
    if recipe.sparse is not None:
        return f"local steps | {recipe.sparse.seconds:g} s in a step"
    return f"target batch | {recipe.swarm.target_batch_size:,} sequences"
