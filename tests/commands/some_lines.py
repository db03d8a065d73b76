"""What the tiny run has learnt by heart, and what it is asked."""

LEARNT = ["a b c", "c b a", "b b ü", "日 a a", "c ü c"]
SOURCES = ["a b c", "", "ü 日 b", "c b a a b c", "no such words"]


def lines_of(texts):
    return "\n".join(texts).encode() + b"\n"
