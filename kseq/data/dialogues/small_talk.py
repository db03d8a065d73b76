"""The built-in dialogues: small talk in which one turn has the answer."""

from typing import NamedTuple

from kseq.data.dialogues.dialogues import Dialogues
from kseq.data.files.split_range import different_examples, split_range

SIZES = {"train": 16_000, "validation": 500, "test": 1_000}

_FEWEST, _MOST = 2, 4  # turns before the question
_NAMES = (
    *("Ada", "Ben", "Carla", "David", "Elena", "Felix", "Grace", "Hugo"),
    *("Ines", "Jonas", "Karin", "Liam", "Maria", "Nils", "Olga", "Paul"),
    *("Rosa", "Samir", "Tara", "Viktor"),
)


class _Kind(NamedTuple):
    """A kind of fact about a person."""

    statements: tuple[str, ...]
    questions: tuple[str, ...]
    answer: str
    values: tuple[str, ...]


_KINDS = (
    _Kind(
        (
            "{name} lives in {value}.",
            "{name} has moved to {value}.",
            "I have visited {name} in {value}.",
        ),
        (
            "Where does {name} live?",
            "Do you know where {name} lives?",
            "In which city can I find {name}?",
        ),
        "{name} lives in {value}.",
        (
            *("Athens", "Berlin", "Cairo", "Dublin", "Helsinki", "Lima"),
            *("Lisbon", "Madrid", "Nairobi", "Oslo", "Prague", "Rome"),
            *("Sydney", "Tokyo", "Vienna", "Warsaw"),
        ),
    ),
    _Kind(
        (
            "{name} has a {value}.",
            "{name} was here with a {value}.",
            "The {value} over there belongs to {name}.",
        ),
        (
            "What animal does {name} have?",
            "Has {name} got a pet?",
            "Which animal belongs to {name}?",
        ),
        "{name} has a {value}.",
        (
            *("canary", "cat", "dog", "donkey", "ferret", "goat", "goose"),
            *("hamster", "horse", "lizard", "parrot", "pony", "rabbit"),
            *("snake", "tortoise", "turkey"),
        ),
    ),
    _Kind(
        (
            "{name} likes {value} most.",
            "{name} cooks {value} every day.",
            "I know that {name} loves {value}.",
        ),
        (
            "What shall we cook for {name}?",
            "What does {name} like to eat?",
            "Which food does {name} love?",
        ),
        "{name} loves {value}.",
        (
            *("beans", "cabbage", "cake", "cheese", "fish", "lentils"),
            *("mushrooms", "noodles", "omelettes", "pancakes", "peas"),
            *("pizza", "porridge", "rice", "salad", "soup"),
        ),
    ),
    _Kind(
        (
            "{name} works as a {value}.",
            "{name} wants to stay a {value}.",
            "They say that {name} is a good {value}.",
        ),
        (
            "What does {name} do?",
            "What is the job of {name}?",
            "Do you know how {name} earns money?",
        ),
        "{name} is a {value}.",
        (
            *("baker", "carpenter", "dentist", "farmer", "gardener"),
            *("judge", "lawyer", "mechanic", "nurse", "painter", "pilot"),
            *("plumber", "surgeon", "tailor", "teacher", "waiter"),
        ),
    ),
)
_SMALL_TALK = (
    "All is well here, thank you.",
    "By the way, the train was late again.",
    "Did you see the game last night?",
    "Have you read the news today?",
    "I am so tired this morning.",
    "I have not slept much.",
    "It is a lovely day.",
    "It will be the weekend soon.",
    "My phone is broken again.",
    "Nice to see you again!",
    "Sorry that I am late.",
    "The coffee here is very good.",
    "The meeting was far too long.",
    "There is so much to do.",
    "This summer is too hot for me.",
    "We should go to the cinema.",
    "What a surprise to meet you here!",
    "You look well, my friend.",
)


def small_talk(split: str, size: int | None = None, seed: int = 0) -> Dialogues:
    """Small talk in which several turns state a fact about a person.

    The last turn asks for one of these facts; the answer is in an earlier turn,
    and in no other. Names, facts, their number and their positions are drawn
    independently, so that the answer does not follow from the question alone.
    No context occurs twice.

    Args:
        split: "train", "validation" or "test".
        size: number of dialogues, at most and by default `SIZES[split]`.
        seed: of all that is drawn.

    Returns:
        Dialogues with their evidence and facts.

    Example:
    >>> talk = small_talk("train", size=1, seed=3)
    >>> talk.contexts[0][talk.evidence[0]], talk.facts
    ('Paul has moved to Warsaw.', ['Warsaw'])
    >>> talk.contexts[0][-1], talk.answers[0]
    ('Where does Paul live?', 'Paul lives in Warsaw.')
    """
    places = split_range(split, size, SIZES)
    examples = different_examples(
        places, seed, _example, key=lambda it: tuple(it[0])
    )
    return Dialogues(*map(list, zip(*examples, strict=True)))


def _example(draw) -> tuple[list[str], str, int, str]:
    """A context, its answer, evidence and fact, see `Dialogues`."""
    turns = draw.sample(_SMALL_TALK, k=draw.randint(_FEWEST, _MOST))
    count = draw.randint(2, len(turns))
    places = draw.sample(range(len(turns)), k=count)
    # Two kinds at most, so that some facts differ only in the name.
    kinds = draw.choices(draw.sample(_KINDS, k=2), k=count)
    names = draw.sample(_NAMES, k=count)
    values = []
    for place, kind, name in zip(places, kinds, names, strict=True):
        left = [value for value in kind.values if value not in values]
        values.append(draw.choice(left))
        turns[place] = draw.choice(kind.statements).format(
            name=name, value=values[-1]
        )
    kind, name, value = kinds[0], names[0], values[0]
    question = draw.choice(kind.questions).format(name=name)
    answer = kind.answer.format(name=name, value=value)
    return [*turns, question], answer, places[0], value
