"""The process in which a scorer runs: limits first, then one JSON row in, one JSON score out.

Run as a script by `jobs.scoring`, with the standard library only, so that the memory limit is the
scorer's. Arguments: `module:function`, CPU seconds per row, bytes of memory. The first line out
says whether the scorer was loaded. What the scorer prints goes to stderr.
"""

import importlib
import json
import math
import os
import resource
import signal
import sys
from collections.abc import Callable
from typing import Any, NoReturn, TextIO

Scorer = Callable[[dict[str, Any]], Any]


class CpuLimitError(BaseException):
    """The row used up its CPU seconds; `except Exception` in scored code must not hold it."""


def _limit_memory(limit_bytes: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (limit_bytes, limit_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _on_cpu_limit(signum: int, frame: object) -> NoReturn:
    raise CpuLimitError


def _limit_cpu(seconds: int) -> None:
    """Give the next row `seconds`: the soft limit counts from the start of the process."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    used_s = math.ceil(usage.ru_utime + usage.ru_stime)
    resource.setrlimit(
        resource.RLIMIT_CPU, (used_s + seconds, resource.getrlimit(resource.RLIMIT_CPU)[1])
    )


def _load(name: str) -> Scorer:
    # Behind everything installed, so that a folder here cannot stand in for a package.
    sys.path.append(os.getcwd())
    module, _, function = name.partition(":")
    scorer: Scorer = getattr(importlib.import_module(module), function)
    if not callable(scorer):
        raise TypeError(f"{function} is not a function")
    return scorer


def _score(scorer: Scorer, row: dict[str, Any]) -> dict[str, Any]:
    result = scorer(row)
    if not isinstance(result, dict) or not isinstance(result.get("correct"), bool):
        raise TypeError("a score is a dictionary with `correct`: true or false, and `family`: text")
    family = result.get("family")
    if family is not None and not isinstance(family, str):
        raise TypeError(f"`family` of a score is text, not {type(family).__name__}")
    return {"correct": result["correct"], "family": family}


def _answer(scorer: Scorer, line: str, *, cpu_s: int) -> dict[str, Any]:
    _limit_cpu(cpu_s)
    try:
        return _score(scorer, json.loads(line))
    except CpuLimitError:
        return {"error": f"the scorer used more than {cpu_s} s of CPU time"}
    except MemoryError:
        return {"error": "the scorer used more memory than it may"}
    except (Exception, SystemExit) as error:  # the scorer is foreign code; its row is what fails
        return {"error": f"the scorer raised {type(error).__name__}: {error}"[:500]}


def _serve(name: str, *, cpu_s: int, out: TextIO) -> None:
    try:
        _limit_cpu(cpu_s)
        scorer = _load(name)
    except (Exception, SystemExit, CpuLimitError) as error:
        print(json.dumps({"error": f"{type(error).__name__}: {error}"[:500]}), file=out, flush=True)
        return
    print(json.dumps({"loaded": True}), file=out, flush=True)
    for line in sys.stdin:
        print(json.dumps(_answer(scorer, line, cpu_s=cpu_s)), file=out, flush=True)


def _main() -> None:
    name, cpu_s, memory_bytes = sys.argv[1:]
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    signal.signal(signal.SIGXCPU, _on_cpu_limit)
    _limit_memory(int(memory_bytes))
    _serve(name, cpu_s=int(cpu_s), out=out)


if __name__ == "__main__":
    _main()
