"""What comes into a model, each described once: text, turns, pictures, ...

A source is an instance of `SourceType` in a module of its own. Nothing here
imports TensorFlow before an input is read.
"""

from kseq.data import DataError
from kseq.data.files.named_texts import CAPTIONS, TRANSCRIPTS
from kseq.data.files.tar_members import first_extension, is_tar
from kseq.data.files.text_files import matching_files
from kseq.sources.documents import DOCUMENTS
from kseq.sources.pictures import FEATURES, IMAGE
from kseq.sources.prompt import PROMPT
from kseq.sources.source_type import SourceType as SourceType
from kseq.sources.speech import AUDIO, FRAMES
from kseq.sources.text import TEXT
from kseq.sources.turns import TURNS
from kseq.sources.vectors import VECTORS
from kseq.sources.words import WORDS

# Frames are features with lengths; text is what nothing else is said to be.
SOURCES = (
    *(DOCUMENTS, WORDS, TURNS, PROMPT, FRAMES, FEATURES, AUDIO),
    *(IMAGE, VECTORS, TEXT),
)
_BY_NAME = {source.name: source for source in SOURCES}
NAMES = tuple(_BY_NAME)


def source_named(name):
    """The source with a name; text for any other name."""
    return _BY_NAME.get(name, TEXT) if isinstance(name, str) else TEXT


def source_of_files(options, sources=SOURCES):
    """What options say that files hold; text if they say nothing.

    Args:
        options: of `kseq check` or `kseq prepare`.
        sources: that may be meant.

    Raises:
        DataError: options contradict each other.
    """
    said = [
        source
        for source in sources
        if source.option and getattr(options, source.option, None)
    ]
    given = list(dict.fromkeys(f"--{source.option}" for source in said))
    if len(given) > 1:
        raise DataError(f"{' and '.join(given)} are mutually exclusive.")
    found = next((each for each in said if each.is_meant(options)), None)
    return found or _source_of_tars(options) or TEXT


def _source_of_tars(options):
    """What tar archives contain, or None if there is none."""
    given = getattr(options, "files", None) or getattr(options, "train", None)
    if not given or not is_tar(given[0]):
        return None
    sources = {TRANSCRIPTS: AUDIO, CAPTIONS: IMAGE}
    for path in matching_files(given[0]):
        for known, source in sources.items():
            if first_extension(path, known.extensions):
                return source
    raise DataError(f"{given[0]} contains no recording and no picture.")


def source_of_task(task):
    """The source in a task, what `task.json` says; text if it says nothing."""
    config = task.get("preprocessor")
    name = config.get("class") if isinstance(config, dict) else None
    for source in SOURCES:
        if source.preprocessor == name:
            return source
    return source_named(task.get("input"))
