"""Whether a job's samples follow the target's own distribution: derived from its settings alone.

The distribution is that of draft-free decoding under the job's rule and constants.
"""

from manifests.canvas import why_not_preserving
from manifests.job import JobSpec


def distribution_preserving(job: JobSpec) -> tuple[bool, str]:
    """Whether it is kept, and why."""
    decode = job.decode
    if job.work == "null":
        return False, "work is null, so no target was asked"
    if decode.cache_context is not None:
        return False, why_not_preserving(decode.cache_context)
    if decode.numerics == "fast":
        return False, "decode.numerics is fast, so company in a forward may change last bits"
    if decode.verifier == "rejection":
        return True, "rejection keeps the law, but samples are not identical to draft-free ones"
    if decode.verifier == "greedy" and decode.temperature > 0.0:
        return False, (
            "decode.verifier is greedy, so drafted best tokens count where the target would draw"
        )
    return True, "a drafted state counts only where the target's own transition leads to it"
