"""Descriptions of the models of a server."""

from google.protobuf import json_format


def status_object(versions):
    """The answer to a request for the status of a model, a dict.

    Args:
        versions: dict of number -> `VersionStatus`.
    """
    return {
        "model_version_status": [
            {
                "version": str(number),
                "state": status.state,
                "status": {
                    "error_code": status.error_code,
                    "error_message": status.error_message,
                },
            }
            for number, status in sorted(versions.items(), reverse=True)
        ]
    }


def metadata_object(servable):
    """The answer to a request for the metadata of a `Servable`, a dict."""
    signatures = {
        name: json_format.MessageToDict(
            definition,
            preserving_proto_field_name=True,
            always_print_fields_with_no_presence=True,
        )
        for name, definition in servable.signatures.items()
    }
    return {
        "model_spec": {
            "name": servable.name,
            "signature_name": "",
            "version": str(servable.version),
        },
        "metadata": {"signature_def": {"signature_def": signatures}},
    }


def readiness(models, problem):
    """Whether a server is ready, and why.

    Args:
        models: dict of name -> `Readiness`.
        problem: str, why the server is not ready whatever they are, or "".

    Returns:
        bool, and a str that does not describe the models, because anybody may
        ask.
    """
    polled = [model.seconds for model in models.values()]
    if problem:
        return False, problem
    if any(model.version is None for model in models.values()):
        return False, "a model has no version that answers"
    if None in polled:
        return False, "the folder of a model could not be read yet"
    seconds = max(polled, default=0.0)
    return (
        all(model.is_ready for model in models.values()),
        f"the last successful poll was {seconds:.1f} seconds ago",
    )
