from pathlib import Path

from benchmarks.traces import Trace, moves_of, read_traces, write_traces
from spot.trajectory import Commit

TRACE = Trace((5, 4, 7, 6), (50, 40, 70, 60), (0, 1, 1, 2))


def test_traces_are_read_as_written(tmp_path: Path) -> None:
    traces = [TRACE, Trace((), (), ())]
    write_traces(traces, tmp_path / "traces.json")
    assert read_traces(tmp_path / "traces.json") == traces


def test_commits_of_one_step_are_one_move() -> None:
    assert moves_of(TRACE) == [
        (Commit(5, 50, 0.0, 0.0),),
        (Commit(4, 40, 0.0, 0.0), Commit(7, 70, 0.0, 0.0)),
        (Commit(6, 60, 0.0, 0.0),),
    ]
