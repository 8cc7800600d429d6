"""The page of a published checkpoint: what it is, who made it of what, and how to draw with it."""

from dataclasses import asdict

from training.run.live import CheckpointEntry, LiveFolder
from training.run.recipes import Recipe
from training.run.runfile import RunFile


def write(run: RunFile, live: LiveFolder, entry: CheckpointEntry) -> str:
    """The model card of a checkpoint, in Markdown with the Hub's YAML header."""
    recipe = run.get_recipe()
    contributors = live.read_peers()
    samples = sum(who.samples for who in contributors)
    loss = "not reported" if entry.loss is None else f"{entry.loss:.3f}"
    source = run.data or recipe.data.source or "named in the run file"
    repository = run.checkpoints or "CHECKPOINT"
    header = ["---", "pipeline_tag: text-to-image", "tags:", "- text-to-image", "- hivemind"]
    if run.license:
        header.append(f"license: {run.license}")
    settings = "\n".join(f"| {name} | {value} |" for name, value in asdict(recipe.model).items())
    return f"""{chr(10).join([*header, "---"])}

# {run.title or run.name}, step {entry.step:,}

A text-to-image transformer that volunteers trained together over the internet.

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

## Draw with it

```console
$ python -m training generate {repository} "a caption" --output pictures.png
```

The tokenizer `{recipe.data.tokenizer}` turns captions into ids; the VQ-GAN
`{recipe.data.codes or "named by the run's organizers"}` turns the model's codes into pixels.

## Limits

This checkpoint was published during the run and is only as good as its loss. It reflects its
training data, including everything that is missing or wrong there, and no one has tested it for any
other use.

## Shape

| setting | value |
|---|---|
{settings}
"""


def _step_size(recipe: Recipe) -> str:
    """The row that says what ends a step: a number of sequences, or time."""
    if recipe.sparse is not None:
        return f"local steps | {recipe.sparse.seconds:g} s in a step"
    return f"target batch | {recipe.swarm.target_batch_size:,} sequences"
