"""The job specification: what a job file says, validated once at the boundary.

Each field says its unit and its kind (`manifests.settings`). Combinations that cannot work, or in
which a setting would have no effect, are refused here.
"""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from manifests.drafting import require_chain, require_fit, require_path
from manifests.job_decode import Decode, Drafter, Sampling, Seed, Target
from manifests.job_finish import OnFinish
from manifests.job_input import Input, Prompt, require_prompt_source
from manifests.job_running import Cluster, Retry, Shards, Storage
from manifests.settings import Group, operational, semantic

WorkKind = Literal["generate", "collect", "null"]


class Output(Group):
    """Where results go and what they carry."""

    uri: str = operational(..., "the job's directory, or s3://bucket/prefix")
    trace: Literal["none", "tokens", "commits"] = semantic(
        "none", "per-token columns: commit step, log-probability, confidence"
    )
    carry: Literal["all", "none"] | tuple[str, ...] = semantic(
        "all",
        "input columns carried into the output: `all` that are not used otherwise, `none`, or a "
        "list of names",
    )
    postprocess: Annotated[str, Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")] | None = semantic(
        None,
        "`package.module:function`, called on every sample: returns the text to keep, or nothing "
        "to filter the sample out (an error row of class Filtered)",
    )


class Stats(Group):
    """What is measured about outputs."""

    scorer: str | None = operational(
        None, "`package.module:function` that scores a committed row in a child process"
    )
    replay_share: float = Field(
        0.01,
        ge=0.0,
        le=1.0,
        description="share of samples decoded again alone, to measure how often company changes "
        "tokens where decode.numerics is fast",
        json_schema_extra={"kind": "operational"},
    )


class JobSpec(Group):
    """A whole job file."""

    work: WorkKind = semantic(
        "generate",
        "`generate` decodes rows; `collect` decodes them without drafts and keeps trajectories to "
        "train drafters on; `null` makes empty texts without a model, to rehearse a job",
    )
    input: Input
    prompt: Prompt = Prompt()
    target: Target
    drafter: Drafter = Drafter()
    decode: Decode = Decode()
    sampling: Sampling = Sampling()
    seed: Seed = Seed()
    output: Output
    shards: Shards = Shards()
    cluster: Cluster = Cluster()
    storage: Storage = Storage()
    retry: Retry = Retry()
    stats: Stats = Stats()
    on_finish: OnFinish = OnFinish()

    @property
    def drafts(self) -> bool:
        """Whether anything is drafted."""
        named = self.drafter.method is not None or self.drafter.path is not None
        return named and self.decode.draft_budget != 0 and self.work == "generate"

    @model_validator(mode="after")
    def _input_supported(self) -> "JobSpec":
        require_prompt_source(self.input, self.prompt)
        verifier = self.decode.verifier
        if self.input.columns.temperature is not None and verifier in ("greedy", "rejection"):
            raise ValueError(
                f"input.columns.temperature: decode.verifier {verifier} takes one temperature for "
                "the whole job; use coupled, or remove the column"
            )
        return self

    @model_validator(mode="after")
    def _devices_reserved(self) -> "JobSpec":
        cluster, gpus = self.cluster, self.cluster.gpus_per_worker
        shared = cluster.tensor_parallel > 1
        if self.target.device == "cuda" and (
            gpus == 0.0 or (shared and gpus < cluster.tensor_parallel)
        ):
            raise ValueError(
                "target.device cuda needs GPUs that Ray reserves: set cluster.gpus_per_worker"
                + (f" to {cluster.tensor_parallel}, one for each process" if shared else "")
            )
        return self

    @model_validator(mode="after")
    def _postprocess_supported(self) -> "JobSpec":
        if self.output.postprocess is not None and self.work != "generate":
            raise ValueError(
                f"output.postprocess has no text to work on with work: {self.work}; remove it"
            )
        return self

    @model_validator(mode="after")
    def _drafting_supported(self) -> "JobSpec":
        drafter, decode = self.drafter, self.decode
        require_chain(drafter.method, verifier=decode.verifier)
        if drafter.method is not None:
            require_path(drafter.method, drafter.path)
            require_fit(drafter.method, rule=decode.drafts_as, gamma=decode.gamma)
        cause = decode.lets_drafts_matter
        if cause is not None and self.drafts and decode.draft_budget == "auto":
            raise ValueError(
                f"decode.draft_budget auto depends on the machine, and with {cause} drafts can "
                "change outputs; set a number"
            )
        return self
