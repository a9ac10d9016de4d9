"""Decode one committed sample again with the draft-free reference decoder, which defines it."""

from manifests.job import JobSpec
from manifests.plan import Plan, ShardPlan, sample_key
from manifests.staged import StagedRow
from spot.rounds import Sample
from workers.references import reference_decoder
from workers.runtime import limits_of, load_parts, rule_of
from workers.samples import CommitTrace, FinishReason
from workers.sequence import commit_trace


class Replayer:
    """Holds a loaded target; replays samples of one job."""

    def __init__(self, plan: Plan, *, job: JobSpec | None = None) -> None:
        """Load the target of a plan; ``job`` may override operational settings (threads)."""
        self._plan = plan
        self._job = job or plan.job
        self._target, self._tokenization = load_parts(self._job)

    def replay(
        self, shard: ShardPlan, *, row_index: int, row: StagedRow, sample: int
    ) -> tuple[tuple[int, ...], FinishReason, CommitTrace]:
        """Token ids, finish reason and the whole trajectory of one sample."""
        prompt_ids = self._tokenization.encode(row)
        decode = self._job.decode
        limits = limits_of(
            decode,
            prompt_tokens=len(prompt_ids),
            max_tokens=row.max_tokens or decode.max_tokens,
            stop_ids=self._target.spec.stop_ids,
        )
        key = sample_key(self._plan, shard, row_index, row, sample)
        rule = rule_of(decode, temperature=row.temperature)
        decoder = reference_decoder(self._target, decode, rule=rule)
        decoded = decoder.decode(Sample(prompt_ids=prompt_ids, key=key, limits=limits))
        trace = commit_trace(decoded.trajectory)
        cut = self._tokenization.cut(decoded.token_ids, decode.stop)
        if cut is None:
            return decoded.token_ids, decoded.finish_reason, trace
        return decoded.token_ids[: cut[1]], "stop", trace
