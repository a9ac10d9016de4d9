"""Errors of the workers package.

::

    WorkerError (RuntimeError)
    ├── RowError          one row cannot be decoded; it becomes error rows and the shard goes on
    ├── EngineError       the engine raised; its shards fail and the worker must be replaced
    ├── AssemblyError     the samples of a shard are not exactly those that were asked for
    ├── OutputError       a written file does not read back as what was written
    ├── NumericsError     this device would compute other bits than the job's first worker
    ├── ModelFilesError   target or drafter files are missing, changed or find no room
    └── VersionError      packages or versions differ between the driver and a worker
"""

import traceback

from manifests.errors import ManifestError

MAX_MESSAGE_CHARACTERS = 500


class WorkerError(RuntimeError):
    """Base of everything that a worker reports."""


class RowError(WorkerError):
    """One row cannot be decoded; `error_class` and `message` go into its output rows."""

    def __init__(self, error_class: str, message: str) -> None:
        super().__init__(message)
        self.error_class = error_class
        self.message = message


class EngineError(WorkerError):
    """The engine raised; what it held cannot be trusted any more."""


class AssemblyError(WorkerError):
    """Samples of a shard are missing, repeated or foreign."""


class OutputError(WorkerError):
    """A written Parquet file does not read back as what was written."""


class NumericsError(WorkerError):
    """The device differs from the job's numerics class; the message names how."""


class ModelFilesError(WorkerError):
    """Files of target or drafter are not those planned; the message names them and the remedy."""


class VersionError(WorkerError):
    """Packages or versions differ between the driver and a worker; the message is one sentence."""


def describe(error: BaseException) -> str:
    """An error for logs and records: its type, and its words unless they may quote a user's text.

    Our own errors, the operating system's and torch's name files, fields and shapes. Others are
    told by the line of code that raised them.
    """
    name = type(error).__name__
    if isinstance(error, WorkerError | ManifestError | OSError | RuntimeError):
        return f"{name}: {error}"[:MAX_MESSAGE_CHARACTERS]
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    return f"{name}{place}"
