"""The job specification: what a job file says, validated once at the boundary.

Each field says its unit and its kind (`manifests.settings`). Combinations that cannot work, or in
which a setting would have no effect, are refused here.
"""

import re
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, field_validator, model_validator

from manifests.canvas import CacheContext, require_no_pages, without_pages
from manifests.drafting import Method, Verifier, require_chain, require_fit, require_path
from manifests.job_finish import OnFinish
from manifests.job_input import Input, Prompt, require_prompt_source
from manifests.rules import (
    RuleName,
    drafts_as,
    is_released,
    require_choice,
    require_constants,
    require_penalty,
)
from manifests.settings import Group, Positive, drafting, operational, semantic

WorkKind = Literal["generate", "collect", "null"]
Seconds = Annotated[float, Field(gt=0.0)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
_SECRET_NAME = re.compile(r"SECRET|TOKEN|PASSWORD|PASSWD|CREDENTIAL|ACCESS_KEY|API_KEY", re.I)
# Behind a validator that runs before a group's fields, lists of JSON are lists of Python, which
# strict tuples refuse.
AS_TUPLE = BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value)


class Target(Group):
    """The diffusion language model that defines the output."""

    path: str = semantic(..., "model directory (safetensors), local or s3://")
    block_length: Positive | None = semantic(
        None, "positions per block, where the checkpoint does not say (SDAR's Hub files do not)"
    )
    dtype: Literal["float32", "bfloat16", "float16", "float64"] = semantic(
        "float32", "what weights are kept and products computed in"
    )
    device: Literal["cpu", "cuda"] = operational(
        "cpu", "where products are computed; a job's workers must agree (numerics class)"
    )
    revision: str | None = semantic(
        None, "commit of the checkpoint's repository, where its directory does not say it itself"
    )


class Drafter(Group):
    """What proposes states; it can change an output under a lossy verifier only."""

    path: str | None = operational(
        None,
        "drafter directory, local or s3://; without it and without a method nothing is drafted",
    )
    method: Method | None = drafting(
        None, "how states are proposed; without it, what the drafter directory is made for"
    )


