"""The groups of a job file that say how rows become samples: target, drafter, decode and noise."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from manifests.canvas import CacheContext, require_no_pages, without_pages
from manifests.drafting import Method, Verifier
from manifests.rules import (
    RuleName,
    drafts_as,
    is_released,
    require_choice,
    require_constants,
    require_penalty,
)
from manifests.settings import Group, Positive, drafting, operational, semantic

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
