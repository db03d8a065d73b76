"""The built-in corpus of tagged words: sentences about journeys."""

from kseq.data.files.split_range import different_examples, split_range
from kseq.data.tags.tagged_sentences import TaggedSentences

SIZES = {"train": 6_000, "validation": 500, "test": 1_000}

_NAMES = (  # of people and of cities
    *("Adelaide", "Alexandria", "Austin", "Charlotte", "Chelsea", "Florence"),
    *("Lourdes", "Madison", "Paris", "Sofia", "Sydney", "Victoria"),
)
_CITIES = (
    *_NAMES,
    *("Bergen", "Cairo", "Delhi", "Lima", "London", "New Delhi", "New London"),
    *("New Orleans", "New York", "Orleans", "Oslo", "Porto", "Riga", "Rome"),
    *("San Jose", "Santa Cruz", "Turin", "York"),
)
_PEOPLE = (*_NAMES, "Amir", "Bruno", "Chen", "Dunja", "Emeka", "Yuki")
_DAYS = (
    *("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"),
    *("Sunday", "New Year"),
)
# What is in braces has a tag, except {other}, a city where nobody goes.
_TEMPLATES = (
    "{from} to {to}",
    "{from} to {to} changing in {via}",
    "{from} is where {who} starts and {to} is where {who} goes",
    "{to} is where {who} goes and {from} is where {who} starts",
    "{who} arrives in {to} and comes from {from}",
    "{who} flies from {from} to {to}",
    "{who} flies to {to} from {from}",
    "{who} goes by way of {via} to {to}",
    "{who} goes not to {other} but to {to}",
    "{who} is in {from} and has to be in {to}",
    "{who} leaves {from} for {to}",
    "{who} left {other} long ago and now goes from {from} to {to}",
    "a ticket to {to} for {who}",
    "from {from} by way of {via} {who} comes to {to}",
    "from {from} to {to} there is no train but from {other} there is",
    "in {via} {who} has an hour between the trains from {from} and to {to}",
    "the train to {to} that starts in {from} stops in {via}",
    "to {to} by way of {via} from {from}",
    "when does {who} who is in {from} arrive in {to}",
)
_BEFORE = ("", "", "", "on {day}", "please tell me", "yes", "in the evening")
_AFTER = ("", "", "", "on {day}", "together with {who}", "before {day}")


def journeys(
    split: str, size: int | None = None, seed: int = 0
) -> TaggedSentences:
    """Sentences about journeys; their words are tagged with their roles.

    The tags are in the BIO scheme: B- at the first word of a place, day or
    traveller and I- at the others, with `from`, `to`, `via`, `day` or `who`; O
    elsewhere. The names are drawn independently of their roles: the same city
    can be any of the three, or a city where nobody goes; some cities are also
    first names, and some names are parts of others. So only the other words of
    a sentence determine the role. No sentence occurs twice.

    Args:
        split: "train", "validation" or "test".
        size: number of sentences, at most and by default `SIZES[split]`.
        seed: of all that is drawn.

    Returns:
        TaggedSentences.

    Example:
    >>> sentences = journeys("train", size=1, seed=7)
    >>> sentences.texts[0]
    'Yuki goes by way of Orleans to Florence'
    >>> " ".join(sentences.tags[0])
    'B-who O O O O B-via O B-to'
    """
    places = split_range(split, size, SIZES)
    return TaggedSentences.of(
        different_examples(places, seed, _sentence, key=lambda it: it[0])
    )


def _sentence(draw) -> tuple[str, list[str]]:
    parts = map(draw.choice, (_BEFORE, _TEMPLATES, _AFTER))
    words, tags = [], []
    cities = draw.sample(_CITIES, k=len(_CITIES))
    for word in " ".join(parts).split():
        if not word.startswith("{"):
            words.append(word)
            tags.append("O")
            continue
        kind = word.strip("{}")
        lists = {"day": _DAYS, "who": _PEOPLE}
        name = draw.choice(lists[kind]) if kind in lists else cities.pop()
        first, *others = name.split()
        words += [first, *others]
        if kind == "other":
            tags += ["O"] * (1 + len(others))
        else:
            tags += [f"B-{kind}", *[f"I-{kind}"] * len(others)]
    return " ".join(words), tags
