"""Runs of versions 0.1 and 0.2, converted to the names of this version."""

_RENAMED = {
    "batch_words": "batch_pieces",
    "word_dropout": "piece_dropout",
    "max_words": "max_pieces",
}
_REMOVED = {
    "HierarchicalAttention": ("cell", "groups"),
    "FlatAttention": ("cell",),
}


def missing_options(config):
    """Options that they did not have, and what they were trained with.

    Args:
        config: the `Config` of a recipe now.
    """
    missing = {"positions": "sinusoidal", "ngrams": 0}
    if hasattr(config, "local"):  # translate_lstm
        missing["attention"] = "general"
    return {k: v for k, v in missing.items() if hasattr(config, k)}


def kept_options(version, stored, config):
    """The missing options that a run keeps, whatever their defaults are.

    Args:
        version: str or None, which started the run.
        stored: dict of `config.json`, which has them if a later one resumed it.
        config: the `Config` of the recipe now.
    """
    is_old = (version or "").startswith(("0.1.", "0.2."))
    return {
        name: value
        for name, value in missing_options(config).items()
        if is_old and stored.get(name, value) == value
    }


def renamed(config):
    """A dict of version 0.1 with the names that its keys have now."""
    config = {_RENAMED.get(key, key): value for key, value in config.items()}
    for name in ("train", "validation"):  # no files
        if config.get(name) in ([], ""):
            config[name] = None
    return config


def model_description(description):
    """`model.json` of version 0.1 as this version writes it."""
    removed = _REMOVED.get(description["class_name"], ())
    config = renamed(description["config"])
    config = {k: v for k, v in config.items() if k not in removed}
    return {**description, "config": config}


def task(config, documents):
    """What `task.json` says, which version 0.1 did not write.

    Args:
        config: dict of `config.json`.
        documents: dict of `documents.json`; None where texts are generated.
    """
    if documents is not None:
        documents = renamed(documents)
        labels = documents.pop("labels", [])
        preprocessor = {"class": "DocumentPreprocessor", **documents}
        return {"preprocessor": preprocessor, "labels": labels}
    search = {
        "class": "BeamSearch",
        "beam_size": config.get("beam_size", 4),
        "length_penalty": config.get("length_penalty", 1.0),
    }
    return {
        "preprocessor": {"class": "TextPreprocessor", "max_length": 512},
        "search": search,
        "max_length": 512,
    }