class Decode(Group):
    """How tokens are made."""

    rule: RuleName = semantic(
        "strict",
        "the target's transition: `strict` commits one position, `threshold` all above tau; the "
        "others are the samplers of released loops",
    )
    tau: float | None = semantic(
        None, "confidence (probability) that a position must exceed, of rules with a threshold"
    )
    denoising_steps: Positive | None = semantic(
        None, "transitions that fill a block, of released loops; without it one a position"
    )
    entropy_bound: float | None = semantic(
        None, "sum of entropies (nats) that the positions of a transition stay below"
    )
    confidence_penalty: float = Field(
        0.0,
        ge=0.0,
        le=1000.0,
        description="how much less sure (nats) a position whose best token is one of "
        "`penalized_token_ids` counts when positions are selected",
        json_schema_extra={"kind": "semantic"},
    )
    penalized_token_ids: Annotated[tuple[int, ...], AS_TUPLE] = semantic(
        (), "ids whose positions are selected later, such as stop ids of a target that ends early"
    )
    banned_token_ids: Annotated[tuple[int, ...], AS_TUPLE] = semantic(
        (), "ids that are never output, beside the mask and those that are no tokens"
    )
    verifier: Verifier = semantic(
        "coupled", "when a draft counts; `greedy` changes outputs, `rejection` keeps only their law"
    )
    temperature: float = Field(
        0.0,
        ge=0.0,
        description="sampling temperature; 0 takes the best token",
        json_schema_extra={"kind": "semantic"},
    )
    top_p: float = Field(
        1.0,
        gt=0.0,
        le=1.0,
        description="keep the shortest prefix of tokens with this mass",
        json_schema_extra={"kind": "semantic"},
    )
    top_k: int = Field(
        0,
        ge=0,
        description="keep this many best tokens; 0 keeps all",
        json_schema_extra={"kind": "semantic"},
    )
    max_tokens: Positive = semantic(256, "output budget of a sample (tokens)")
    min_tokens: int = Field(
        0,
        ge=0,
        description="stop ids do not count before this many output tokens",
        json_schema_extra={"kind": "semantic"},
    )
    stop: Annotated[tuple[str, ...], AS_TUPLE] = semantic(
        (), "stop strings; the text is cut before the first one"
    )
    stop_token_ids: Annotated[tuple[int, ...], AS_TUPLE] = semantic(
        (), "stop ids beside the target's own"
    )
    ignore_eos: bool = semantic(False, "decode all `max_tokens`, whatever is committed")
    draft_budget: Literal["auto"] | Annotated[int, Field(ge=0)] = drafting(
        "auto", "drafted states per sequence and round, or `auto`"
    )
    gamma: float = Field(
        0.0,
        ge=0.0,
        lt=1.0,
        description="mass floor of drafted states",
        json_schema_extra={"kind": "drafting"},
    )
    full_drafts: Literal["look_through", "reuse", "drop"] = drafting(
        "look_through",
        "drafted full blocks: open the next block behind them, reuse their cache entries, or none",
    )
    fused_store: bool = operational(
        True, "a finished block enters the cache in the forward that opens the next one"
    )
    padded: bool = operational(
        False, "every drafted forward is padded to 1 + budget states per sequence"
    )
    cache_context: CacheContext | None = semantic(
        None,
        "of targets that look both ways: what stays visible of the keys and values that are frozen "
        "when a block opens",
    )
    numerics: Literal["invariant", "fast"] = semantic(
        "invariant", "`invariant`: a state's logits do not depend on its company"
    )

    @model_validator(mode="before")
    @classmethod
    def _without_pages(cls, settings: Any) -> Any:
        return _with_tuples(without_pages(settings))

    @model_validator(mode="after")
    def _supported(self) -> "Decode":
        self._check_rule()
        self._check_verifier()
        if self.min_tokens > self.max_tokens:
            raise ValueError("decode.min_tokens is larger than decode.max_tokens")
        if self.temperature == 0.0 and (self.top_p < 1.0 or self.top_k > 0):
            raise ValueError(
                "decode.top_p and decode.top_k have no effect at temperature 0; remove them"
            )
        require_no_pages(
            self.cache_context,
            full_drafts=self.full_drafts,
            fused_store=self.fused_store,
            padded=self.padded,
        )
        if self.full_drafts == "look_through" and not self.fused_store:
            raise ValueError(
                "decode.full_drafts look_through needs decode.fused_store; set full_drafts to "
                "reuse or drop"
            )
        return self

    def _check_rule(self) -> None:
        require_constants(
            self.rule,
            tau=self.tau,
            denoising_steps=self.denoising_steps,
            entropy_bound=self.entropy_bound,
        )
        require_choice(self.rule, temperature=self.temperature, top_k=self.top_k)
        require_penalty(
            self.rule, penalty=self.confidence_penalty, token_ids=self.penalized_token_ids
        )

    def _check_verifier(self) -> None:
        if self.verifier == "greedy" and is_released(self.rule):
            raise ValueError(
                f"decode.verifier greedy is not defined for decode.rule {self.rule}; use coupled"
            )
        if self.verifier != "rejection":
            return
        if self.rule != "strict":
            raise ValueError(
                "decode.verifier rejection is defined for decode.rule strict only; use coupled"
            )
        if self.temperature == 0.0:
            raise ValueError(
                "decode.verifier rejection has nothing to draw at temperature 0; use coupled"
            )

    @property
    def drafts_as(self) -> RuleName:
        """The rule that drafters draft for."""
        return drafts_as(
            self.rule, temperature=self.temperature, denoising_steps=self.denoising_steps
        )

    @property
    def lets_drafts_matter(self) -> str | None:
        """The setting through which drafts can change outputs, if there is one."""
        if self.verifier in ("greedy", "rejection"):
            return f"decode.verifier {self.verifier}"
        return "decode.numerics fast" if self.numerics == "fast" else None


def _with_tuples(settings: Any) -> Any:
    """Arrays as tuples: strict mode takes no list for one behind a validator of the whole group."""
    if not isinstance(settings, dict):
        return settings
    return {k: tuple(v) if isinstance(v, list) else v for k, v in settings.items()}


class Sampling(Group):
    """How often each prompt is decoded."""

    n: Positive = semantic(1, "samples per row")


class Seed(Group):
    """Where noise comes from."""

    value: int = Field(
        0,
        ge=0,
        lt=2**63,
        description="the job's seed",
        json_schema_extra={"kind": "semantic"},
    )
    scope: Literal["shard", "row"] = semantic(
        "shard", "`row` makes samples independent of the sharding"
    )


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


class Shards(Group):
    """How rows are cut."""

    rows: Positive = semantic(64, "rows per shard")


