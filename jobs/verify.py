"""`spotbatch verify`: is everything stored as promised, and do samples decode to the same tokens?

Structure is checked by `manifests.verification` on what is stored alone. A replay needs the target;
it is made only where the structure has no finding, since it trusts what it reads. With
`decode.numerics: fast` the job made no promise about tokens: differences are counted, not findings.
"""

from dataclasses import asdict, dataclass
from typing import Any

from jobs.errors import JobError
from jobs.reading import OpenJob, read_committed
from jobs.replaying import Replayer, ReplayerOf, Replays, replay_samples, require_draft_free
from manifests.errors import DamagedError
from manifests.job import JobSpec
from manifests.keys import plan_key
from manifests.open_revision import numbered_revision
from manifests.verification import Finding, verify_structure
from workers.errors import WorkerError
from workers.model_files import checked_models


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What was checked and what was found."""

    job: str | None
    """None where not even the plan can be read."""
    complete: bool
    shards: int
    shards_total: int
    samples: int
    findings: tuple[Finding, ...]
    replays: Replays | None
    promised: bool
    """Whether the job promised equal tokens (`decode.numerics: invariant`)."""

    @property
    def passed(self) -> bool:
        """Nothing stored is wrong, and no replay breaks a promise."""
        broken = self.promised and self.replays is not None and bool(self.replays.differences)
        return not self.findings and not broken

    def lines(self) -> list[str]:
        """What to print: every finding and difference, then one sentence."""
        differences = self.replays.differences if self.replays else ()
        return [
            *(f"finding: {finding.key}: {finding.problem}" for finding in self.findings),
            *(f"difference: {difference}" for difference in differences),
            self.summary(),
        ]

    def summary(self) -> str:
        """One sentence."""
        if self.findings:
            return f"{len(self.findings)} findings"
        text = f"{self.shards} of {self.shards_total} shards, {self.samples} samples: no finding"
        if self.replays is None:
            return text
        differ = len(self.replays.differences)
        text += f"; {self.replays.replayed} samples decoded again without drafts: {differ} differ"
        return text if self.promised else f"{text} (decode.numerics is fast: nothing was promised)"

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {**asdict(self), "passed": self.passed}


def without_plan(error: DamagedError) -> Verification:
    """The verification of a job whose plan is damaged: nothing else can be checked."""
    problem = str(error).removeprefix(f"{plan_key()}: ")
    return Verification(
        job=None,
        complete=False,
        shards=0,
        shards_total=0,
        samples=0,
        findings=(Finding(key=plan_key(), problem=problem),),
        replays=None,
        promised=False,
    )


def verify_job(
    job: OpenJob, *, replay: int = 0, seed: int = 0, replayer_of: ReplayerOf | None = None
) -> Verification:
    """Check `job`, and decode `replay` of its samples again; loads the target unless given
    what to replay with."""
    findings = tuple(verify_structure(job.store))
    replays = None
    if findings:
        committed = None
    else:
        committed = read_committed(job)
        if replay:
            require_draft_free(job.plan.job)
            replays = replay_samples(
                job, committed, count=replay, seed=seed, replayer_of=replayer_of or _replayers(job)
            )
    records = committed.records.values() if committed else ()
    return Verification(
        job=job.plan.job_id,
        complete=bool(committed and committed.complete),
        shards=len(records),
        shards_total=len(job.plan.shards),
        samples=sum(record.samples for record in records),
        findings=findings,
        replays=replays,
        promised=job.plan.job.decode.numerics == "invariant",
    )


def _replayers(job: OpenJob) -> ReplayerOf:
    """One decoder for all revisions that decode alike; the target is loaded once for each."""
    made: dict[str, Replayer] = {}

    def replayer_of(revision: int) -> Replayer:
        settings = numbered_revision(job.store, job.plan, revision).job(job.plan.job)
        name = settings.model_dump_json()
        if name not in made:
            made[name] = _load_replayer(job, settings)
        return made[name]

    return replayer_of


def _load_replayer(job: OpenJob, settings: JobSpec) -> Replayer:
    try:
        local = checked_models(settings, target=job.plan.target_files, drafter=())
        from workers.replay import Replayer as DraftFreeReplayer  # loads torch

        return DraftFreeReplayer(job.plan, job=local)
    except (ValueError, WorkerError) as error:
        raise JobError(f"the target cannot be loaded for a replay: {error}") from error
