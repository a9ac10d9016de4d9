"""All families, found by the architecture that a checkpoint names.

`model_type` values are shared by different architectures, so they never decide.
"""

from pathlib import Path
from typing import Any

from spot.targets.dream import DREAM
from spot.targets.family import Family, TargetError
from spot.targets.llada import LLADA
from spot.targets.llada2 import LLADA2
from spot.targets.sdar import SDAR

FAMILIES = (SDAR, LLADA2, LLADA, DREAM)


def family_of(config: dict[str, Any], *, path: Path) -> Family:
    """The family of a configuration.

    Raises:
        TargetError: it names no supported architecture, or a model type of another one.
    """
    said = config.get("architectures")
    family = next((f for f in FAMILIES if said == [f.architecture]), None)
    if family is None:
        names = ", ".join(f.architecture for f in FAMILIES)
        raise TargetError(
            f"{path} names architectures {said}{_namesake(config)}: use one of {names}"
        )
    if config.get("model_type", family.model_types[0]) not in family.model_types:
        raise TargetError(
            f"{path} says model_type {config.get('model_type')!r} but {family.architecture}'s is "
            f"{' or '.join(map(repr, family.model_types))}: the file belongs to another model"
        )
    return family


def _namesake(config: dict[str, Any]) -> str:
    """What to say about an unknown architecture that carries a known model type."""
    kind = config.get("model_type")
    family = next((f for f in FAMILIES if kind in f.model_types), None)
    if family is None:
        return ""
    return f", which are not {family.architecture} although model_type is {kind!r} as well"
