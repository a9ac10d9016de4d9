"""What the machine is, without saying which one it is."""

import platform
from datetime import UTC, datetime
from pathlib import Path

import psutil
import torch

from benchmarks.document import Machine
from benchmarks.workload import THREADS

CPU_INFO = Path("/proc/cpuinfo")


def describe_machine() -> Machine:
    """Processor, memory, versions and date; neither names nor paths."""
    return Machine(
        processor=_processor(),
        cores=psutil.cpu_count() or 1,
        memory_gib=round(psutil.virtual_memory().total / 2**30, 1),
        torch=torch.__version__,
        threads=THREADS,
        date=datetime.now(UTC).date().isoformat(),
    )


def _processor() -> str:
    """Its model name where the system tells it."""
    lines = CPU_INFO.read_text().splitlines() if CPU_INFO.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
