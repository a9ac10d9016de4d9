"""A worker that commits nothing; shipped to Ray's workers by value."""

from workers.actor import Heartbeat, Placement, StartOutcome, WorkerConfig
from workers.attempt import ShardOrder, ShardOutcome
from workers.environment import current_node, report_environment
from workers.stream import Totals


class NullWorker:
    """Answers as a worker does, at once."""

    def __init__(self, config: WorkerConfig) -> None:
        self._config = config

    def report(self) -> Placement:
        """Where it is."""
        return Placement(environment=report_environment(), node=current_node())

    def start(self) -> StartOutcome:
        """Nothing to load."""
        return StartOutcome()

    def run_shard(self, order: ShardOrder) -> ShardOutcome:
        """Done."""
        attempt = f"{order.shard:016x}"
        return ShardOutcome(shard=order.shard, attempt=attempt, status="committed")

    def heartbeat(self) -> Heartbeat:
        """Alive."""
        return Heartbeat(running=(), num_steps=0, totals=Totals())
