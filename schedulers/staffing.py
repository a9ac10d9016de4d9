"""How many workers there are: asking for those that are missing, and when to stop asking.

As many as a run was given are started, and whoever is lost is replaced while work waits. Workers
that keep being lost before they took a shard are a fault of the place, not of a shard: after some
in a row none is asked for any more. A run is starved when no worker has had a place for too long.
"""

from schedulers.crew import Crew, Member
from schedulers.instructions import Instruction, Park, Release, StartWorker
from schedulers.limits import Limits
from schedulers.table import Table


class Staffing:
    """Decides about the number of workers, never about shards."""

    def __init__(self, table: Table, crew: Crew, *, num_workers: int, limits: Limits) -> None:
        self._table = table
        self._crew = crew
        self._num_workers = num_workers
        self._limits = limits
        self._without_place_since: float | None = None
        self.num_barren_losses = 0
        """Workers lost before they took a shard, in a row."""

    @property
    def is_hopeless(self) -> bool:
        """Whether to ask for no more."""
        return self.num_barren_losses >= self._limits.attempts * self._num_workers

    def staff(self, now: float) -> list[Instruction]:
        """Ask for the workers that are missing, as far as there is work for them."""
        coming = self._crew.num_coming
        missing = self._num_workers - self._crew.num_usable - coming
        num_asked = min(missing, self._table.num_waiting - coming)
        if self.is_hopeless:
            return []
        return [StartWorker(worker=self._crew.ask(now=now).name) for _ in range(num_asked)]

    def lost(self, member: Member, *, is_excused: bool) -> None:
        """A worker is gone; excused, if it was asked to go."""
        if not member.has_held and not is_excused:
            self.num_barren_losses += 1

    def worked(self) -> None:
        """An attempt came to an end, so workers can work here."""
        self.num_barren_losses = 0

    def park(self, member: Member, *, now: float) -> list[Instruction]:
        """A worker at which everything fails, while others work, gets no more."""
        failed = member.failed_in_a_row
        is_sick = len(failed) >= self._limits.sick_after and len(set(failed)) > 1
        if not (is_sick and member.is_usable and self._crew.num_usable > 1):
            return []
        self._crew.change(member, state="parked", now=now)
        reason = f"{len(failed)} attempts in a row failed on it"
        return [Park(worker=member.name, reason=reason)]

    def unpark(self) -> list[Instruction]:
        """When nobody is left to work, places that are kept are in the way of those asked for."""
        if self._crew.num_placed:
            return []
        parked = [member for member in self._crew if member.state == "parked" and not member.leases]
        for member in parked:
            self._crew.forget(member)
        return [Release(worker=member.name) for member in parked]

    def is_starved(self, now: float) -> bool:
        """Whether no worker has had a place for too long."""
        if self._crew.num_placed:
            self._without_place_since = None
            return False
        if self._without_place_since is None:
            self._without_place_since = now
        return now - self._without_place_since >= self._limits.start_timeout_s
