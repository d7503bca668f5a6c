"""What every block of the config shares: frozen, no unknown keys, each key described with its unit."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Slug = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9.-]+$")]
"""A name that may enter a path: letters, digits, dot and hyphen."""


class Block(BaseModel):
    """A block of the config."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def key(default: Any, description: str, *, unit: str = "", **limits: Any) -> Any:
    """A documented config key; pass ``...`` as the default of a required one."""
    if isinstance(default, list | dict):
        value = default
        return Field(default_factory=lambda: value, description=description, json_schema_extra={"unit": unit}, **limits)
    return Field(default, description=description, json_schema_extra={"unit": unit}, **limits)
