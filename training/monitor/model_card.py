"""The page of a published checkpoint: what it is, who made it of what, and how to use it."""

from dataclasses import asdict

from training.run.live import CheckpointEntry, LiveFolder
from training.run.recipes import LanguageSettings, Recipe
from training.run.runfile import RunFile


def write(run: RunFile, live: LiveFolder, entry: CheckpointEntry) -> str:
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
