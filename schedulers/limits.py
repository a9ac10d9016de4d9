"""How much trouble a run bears. Everything is a setting; the defaults are those of a job file."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of one run; times are in seconds."""

    attempts: int = 3
    """Failures of a shard that may be its own fault."""
    infrastructure_attempts: int = 32
    """Failures of a shard that are not: a wider budget of its own."""
    capacity: int = 2
    """Shards that one worker holds."""
    start_timeout_s: float = 600.0
    """How long a run goes on while no worker at all has a place."""
    place_patience_s: float = 60.0
    """How long a shard that would only wait is kept back for a worker without a place."""
    starting_s: float = 1800.0
    """From a worker's having a place to its being ready: imports, weights, probes."""
    lease_s: float = 30.0
    """How long a worker may be silent before its shards are given to others."""
    decoding_s: float = 120.0
    """How long an attempt may decode without a round."""
    publishing_s: float = 600.0
    """How long reading a shard's rows, and publishing its samples, may take."""
    drain_s: float = 300.0
    """How long a drain waits for what runs."""
    drain_margin_s: float = 10.0
    """How long before its node goes an attempt must be able to end."""
    rest_s: float = 1.0
    """The first rest after a storage fault; each further one is twice as long."""
    max_rest_s: float = 60.0
    max_error_fraction: float = 0.05
    """Share of error samples above which a run stops."""
    judged_from_samples: int = 200
    """Fewer samples than this say nothing about that share."""
    deaths_together: int = 2
    """Deaths under a shard's rows after which they run one at a time."""
    deaths_alone: int = 2
    """Deaths under one announced row after which it is convicted."""
    sick_after: int = 3
    """Failures in a row, of different shards, after which a worker gets no more."""
    straggler_factor: float = 1.5
    """A shard is duplicated if it needs more than this times what a fresh attempt needs ..."""
    straggler_gain_s: float = 5.0
    """... and this much more."""
