"""Pictures: their files, or ready features of their cells."""

import os

from kseq import data
from kseq.data.files.named_texts import CAPTIONS, named_rows
from kseq.data.files.tar_members import is_tar
from kseq.sources.numbered_lines import numbered_lines
from kseq.sources.prepare_file import prepare_features
from kseq.sources.ready_features import named_features, stored_features
from kseq.sources.source_type import SourceType
from kseq.user_error import UserError

_FILES = {
    "content": "captions",
    "prepared": "captions",
    "files": "table of their names and captions",
    "task": "This model describes pictures",
    "first_rows": lambda path, columns, _: named_rows(path, columns, CAPTIONS),
    "evaluation": "caption_evaluation",
    "trains": "caption_images",
}


def _read_pictures(model, options):
    from kseq.data.files.media_folder import read_picture

    return numbered_lines(lambda line: read_picture(os.fsdecode(line)))


def _features(model, options):
    return stored_features(data.read_features, "pictures", model, options)


def _read_features(model, options):
    return named_features(_features(model, options), options.features)


def _read_corpus(options, train, validation):
    return data.read_caption_corpus(
        train,
        validation,
        options.columns or (),
        features=options.features,
        log=False,
    )


def _check(options, train, validation):
    from kseq.data.pictures.caption_corpus import check_captions

    return check_captions(
        train, validation, options.columns or (), options.images or ""
    )


def _prepare(options, kept, beam):
    network = {"name": options.network, "weights": options.network_weights}
    given = {name: value for name, value in network.items() if value}
    return prepare_features(
        *(data.prepare_captions, options, kept, beam),
        images=options.images,
        network=data.NetworkOptions(**given),
        plain=options.plain,
    )


def _captions_of_features(model, options):
    features = _features(model, options)
    return data.read_captions(
        options.source, features, options.columns or (), options.plain
    )


def _captions_of_pictures(model, options):
    if not options.images and not is_tar(options.source):
        raise UserError(
            f"{model.path} expects pictures: give their folder with --images."
        )
    return data.read_image_captions(
        options.source,
        options.images or "",
        options.columns or (),
        options.plain,
    )


IMAGE = SourceType(
    name="image",
    preprocessor="ImagePreprocessor",
    item="picture",
    lines="paths of pictures",
    command_line="< PATHS",
    python='[open("a.jpg", "rb").read()]',
    json='[{"b64": "..."}]',
    read_lines=_read_pictures,
    options=frozenset({"columns", "metrics", "images", "plain"}),
    option="images",
    read_corpus=_check,
    prepare=_prepare,
    read_examples=_captions_of_pictures,
    is_file=True,
    bytes_per_step=0,
    draw=lambda image: image,
    page_input="picture_input",
    page_view="picture",
    **_FILES,
)
FEATURES = SourceType(
    name="features",
    preprocessor="FeaturePreprocessor",
    item="picture",
    lines="features",
    command_line="--features FILE.npz < NAMES",
    python="[features]",
    json="[[[0.5, ...]]]",
    read_lines=_read_features,
    options=frozenset({"columns", "metrics", "plain", "features"}),
    option="features",
    read_corpus=_read_corpus,
    prepare=_prepare,
    read_examples=_captions_of_features,
    names_pictures=True,
    draw=lambda features: b"",
    **_FILES,
)
