"""Which transformers class holds a checkpoint that reads images, sound, or characters without a head.

A checkpoint is of the class its config names in ``architectures``; an untrained one of images or sound whose config
names none classifies (our choice).
"""

from typing import Any

PERCEIVED = {
    "image": "MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING",
    "audio": "MODEL_FOR_AUDIO_CLASSIFICATION_MAPPING",
    "characters": "MODEL_MAPPING",
}
"""Task without a loss of text -> transformers' classes by config, with a head that classifies where there are any."""


def _named(config: Any) -> str:
    """The class that a config names first, empty where it names none."""
    return next(iter(getattr(config, "architectures", None) or ()), "")


def stored_class(config: Any) -> str:
    """Name of the class that the config of a stored checkpoint names; AutoModel where it names none that is known."""
    import transformers

    named = _named(config)
    return named if hasattr(transformers, named) else "AutoModel"


def drawn_class(task: str, config: Any) -> Any:
    """The class that a config names, else the one of the task; ValueError where transformers has none."""
    import transformers

    if named := _named(config):
        if not hasattr(transformers, named):
            raise ValueError(f"transformers has no class {named}")
        drawn = getattr(transformers, named)
        if not isinstance(config, getattr(drawn, "config_class", None) or ()):
            raise ValueError(f"architectures names {named}, which is no model of this type")
        return drawn
    known = getattr(transformers, PERCEIVED[task])
    if type(config) not in known:
        raise ValueError(f"transformers has no {task} classifier of this type")
    found = known[type(config)]
    return found[0] if isinstance(found, tuple) else found
