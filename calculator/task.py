"""The tasks that a model is trained for, and transformers' names of their classes."""

from typing import Final

from calculator.choice import Choice


class Task(Choice):
    """The head and loss that a model is trained with."""

    LANGUAGE = "lm"
    SEQUENCE = "sequence"
    TOKENS = "tokens"
    QUESTIONS = "questions"
    REWARD = "reward"
    EMBEDDING = "embedding"
    IMAGE = "image"
    AUDIO = "audio"


# how the names of transformers' classes end
ENDINGS: Final = {
    Task.SEQUENCE: "ForSequenceClassification",
    Task.TOKENS: "ForTokenClassification",
    Task.QUESTIONS: "ForQuestionAnswering",
    Task.REWARD: "ForSequenceClassification",
    Task.EMBEDDING: "Model",
    Task.AUDIO: "ForAudioClassification",
}
# tasks whose losses compare the two halves of a micro-batch
OF_PAIRS: Final = (Task.REWARD, Task.EMBEDDING)
# those that read no tokens
NO_TOKENS: Final = (Task.IMAGE, Task.AUDIO)
# those that no class's name says, because a class of theirs has other uses too
UNNAMED: Final = (Task.EMBEDDING,)
# how a note of masked language models begins, which another head makes false
OWN_HEAD: Final = "Counted with the masked-language-model head"
# how those of language models end, to which the ends above are put in their place
LANGUAGE_ENDINGS: Final = (
    *("ForMaskedLM", "ForCausalLM", "LMHeadModel", "ForConditionalGeneration"),
)


def class_for(task: Task, counted: str) -> str:
    """The class of a task, beside the one of a type's own.

    >>> class_for(Task.SEQUENCE, "BertForMaskedLM")
    'BertForSequenceClassification'
    """
    if task not in ENDINGS:
        return counted
    for ending in LANGUAGE_ENDINGS:
        if counted.endswith(ending):
            return counted.removesuffix(ending) + ENDINGS[task]
    return counted


def task_named(classes: list[str]) -> Task | None:
    """The task of the first of some classes, if its name ends as one of another task does.

    >>> str(task_named(["DistilBertForSequenceClassification"]))
    'sequence'
    """
    first = classes[0] if classes else ""
    named = (task for task, ending in ENDINGS.items() if first.endswith(ending))
    return next((task for task in named if task not in UNNAMED), None)
