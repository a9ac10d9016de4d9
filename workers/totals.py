"""What an engine has spent since it was made: counts, and seconds in target, drafter and host."""

from dataclasses import dataclass

from workers.budget import Spent


@dataclass(slots=True, kw_only=True)
class Totals:
    """Sums over rounds; everything only grows."""

    forwards: int = 0
    positions: int = 0
    drafts: int = 0
    accepted: int = 0
    store_units: int = 0
    target_s: float = 0.0
    drafter_s: float = 0.0
    host_s: float = 0.0

    def add(self, spent: Spent, *, num_stores: int) -> None:
        """One more round."""
        self.forwards += 1
        self.positions += int(spent.size.positions)
        self.drafts += len(spent.masses)
        self.accepted += int(spent.accepted.sum())
        self.store_units += num_stores
        self.target_s += spent.target_s
        self.drafter_s += spent.drafter_s
        self.host_s += spent.host_s

    def counters(self) -> dict[str, int]:
        """All of them as whole numbers; seconds in microseconds."""
        return {
            "forwards": self.forwards,
            "positions": self.positions,
            "drafts": self.drafts,
            "accepted": self.accepted,
            "store_units": self.store_units,
            "target_us": round(1e6 * self.target_s),
            "drafter_us": round(1e6 * self.drafter_s),
            "host_us": round(1e6 * self.host_s),
        }
