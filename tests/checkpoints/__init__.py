"""Random checkpoints in the layouts that the families were released in.

``python -m tests.checkpoints DIR`` writes one of each family. Names, shapes, configuration keys and
file names are those of the released repositories, written down here independently of the adapters;
only sizes are small. With ``vocabulary="released"`` embeddings have all released rows and the
special tokens their released ids.
"""

from tests.checkpoints.specials import (
    FAMILY_NAMES,
    LENGTH,
    FamilyName,
    VocabularyName,
    specials_of,
)
from tests.checkpoints.writing import write_configuration, write_released

__all__ = [
    "FAMILY_NAMES",
    "LENGTH",
    "FamilyName",
    "VocabularyName",
    "specials_of",
    "write_configuration",
    "write_released",
]
