"""A seal against the plan, its parent and the commit records of its revision."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from manifests.findings import differences
from manifests.keys import commit_key
from manifests.plan import Plan
from manifests.records import CommitRecord, Seal, SealedShard

_TOTALS = ("samples", "ok", "errors")


@dataclass(frozen=True, slots=True, kw_only=True)
class SealCheck:
    """What a seal has to fit."""

    plan: Plan
    plan_sha256: str
    revision: int
    shards: frozenset[int]
    """Those that the revision commits."""
    records: Mapping[int, CommitRecord]
    """Records of the revision that can be read."""
    is_there: frozenset[str]
    """Keys of all commit records."""
    parent: Seal | None
    parent_shards: Mapping[int, SealedShard]

    def problems(self, seal: Seal) -> Iterator[str]:
        """Everything that is wrong with a seal that can be read."""
        if seal.revision != self.revision:
            yield f"it is the seal of revision {seal.revision}"
        for shard in sorted(self.shards):
            if commit_key(shard, self.revision) not in self.is_there:
                yield f"the job is sealed, but shard {shard} has no commit record"
        if [sealed.shard for sealed in seal.shards] != [s.shard for s in self.plan.shards]:
            yield "its shards are not those of the plan"
            return
        for sealed in seal.shards:
            yield from self._shard_problems(sealed)
        yield from differences(seal, self._whole(seal))

    def _shard_problems(self, sealed: SealedShard) -> Iterator[str]:
        if sealed.shard in self.shards:
            expected = self._recorded(sealed.shard)
        else:
            expected = self._kept(sealed.shard)
        for problem in differences(sealed, expected):
            yield f"shard {sealed.shard}: {problem}"

    def _kept(self, shard: int) -> dict[str, object]:
        parent = self.parent_shards.get(shard)
        return {} if parent is None else parent.model_dump()

    def _recorded(self, shard: int) -> dict[str, object]:
        record = self.records.get(shard)
        if record is None:  # it is missing or damaged, which is a finding of its own
            return {}
        expected: dict[str, object] = {
            name: getattr(record, name) for name in ("data_key", "sha256", *_TOTALS)
        }
        return expected | {"record_key": commit_key(shard, record.revision)}

    def _whole(self, seal: Seal) -> dict[str, object]:
        whole: dict[str, object] = {
            "parent": self.revision - 1 if self.revision else None,
            "plan_sha256": self.plan_sha256,
            "rows": self.plan.rows,
        }
        for name in _TOTALS:
            whole[name] = sum(getattr(shard, name) for shard in seal.shards)
        if len(self.records) == len(self.shards):
            whole["sealed"] = self._last_moment()
        return whole

    def _last_moment(self) -> str:
        """The latest commit of what counts; a job without shards has only its plan's moment."""
        times = [record.committed for record in self.records.values()]
        if self.parent is not None:
            times.append(self.parent.sealed)
        return max(times, default=self.plan.created)
