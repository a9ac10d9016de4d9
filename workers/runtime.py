"""A worker's loaded parts: target, tokenizer, drafter and engine, made from a job specification."""

from collections.abc import Callable, Sequence

from manifests.canvas import require_context
from manifests.job import JobSpec
from manifests.job_decode import Decode
from manifests.staged import StagedRow
from spot.drafters.base import Drafter
from spot.drafters.registry import make_drafter
from spot.limits import Limits
from spot.numerics import set_threads
from spot.targets.loading import Options
from spot.targets.paged import PagedTarget
from spot.targets.parallel.target import start_target
from spot.targets.registry import load_target
from spot.transition import Rule
from workers.budget import BudgetPolicy, FixedBudget
from workers.canvas_engine import CanvasEngine, CanvasSettings
from workers.canvas_probe import probe_canvas_invariance
from workers.divergence import ReplayingEngine, draft_free
from workers.engine import Engine, EngineSettings, Observer
from workers.probe import probe_invariance
from workers.profiling import profile, profile_canvas
from workers.references import AnyTarget, Decoder, reference_decoder
from workers.samples import FinishReason, SampleRequest, SampleResult
from workers.tokenization import Tokenization
from workers.walking import rule_for
from workers.work import Engine as AnyEngine

CACHE_BYTES = 256 * 2**20  # prefix pages beyond what the batch itself needs


def rule_of(decode: Decode, *, temperature: float | None = None) -> Rule:
    """The transition rule of a job, or of a row with its own temperature."""
    return Rule(
        name=decode.rule,
        tau=decode.tau,
        denoising_steps=decode.denoising_steps,
        entropy_bound=decode.entropy_bound,
        temperature=decode.temperature if temperature is None else temperature,
        top_k=decode.top_k,
        top_p=decode.top_p,
        confidence_penalty=decode.confidence_penalty,
        penalized_ids=decode.penalized_token_ids,
    )


def limits_of(
    decode: Decode, *, prompt_tokens: int, max_tokens: int, stop_ids: Sequence[int]
) -> Limits:
    """Where a sample ends; ``stop_ids`` are the target's own."""
    stops = frozenset() if decode.ignore_eos else frozenset([*stop_ids, *decode.stop_token_ids])
    return Limits(
        prompt_tokens=prompt_tokens,
        max_tokens=max_tokens,
        min_tokens=decode.min_tokens,
        stop_ids=stops,
    )


class Runtime:
    """Everything that decodes rows; one per worker process."""

    def __init__(
        self,
        *,
        job: JobSpec,
        target: AnyTarget,
        drafter: Drafter | None,
        tokenization: Tokenization,
        engine: AnyEngine,
    ) -> None:
        self._stop, self.dtype = job.decode.stop, str(job.target.dtype)
        self.target, self.drafter, self.engine = target, drafter, engine
        self._tokenization = tokenization

    def encode(self, row: StagedRow) -> tuple[int, ...]:
        """A row's prompt ids; ``RowError`` if it cannot be decoded."""
        return self._tokenization.encode(row)

    def decode(self, token_ids: Sequence[int]) -> str:
        """Ids to text."""
        return self._tokenization.decode(tuple(token_ids))

    def finish(self, result: SampleResult) -> tuple[str, tuple[int, ...], FinishReason]:
        """Text, token ids and finish reason after stop strings."""
        cut = self._tokenization.cut(result.token_ids, self._stop)
        if cut is None:
            return self.decode(result.token_ids), result.token_ids, result.finish_reason
        text, num_tokens = cut
        return text, result.token_ids[:num_tokens], "stop"


def load_parts(job: JobSpec) -> tuple[AnyTarget, Tokenization]:
    """Target and tokenization; threads are set first, since they belong to the numerics.

    Raises:
        ValueError: the job's `decode.cache_context` or token ids do not fit the target.
    """
    set_threads(job.cluster.threads)
    target = _load_target(job)
    require_context(
        job.decode.cache_context,
        target=job.target.path,
        family=target.spec.family,
        exact_prefix=target.spec.exact_prefix,
    )
    _ban(target, job.decode)
    if job.decode.numerics == "invariant":
        _probe(target)
    tokenization = Tokenization(
        target.tokenizer,
        max_positions=target.spec.max_positions,
        max_tokens=job.decode.max_tokens,
        length=target.spec.block_length,
        grid=target.spec.grid,
        prompt=job.prompt,
    )
    return target, tokenization


def _ban(target: AnyTarget, decode: Decode) -> None:
    """Ban the job's own ids too."""
    rows = target.spec.vocab_rows
    named = (*decode.banned_token_ids, *decode.penalized_token_ids)
    unknown = [number for number in named if not 0 <= number < rows]
    if unknown:
        raise ValueError(
            f"decode names the token id {unknown[0]}, but the target's ids go from 0 to {rows - 1}"
        )
    target.banned[list(decode.banned_token_ids)] = True
    if bool(target.banned.all()):
        raise ValueError("decode.banned_token_ids leaves no token that could be output")


