"""Forwards of every setting: rows measured by several processes, draft-free controls first."""

import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.decode import decode
from benchmarks.document import Row
from benchmarks.recipes import drafter_of, gamma_of, resolved
from benchmarks.settings import DRAFT_FREE, Setting
from benchmarks.traces import Trace, moves_of, read_traces, trace_of, write_traces
from benchmarks.workload import Workload, load
from workers.samples import SampleResult

Progress = Callable[[str], None]


def measure_all(
    settings: Sequence[Setting], workload: Workload, *, processes: int, progress: Progress
) -> list[Row]:
    """One row for each setting, in order.

    Args:
        settings: what to measure; each one's draft-free control is among them.
        workload: models and prompts.
        processes: how many measure at the same time, one thread each.
        progress: told of every finished row.
    """
    rows: dict[int, Row] = {}
    with TemporaryDirectory() as folder, _pool(processes) as pool:
        for stage in stages(settings):
            running = {
                pool.submit(measure, settings[i], workload, controls=Path(folder)): i for i in stage
            }
            for index, row, said in _finished(running):
                rows[index] = row
                progress(f"{len(rows)}/{len(settings)} {settings[index]}: {said}")
    return [rows[index] for index in range(len(settings))]


@contextmanager
def _pool(processes: int) -> Iterator[ProcessPoolExecutor]:
    """Fresh processes; after an error nothing that waits is begun."""
    spawn = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(processes, mp_context=spawn)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def stages(settings: Sequence[Setting]) -> list[list[int]]:
    """Indices of the controls, then of all others; the heaviest first."""
    order = sorted(range(len(settings)), key=lambda i: -settings[i].weight)
    controls = [i for i in order if settings[i].method == DRAFT_FREE]
    return [controls, [i for i in order if settings[i].method != DRAFT_FREE]]


def _finished(running: dict[Future[tuple[Row, float]], int]) -> Iterator[tuple[int, Row, str]]:
    for future in as_completed(running):
        row, seconds = future.result()
        same = "identical" if row.identical else "DIFFERENT"
        said = f"{row.nfe:.1f} forwards, {row.reduction:.2f}x fewer, {same}, {seconds:.1f} s"
        yield running[future], row, said


def measure(setting: Setting, workload: Workload, *, controls: Path) -> tuple[Row, float]:
    """Measure one setting in this process; returns its row and the seconds that it took.

    Args:
        setting: what to measure.
        workload: models and prompts.
        controls: directory of draft-free trajectories; a draft-free setting writes its own.
    """
    began = time.perf_counter()
    setting, loaded = resolved(setting, workload), load(workload)
    path = controls / f"{setting.control}.json"
    control = [] if setting.method == DRAFT_FREE else read_traces(path)
    drafter = drafter_of(
        setting,
        workload,
        mask_id=loaded.target.spec.mask_id,
        moves={r.key: moves_of(t) for r, t in zip(loaded.requests, control, strict=False)},
    )
    results = decode(loaded, setting, drafter=drafter, num_samples=setting.samples)
    traces = [trace_of(result) for result in results]
    if setting.method == DRAFT_FREE:
        write_traces(traces, path)
        control = traces
    row = row_of(setting, results, traces, control=control, gamma=gamma_of(setting, workload))
    return row, time.perf_counter() - began


def row_of(
    setting: Setting,
    results: list[SampleResult],
    traces: list[Trace],
    *,
    control: list[Trace],
    gamma: float,
) -> Row:
    """Means over the samples; ``control`` has at least as many."""
    num = len(results)
    nfe = sum(r.nfe for r in results)
    transitions = sum(r.transitions for r in results)
    return Row(
        protocol=setting.protocol,
        rule=setting.rule.name,
        tau=setting.rule.tau,
        temperature=setting.rule.temperature,
        method=setting.method,
        budget=setting.budget,
        options=setting.options,
        samples=num,
        nfe=nfe / num,
        transitions=transitions / num,
        reduction=transitions / nfe,
        accepted_per_round=sum(r.accepted for r in results) / sum(r.rounds for r in results),
        positions=sum(r.positions for r in results) / num,
        identical=traces == control[:num],
        gamma=gamma,
        store_forwards=sum(r.nfe_store for r in results) / num,
        sample_nfe=tuple(r.nfe for r in results),
        sample_transitions=tuple(r.transitions for r in results),
    )
