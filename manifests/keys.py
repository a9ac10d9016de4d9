"""Names of all objects of a job, relative to its directory.

Keys that come out of a stored document are checked before they are used, so that a manifest from
elsewhere can never reach outside the job.
"""

import re
import secrets

from manifests.errors import ManifestError

ATTEMPT_PATTERN = r"^[0-9a-f]{16}$"
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_DATA = re.compile(r"data/(\d{8})-[0-9a-f]{16}\.parquet")
_STAGED = re.compile(r"input/part-r(\d{4})-\d{8}-[0-9a-f]{16}\.parquet")
_ANNOUNCEMENT = re.compile(r"announced/(\d{8})-[0-9a-f]{16}-\d{8}\.json")
_CONTROL = re.compile(r"control/([^/]+)/[a-z]+\.json")
_MAX_KEY_CHARACTERS = 512
_MAX_INDEX = 10**8

ACCESS_PREFIX = "access/"
ANNOUNCED_PREFIX = "announced/"
COMMITS_PREFIX = "commits/"
DATA_PREFIX = "data/"
CONTROL_PREFIX = "control/"
FAILURES_PREFIX = "failures/"
INPUT_PREFIX = "input/"
LOGS_PREFIX = "logs/"
PRESENCE_PREFIX = "presence/"
REVISIONS_PREFIX = "revisions/"
SEALS_PREFIX = "seals/"


def check_key(key: str) -> str:
    """Return the key, or raise: only plain relative names, no `..`, no hidden or encoded parts."""
    plain = all(_PART.fullmatch(part) and ".." not in part for part in key.split("/"))
    if not plain or len(key) > _MAX_KEY_CHARACTERS:
        raise ManifestError(
            f"{key!r} is not a key of this job; keys are relative, of letters, digits, '.', '_' "
            "and '-', in parts divided by single '/'"
        )
    return key


def new_attempt_id() -> str:
    """A random attempt id; made in the process that executes the attempt, never passed to it."""
    return secrets.token_hex(8)


def shard_name(shard: int) -> str:
    """A shard's number as eight digits."""
    return _eight_digits(shard)


def plan_key() -> str:
    """The plan, created once."""
    return "plan.json"


def numerics_key() -> str:
    """The numerics class of the job, created by its first worker."""
    return "numerics.json"


def staged_key(revision: int, part: int, *, sha256: str) -> str:
    """One file of rows that a revision (0: the plan) brings; its name says its bytes."""
    digits = _checked_attempt(sha256[:16])
    return f"{INPUT_PREFIX}part-r{_four_digits(revision)}-{_eight_digits(part)}-{digits}.parquet"


def revision_of_staged(key: str) -> int | None:
    """The revision that a staged file was made for; None for any other key."""
    match = _STAGED.fullmatch(key)
    return None if match is None else int(match[1])


def data_key(shard: int, attempt: str) -> str:
    """Output of one attempt; no other attempt ever writes it."""
    return f"{DATA_PREFIX}{shard_name(shard)}-{_checked_attempt(attempt)}.parquet"


def shard_of_data(key: str) -> int | None:
    """The shard that a data key belongs to; None for any other key."""
    match = _DATA.fullmatch(key)
    return None if match is None else int(match[1])


def commit_prefix(revision: int = 0) -> str:
    """Where the commit records of a revision are."""
    return f"{COMMITS_PREFIX}r{_four_digits(revision)}/"


def commit_key(shard: int, revision: int = 0) -> str:
    """The one commit record of a shard in a revision."""
    return f"{commit_prefix(revision)}{shard_name(shard)}.json"


def seal_key(revision: int = 0) -> str:
    """The seal of a revision."""
    return f"{SEALS_PREFIX}{_four_digits(revision)}.json"


def revision_key(revision: int) -> str:
    """What a revision after the first run changes; there is none for revision 0."""
    return f"{REVISIONS_PREFIX}{_four_digits(revision)}.json"


def failure_key(shard: int, attempt: str) -> str:
    """What one failed attempt leaves behind."""
    return f"{FAILURES_PREFIX}{shard_name(shard)}-{_checked_attempt(attempt)}.json"


def log_key(shard: int, attempt: str) -> str:
    """The end of a failed attempt's log."""
    return f"{LOGS_PREFIX}{shard_name(shard)}-{_checked_attempt(attempt)}.log"


def announced_prefix(shard: int) -> str:
    """Where attempts at a shard announce rows that may end them."""
    return f"{ANNOUNCED_PREFIX}{shard_name(shard)}-"


def announcement_key(shard: int, attempt: str, row: int) -> str:
    """An attempt is about to decode this row of the shard, alone."""
    return f"{announced_prefix(shard)}{_checked_attempt(attempt)}-{_eight_digits(row)}.json"


def shard_of_announcement(key: str) -> int | None:
    """The shard that an announcement is about; None for any other key."""
    match = _ANNOUNCEMENT.fullmatch(key)
    return None if match is None else int(match[1])


def control_key(epoch: str, request: str) -> str:
    """What somebody asks of the driver that has this epoch."""
    return check_key(f"{CONTROL_PREFIX}{epoch}/{request}.json")


def epoch_of_control(key: str) -> str | None:
    """The driver that a request is for; None for any other key."""
    match = _CONTROL.fullmatch(key)
    return None if match is None else match[1]


def presence_key(epoch: str) -> str:
    """Progress of one driver; the only object that is overwritten, never used for truth."""
    return check_key(f"{PRESENCE_PREFIX}{epoch}.json")


def access_prefix(run: str) -> str:
    """Where the proofs of access of one run are."""
    return f"{ACCESS_PREFIX}{_checked_attempt(run)}/"


def access_nonce_key(run: str) -> str:
    """What the driver of a run leaves for its workers to read."""
    return f"{access_prefix(run)}nonce"


def access_proof_key(run: str, proof: str) -> str:
    """What one worker creates to prove that it can."""
    return f"{access_prefix(run)}{_checked_attempt(proof)}"


def _checked_attempt(attempt: str) -> str:
    if not re.fullmatch(ATTEMPT_PATTERN, attempt):
        raise ManifestError(f"{attempt!r} is not an attempt id; it has 16 lower-case hex digits")
    return attempt


def _eight_digits(index: int) -> str:
    if not 0 <= index < _MAX_INDEX:
        raise ManifestError(f"{index} is outside the 8 digits that a key has for it")
    return f"{index:08d}"


def _four_digits(revision: int) -> str:
    if not 0 <= revision < 10**4:
        raise ManifestError(f"revision {revision} is outside the 4 digits that a key has for it")
    return f"{revision:04d}"
