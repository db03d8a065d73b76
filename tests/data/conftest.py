import pytest

from kseq.data import Tokenizer

SENTENCES = [
    "Ein Hund läuft über die Wiese.",
    "A dog runs across the meadow.",
    "Two young men are cooking in a small kitchen.",
    "Zwei junge Männer kochen in einer kleinen Küche.",
    "The woman in the red coat reads a book.",
    "Die Frau im roten Mantel liest ein Buch.",
]


@pytest.fixture(scope="session")
def tokenizer():
    return Tokenizer.train(SENTENCES, 320)


@pytest.fixture
def write(tmp_path):
    """Writes bytes to a file in a folder of the test's own."""

    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return write
