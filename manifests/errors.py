"""Errors of the manifests package.

::

    ManifestError (ValueError)
    ├── JobFileError        the job file or a --set override is wrong
    ├── InputError          an input file or row cannot be used
    ├── FingerprintError    a run differs from the plan in fields that change the output
    ├── RevisionError       a retry asks for what no revision of the job can be
    ├── MissingError        a stored object is not there
    ├── DamagedError        a stored object fails its own checks; never treated as absent
    ├── StoreError (OSError) the store cannot be used: not reached, not allowed, not fit
    ├── AccessError         a worker cannot use the storage of the job
    ├── RefusedError        the object exists already (a write that lost)
    └── UnknownOutcomeError a write may or may not have taken effect; resolve it by reading
"""


class ManifestError(ValueError):
    """Base of all errors that a person can do something about."""


class JobFileError(ManifestError):
    """The job file or an override is wrong; the message names the field and the remedy."""


class InputError(ManifestError):
    """An input file or row cannot be used; the message names it."""


class FingerprintError(ManifestError):
    """The job was planned with other values of semantic fields; the message names them."""


class RevisionError(ManifestError):
    """No revision of the job can be what is asked for; the message says why and what to do."""


class MissingError(ManifestError, LookupError):
    """A stored object is not there; the message names its key."""


class DamagedError(ManifestError):
    """A stored object is there but fails its own checks; the message names its key."""


class StoreError(ManifestError, OSError):
    """The store cannot be used, for reasons outside the job; nothing was published."""


class AccessError(ManifestError):
    """A process cannot use the job's storage; the message names host, place and remedy."""


class RefusedError(ManifestError):
    """A create-if-absent write was refused: the object is there already."""


class UnknownOutcomeError(ManifestError):
    """A write may have taken effect; only reading tells."""