def _load_target(job: JobSpec) -> AnyTarget:
    options: Options = {
        "block_length": job.target.block_length,
        "numerics": job.decode.numerics,
        "dtype": job.target.dtype,
        "device": job.target.device,
    }
    size, threads = job.cluster.tensor_parallel, job.cluster.threads
    if size > 1:
        return start_target(job.target.path, size=size, threads=threads, **options)
    return load_target(job.target.path, **options)


def _probe(target: AnyTarget) -> None:
    if isinstance(target, PagedTarget):
        probe_invariance(target)
    else:
        probe_canvas_invariance(target)


def load_runtime(job: JobSpec, *, observer: Observer | None = None) -> Runtime:
    """Load everything that a job names."""
    target, tokenization = load_parts(job)
    drafter = drafter_of(job, mask_id=target.spec.mask_id) if job.drafts else None
    budget = _budget(job, target, drafter)
    engine = make_engine(job, target, drafter=drafter, budget=budget, observer=observer)
    return Runtime(
        job=job,
        target=target,
        drafter=drafter,
        tokenization=tokenization,
        engine=_measured(engine, job, target),
    )


def _measured(engine: AnyEngine, job: JobSpec, target: AnyTarget) -> AnyEngine:
    """The engine; where nothing is promised about company, one that measures what it does."""
    share = job.stats.replay_share
    if job.decode.numerics == "invariant" or job.work != "generate" or share == 0.0:
        return engine
    rule = rule_of(job.decode)

    def decoder(request: SampleRequest) -> Decoder:
        return reference_decoder(target, job.decode, rule=rule_for(rule, request))

    return ReplayingEngine(
        engine, replay=draft_free(decoder, sample_limits(job, target)), share=share
    )


def sample_limits(job: JobSpec, target: AnyTarget) -> Callable[[SampleRequest], Limits]:
    """Where each sample of a job ends."""

    def limits(request: SampleRequest) -> Limits:
        return limits_of(
            job.decode,
            prompt_tokens=len(request.prompt_ids),
            max_tokens=request.max_tokens,
            stop_ids=target.spec.stop_ids,
        )

    return limits


def drafter_of(job: JobSpec, *, mask_id: int) -> Drafter:
    """The drafter of a job that drafts.

    Only the coupled verifier gains by token hypotheses that share the target's noise; greedy match
    looks for best tokens.
    """
    decode = job.decode
    return make_drafter(
        job.drafter.method,
        job.drafter.path,
        rule=rule_of(decode),
        mask_id=mask_id,
        gamma=decode.gamma,
        coupled=decode.verifier == "coupled",
        sampled=decode.verifier == "rejection",
    )


def make_engine(
    job: JobSpec,
    target: AnyTarget,
    *,
    drafter: Drafter | None,
    budget: BudgetPolicy,
    observer: Observer | None = None,
) -> AnyEngine:
    """An engine for a loaded target under a job's settings."""
    if isinstance(target, PagedTarget):
        return _paged_engine(job, target, drafter=drafter, budget=budget, observer=observer)
    assert job.decode.cache_context is not None, "a target without exact pages has a context"
    settings = CanvasSettings(
        rule=rule_of(job.decode),
        context=job.decode.cache_context,
        batch=job.cluster.batch,
        traced=job.output.trace != "none",
        verifier=job.decode.verifier,
    )
    return CanvasEngine(
        target,
        settings=settings,
        limits=sample_limits(job, target),
        drafter=drafter,
        budget=budget,
        observer=observer,
    )


def _paged_engine(
    job: JobSpec,
    target: PagedTarget,
    *,
    drafter: Drafter | None,
    budget: BudgetPolicy,
    observer: Observer | None,
) -> Engine:
    settings = EngineSettings(
        rule=rule_of(job.decode),
        batch=job.cluster.batch,
        num_pages=_num_pages(job, target),
        traced=job.output.trace != "none",
        verifier=job.decode.verifier,
        full_drafts=job.decode.full_drafts,
        fused_store=job.decode.fused_store,
        padded=job.decode.padded,
    )
    return Engine(
        target,
        settings=settings,
        limits=sample_limits(job, target),
        drafter=drafter,
        budget=budget,
        observer=observer,
    )


def _num_pages(job: JobSpec, target: PagedTarget) -> int:
    """Room for a full batch of longest samples, and for shared prefixes beside it."""
    one = target.new_pages(1)
    page_bytes = sum(2 * k.numel() * k.element_size() for k in one.keys)
    longest = -(-target.spec.max_positions // target.spec.block_length)
    typical = -(-2 * job.decode.max_tokens // target.spec.block_length) + 1
    return max(longest, job.cluster.batch * typical) + CACHE_BYTES // page_bytes


def _budget(job: JobSpec, target: AnyTarget, drafter: Drafter | None) -> BudgetPolicy:
    if job.decode.draft_budget != "auto":
        return FixedBudget(job.decode.draft_budget)
    if drafter is None:
        return FixedBudget(0)
    if isinstance(target, PagedTarget):
        return profile(target, drafter)
    return profile_canvas(target, drafter)
