"""The page of a published checkpoint: what it is, who made it of what, and how to draw with it."""

from dataclasses import asdict

from training.run.live import CheckpointEntry, LiveFolder
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
| target batch | {recipe.swarm.target_batch_size:,} sequences |
| data | {source} |
| contributors so far | {len(contributors):,}, {samples:,} sequences |
| time | {entry.time} |
| SHA-256 of `model.safetensors` | `{entry.sha256}` |
| license | {run.license or "the organisers have named none"} |

## Draw with it

```console
$ python -m training generate {repository} "a caption" --output pictures.png
```

Captions become ids by the tokenizer `{recipe.data.tokenizer}`; the codes that the model draws
become pixels by the VQ-GAN `{recipe.data.codes or "that the run's organisers name"}`.

## Limits

A checkpoint is published while its run goes on: it is as good as its loss. It knows what its data
shows, with all that is missing or wrong there, and nobody has tested it for other use.

## Shape

| setting | value |
|---|---|
{settings}
"""
