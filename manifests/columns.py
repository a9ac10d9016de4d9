"""The columns of the output, their order, types and nullability: a public format.

Rows are in input order inside a shard, samples ascending. Every staged row has `sampling.n` output
rows; an error row has `error_class` set, zero counts, and nulls for text, token ids, trace lists
and trajectory.
"""

from typing import Literal

import pyarrow as pa

from manifests.hashing import canonical_json, sha256_hex
from manifests.job import WorkKind

Trace = Literal["none", "tokens", "commits"]

# Keys of the Parquet file metadata.
METADATA_JOB = "spotbatch.job"
METADATA_SHARD = "spotbatch.shard"
METADATA_ATTEMPT = "spotbatch.attempt"
METADATA_REVISION = "spotbatch.revision"
METADATA_PLAN_SHA256 = "spotbatch.plan_sha256"
METADATA_VERSIONS = "spotbatch.versions"  # JSON
METADATA_RULE = "spotbatch.rule"  # JSON of the decode settings, of rows that the attempt decoded
METADATA_CONFIDENCE = "spotbatch.confidence"  # what the rule calls confidence
METADATA_DISTRIBUTION_PRESERVING = "spotbatch.distribution_preserving"  # "true: <reason>"

_INT32_LIST = pa.list_(pa.field("element", pa.int32(), nullable=False))
_FLOAT_LIST = pa.list_(pa.field("element", pa.float32(), nullable=False))

_FIELDS = [
    pa.field("id", pa.large_string(), nullable=False),
    pa.field("sample", pa.int32(), nullable=False),
    pa.field("text", pa.large_string()),
    pa.field("token_ids", _INT32_LIST),  # cut at the stop, stop id excluded
    pa.field("finish_reason", pa.string()),  # "stop" | "length"
    pa.field("tokens", pa.int32(), nullable=False),  # length of token_ids
    pa.field("tokens_with_stop", pa.int32(), nullable=False),
    pa.field("prompt_tokens", pa.int32(), nullable=False),  # chat template included
    pa.field("nfe", pa.int32(), nullable=False),  # denoise forwards: the headline
    pa.field("nfe_prefill", pa.int32(), nullable=False),
    pa.field("nfe_store", pa.int32(), nullable=False),
    pa.field("transitions", pa.int32(), nullable=False),  # the draft-free count of forwards
    pa.field("rounds", pa.int32(), nullable=False),
    pa.field("drafted", pa.int32(), nullable=False),
    pa.field("accepted", pa.int32(), nullable=False),
    pa.field("positions", pa.int64(), nullable=False),
    pa.field("wall_s", pa.float64(), nullable=False),  # from admission to finish
    pa.field("queue_s", pa.float64(), nullable=False),  # before admission
    pa.field("shard", pa.int32(), nullable=False),
    pa.field("row", pa.int32(), nullable=False),  # index in the planned shard
    pa.field("attempt", pa.string(), nullable=False),
    pa.field("seed", pa.uint64(), nullable=False),  # the sample key
    pa.field("error_class", pa.string()),
    pa.field("error_message", pa.string()),
    pa.field("carried", pa.large_string()),  # JSON object
]

# Aligned with token_ids, in the order of positions.
_TOKEN_TRACE_FIELDS = [
    pa.field("commit_step", _INT32_LIST),
    pa.field("log_probability", _FLOAT_LIST),
    pa.field("confidence", _FLOAT_LIST),
]

# The whole trajectory in commit order, absolute positions, commits after the stop included.
_COMMIT_TRACE_FIELDS = [
    pa.field("commit_position", _INT32_LIST),
    pa.field("commit_token", _INT32_LIST),
    pa.field("commit_transition", _INT32_LIST),  # from 0; the commits of one transition share it
]


# Of `work: collect`: a sample's way through its blocks, as raw little-endian arrays in C order. B
# decoded blocks, L block length, M visited states, K = 32 stale candidates.
_TRAJECTORY_FIELDS = [
    pa.field("trajectory_states", pa.int32()),  # M
    pa.field("trajectory_start", pa.large_binary()),  # int64 [B], absolute position of the block
    # int16 [B, L]: the block's transition that committed the position, from 0; -1 none, -2 prompt
    pa.field("trajectory_when", pa.large_binary()),
    pa.field("trajectory_block", pa.large_binary()),  # int32 [M], index into the B blocks
    pa.field("trajectory_step", pa.large_binary()),  # int32 [M], transitions made before the state
    # float16 [M, L, K] and [M, L], of the state itself; unspecified where nothing is masked
    pa.field("trajectory_log_probs", pa.large_binary()),
    pa.field("trajectory_doubts", pa.large_binary()),
]

TRAJECTORY_COLUMNS = tuple(field.name for field in _TRAJECTORY_FIELDS)


def output_schema(trace: Trace, *, work: WorkKind = "generate") -> pa.Schema:
    """The explicit schema of output files for a setting of `output.trace` and a kind of work."""
    fields = list(_FIELDS)
    if trace != "none":
        fields += _TOKEN_TRACE_FIELDS
    if trace == "commits":
        fields += _COMMIT_TRACE_FIELDS
    if work == "collect":
        fields += _TRAJECTORY_FIELDS
    return pa.schema(fields)


def schema_fingerprint(schema: pa.Schema) -> str:
    """SHA-256 over names, types and nullability, in order; file metadata does not count."""
    fields = [[field.name, str(field.type), field.nullable] for field in schema]
    return sha256_hex(canonical_json(fields))
