import pytest
from matplotlib import font_manager
from matplotlib.ft2font import FT2Font

from kseq.pictures import figures


@pytest.fixture
def chinese(monkeypatch):
    """One more font, which has a Chinese letter; the names of all fonts."""
    default = font_manager.findfont("DejaVu Sans")
    other = font_manager.FontEntry(fname=default, name="DejaVu Serif")
    charmap = FT2Font(default).get_charmap()

    def letters_of(font):
        return set(map(chr, charmap)) | ({"日"} if font is other else set())

    listed = font_manager.fontManager.ttflist
    listed = [font for font in listed if font.name == "DejaVu Sans"]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", [*listed, other])
    monkeypatch.setattr(figures, "_letters_of", letters_of)
    monkeypatch.setattr(figures, "_families", {})
    return ["DejaVu Sans", "DejaVu Serif"]
