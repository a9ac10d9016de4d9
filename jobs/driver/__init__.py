"""The driver: runs a planned job on Ray actors until it is sealed, drained or out of budget.

Ray is an unreliable messenger here: it retries nothing, every wait is bounded, its results are
small and are believed only after storage was read.
"""

from jobs.driver.result import RunResult
from jobs.driver.run import run_job

__all__ = ["RunResult", "run_job"]
