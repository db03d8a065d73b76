"""A task in words, for the card of a model."""

from kseq.answers import types_of_task
from kseq.files.json_files import read_json
from kseq.runs.model_card import TaskDescription


def describe_task(run):
    """The `TaskDescription` of a run; None before its task is saved."""
    if not run.task.is_file():
        return None
    task = run.read_task()
    source, answer = types_of_task(task)
    signatures = {
        name: text.format(source.name)
        for name, text in answer.signatures(source).items()
    }
    if run.model.is_file():
        config = read_json(run.model)["config"]
        if not answer.explains(config, source):
            signatures.pop("explain", None)
    return TaskDescription(
        description=answer.description,
        signatures=signatures,
        command_line=source.command_line,
        python=source.python,
        json=source.json,
        data="text" if source.has_tokenizer else "data",
        limits=[*_lengths(task), *answer.limits(task)],
        classes=(
            f"It assigns one of these {answer.classes} to any "
            f"{answer.classified(source)}:",
            task[answer.classes],
        )
        if answer.classes
        else None,
    )


def _lengths(task):
    preprocessor = task.get("preprocessor") or {}
    for name, what, parts in (
        ("max_words", "A sentence", "words"),
        ("max_length", "An input", "tokens"),
    ):
        if name in preprocessor:
            yield (
                f"{what} of more than {preprocessor[name]} {parts} is cut, and "
                "marked `truncated`."
            )