class Cluster(Group):
    """Where the job runs."""

    address: str | None = operational(
        None, "address of a Ray cluster; without it a local one is started"
    )
    workers: Positive = operational(1, "actors, each with one target")
    # Sequences of a forward share what may be drafted in it.
    batch: Positive = drafting(8, "sequences decoded together by one worker")
    threads: Positive = operational(1, "CPU threads per worker")
    tensor_parallel: Positive = operational(
        1,
        "processes (GPUs) on one machine that share a worker's target; a job's workers must agree "
        "(numerics class)",
    )
    max_gpu_hours: Annotated[float, Field(gt=0.0)] | None = operational(
        None,
        "GPU hours of all runs of the job together, after which a run drains; raise it to go on; a "
        "worker without a GPU counts as one",
    )
    cpus_per_worker: Annotated[float, Field(gt=0.0)] | None = operational(
        None, "CPUs that Ray reserves for a worker (count); without it, its processes' `threads`"
    )
    gpus_per_worker: Annotated[float, Field(ge=0.0)] = operational(
        0.0, "GPUs that Ray reserves for a worker (count)"
    )
    env: dict[str, str] = operational({}, "environment variables of every worker; no credentials")
    py_modules: tuple[str, ...] = operational(
        (), "local directories or wheels that Ray ships to every worker"
    )
    start_timeout_s: Seconds = operational(
        600.0, "how long to wait while no worker at all has a place (seconds)"
    )

    @property
    def reserved_cpus(self) -> float:
        """CPUs that Ray reserves for a worker."""
        mine = self.threads * self.tensor_parallel
        return mine if self.cpus_per_worker is None else self.cpus_per_worker

    @field_validator("address")
    @classmethod
    def _address_is_no_client(cls, address: str | None) -> str | None:
        if address is not None and address.startswith("ray://"):
            raise ValueError(
                f"cluster.address {address}: a Ray client cannot drive a job, since its actors die "
                "with the connection; run spotbatch on the head node with cluster.address: auto, "
                "or submit it as a Ray job"
            )
        return address

    @field_validator("env")
    @classmethod
    def _env_holds_no_secrets(cls, env: dict[str, str]) -> dict[str, str]:
        for name in env:
            if _SECRET_NAME.search(name):
                raise ValueError(
                    f"cluster.env {name}: the plan would store it in the open; give credentials to "
                    "the nodes themselves, by profile, role or their own environment"
                )
        return env


class Storage(Group):
    """How S3 is reached; credentials come from the environment, profile or role of each process."""

    endpoint: str | None = operational(
        None, "URL of an S3-compatible server; without it AWS, or AWS_ENDPOINT_URL of the process"
    )
    region: str | None = operational(
        None, "region of the buckets; without it what the process is configured with"
    )
    profile: str | None = operational(None, "named AWS profile that every process has")
    addressing: Literal["auto", "path", "virtual"] = operational(
        "auto", "where requests name the bucket: in the path, or in the host name"
    )
    checksums: Literal["when_supported", "when_required"] = operational(
        "when_supported", "`when_required` for servers that reject additional checksums"
    )
    connect_timeout_s: Seconds = operational(5.0, "until a connection stands (seconds)")
    read_timeout_s: Seconds = operational(30.0, "without a byte of the answer (seconds)")
    attempts: Positive = operational(6, "tries of one request, with growing pauses")
    part_mib: Annotated[int, Field(ge=5)] = operational(
        64, "size of the parts in which large files travel (MiB)"
    )
    cache_path: str | None = operational(
        None, "directory of each node for models from S3; without it the user's cache directory"
    )
    cache_gib: Annotated[float, Field(gt=0.0)] = operational(
        100.0, "size at which models that no process uses leave that directory (GiB)"
    )

    @field_validator("endpoint")
    @classmethod
    def _endpoint_is_plain(cls, endpoint: str | None) -> str | None:
        if endpoint is None:
            return None
        parts = urlsplit(endpoint)
        plain = not (parts.username or parts.password or parts.query or parts.fragment)
        if parts.scheme not in ("http", "https") or not parts.hostname or not plain:
            raise ValueError(
                "storage.endpoint must be http://host:port or https://host:port and nothing else; "
                "credentials come from the environment, profile or role of each process"
            )
        return endpoint


class Retry(Group):
    """What is tried again, and for how long anything is waited for."""

    attempts: Positive = operational(3, "attempts per shard before its failure is final")
    infrastructure_attempts: Positive = operational(
        32, "attempts per shard that may be lost to nodes, preemption and storage"
    )
    max_error_fraction: Share = operational(
        0.05, "share of error samples above which a run stops, judged from 200 samples on"
    )
    max_barren_drivers: Positive = operational(
        5, "drivers in a row that may die without one new commit record"
    )
    lease_s: Seconds = operational(
        30.0, "silence of a worker after which others get its shards (seconds)"
    )
    starting_s: Seconds = operational(
        1800.0, "from a worker's having a place to its being ready (seconds)"
    )
    decoding_s: Seconds = operational(120.0, "without a round of the engine (seconds)")
    publishing_s: Seconds = operational(
        600.0, "reading a shard's rows, or publishing its samples (seconds)"
    )
    drain_s: Seconds = operational(300.0, "how long a drain waits for what runs (seconds)")


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
