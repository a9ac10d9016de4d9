"""The scorer of the bundled tasks; a job names it as ``stats.scorer: examples.tiny.scoring:score``.

It may execute model output (family ``functions``), so it belongs into the limited child process in
which ``spotbatch stats`` runs every scorer.
"""

import json
from collections.abc import Mapping
from typing import Any

from examples.tiny.families import FAMILIES


def score(row: Mapping[str, Any]) -> dict[str, Any]:
    """Judge one committed row.

    Args:
        row: an output row; ``carried`` holds the input columns ``family`` and ``reference`` as a
            JSON object, ``text`` is null for an error row.

    Returns:
        Whether the text answers the prompt (an error row does not), and the task family.
    """
    carried = json.loads(row["carried"])
    family, text = carried["family"], row["text"]
    correct = text is not None and FAMILIES[family].check(carried["reference"], text)
    return {"correct": correct, "family": family}
