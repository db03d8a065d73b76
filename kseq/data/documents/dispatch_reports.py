"""The built-in corpus of documents: reports with one decisive word."""

from kseq.data.documents.documents import Documents
from kseq.data.files.split_range import different_examples, split_range

SIZES = {"train": 8_000, "validation": 500, "test": 1_000}

_FEWEST, _MOST = 4, 12  # sentences of a report
_DECISIVE = {
    "ambulance": (
        *("allergy", "bruise", "casualty", "concussion", "cramp", "fever"),
        *("fracture", "infection", "injury", "nosebleed", "overdose"),
        *("paralysis", "seizure", "stroke"),
    ),
    "fire": (
        *("blaze", "cinders", "combustion", "embers", "explosion", "flames"),
        *("fumes", "ignition", "inferno", "overheating", "smoke", "soot"),
        *("sparks", "tinder"),
    ),
    "flood": (
        *("cloudburst", "deluge", "downpour", "drizzle", "inundation"),
        *("leak", "levee", "overflow", "rainwater", "seepage", "sewage"),
        *("surge", "torrent", "whirlpool"),
    ),
    "police": (
        *("assault", "blackmail", "brawl", "burglary", "forgery", "fraud"),
        *("gunshot", "hooligan", "intruder", "kidnapper", "robbery"),
        *("smuggler", "thief", "vandal"),
    ),
}
_NEUTRAL = (
    *("balloon", "banner", "bench", "bicycle", "calendar", "carpet"),
    *("concert", "cupboard", "guitar", "invoice", "kite", "melon"),
    *("newspaper", "painting", "parcel", "piano", "pigeon", "poster"),
    *("sandwich", "sofa", "statue", "suitcase", "ticket", "timetable"),
)
_DETAILS = {
    "who": (
        *("baker", "caller", "cashier", "courier", "cyclist", "driver"),
        *("farmer", "gardener", "jogger", "librarian", "musician"),
        *("neighbour", "student", "tailor", "teacher", "tenant", "visitor"),
        *("waiter",),
    ),
    "place": (
        *("bakery", "bridge", "cinema", "church", "courtyard", "gallery"),
        *("garage", "hotel", "library", "market", "museum", "office"),
        *("playground", "school", "stadium", "station", "theatre", "tower"),
    ),
    "kind": (
        *("curious", "familiar", "large", "latest", "new", "other", "same"),
        *("small", "strange", "usual"),
    ),
    "time": (
        *("a while ago", "after lunch", "around midnight", "at noon"),
        *("before breakfast", "during the break", "late in the evening"),
        *("this morning",),
    ),
}
_TEMPLATES = (
    "Because of the {thing}, the {who} left the {place} {time}.",
    "Everybody at the {place} talked about the {kind} {thing} {time}.",
    "From the {place} comes another message about the {thing}.",
    "It was the {who} who noticed the {kind} {thing} {time}.",
    "Near the {place} people still ask about the {thing}.",
    "Nobody at the {place} could explain the {kind} {thing}.",
    "Only the {who} was surprised by the {thing} {time}.",
    "Please remember the {kind} {thing} beside the {place}.",
    "Someone asked the {who} about the {thing} near the {place}.",
    "The {who} mentioned the {thing} behind the {place} {time}.",
    "The {who} pointed at the {thing} close to the {place}.",
    "There is a note from the {who} about the {kind} {thing}.",
    "Two pictures of the {thing} were sent by the {who}.",
    "We heard of the {kind} {thing} from the {who} {time}.",
    "With the {thing} at the {place}, the {who} has to wait.",
    "Word of the {kind} {thing} reached the {who} {time}.",
)


def dispatch_reports(
    split: str, size: int | None = None, seed: int = 0
) -> Documents:
    """Reports to an emergency dispatch centre, and which service must come.

    One word in one sentence determines the label. Everything else is drawn
    independently of it: the number of sentences, the position of the decisive
    one, its other words, and the other sentences, which are made in the same
    way with a neutral word instead of the decisive one. No report occurs twice.

    Args:
        split: "train", "validation" or "test".
        size: number of documents, at most and by default `SIZES[split]`.
        seed: of all that is drawn.

    Returns:
        Documents with their evidence.

    Example:
    >>> report = dispatch_reports("train", size=1, seed=25)
    >>> report.labels, report.evidence
    (['police'], [(2, 'thief')])
    >>> report.texts[0].split(". ")[2]
    'It was the waiter who noticed the strange thief this morning'
    """
    places = split_range(split, size, SIZES)
    reports = different_examples(places, seed, _report, key=lambda it: it[0])
    texts, labels, evidence = map(list, zip(*reports, strict=True))
    return Documents(texts, labels, evidence=evidence)


def _report(draw) -> tuple[str, str, tuple[int, str]]:
    """A text, its label, and the evidence for it, see `Documents`."""
    label = draw.choice(list(_DECISIVE))
    word = draw.choice(_DECISIVE[label])
    things = draw.choices(_NEUTRAL, k=draw.randint(_FEWEST, _MOST))
    decisive = draw.randrange(len(things))
    things[decisive] = word
    text = " ".join(_sentence(draw, thing) for thing in things)
    return text, label, (decisive, word)


def _sentence(draw, thing) -> str:
    details = {name: draw.choice(words) for name, words in _DETAILS.items()}
    return draw.choice(_TEMPLATES).format(thing=thing, **details)
