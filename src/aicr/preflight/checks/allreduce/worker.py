"""One worker, on one GPU: ``python -m aicr.preflight.checks.allreduce.worker``; the benchmark itself.

It is told everything by a `Job` and the variables that torchrun would set, and appends what it comes to to
its report file; the program beside it judges, sends and exits. Every worker decides from numbers that all
workers share (the least bandwidth of all, the sum of wrong values), so all come to the same result.

A collective that does not end is noticed here by a deadline, because torch's own watchdog would abort the
process without a word. Exit codes: 0 with a result, 1 when init or benchmark failed, 2 for a job that
cannot be run. It must not know: thresholds by fabric, events, the gang's files.
Source: preflight specification 7.3, known bugs S22 and S25.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from aicr.fabric.nccl_output import bus_bandwidth
from aicr.preflight.checks.allreduce import job as jobs
from aicr.preflight.checks.allreduce.job import Job, Measured, Result
from aicr.preflight.checks.allreduce.probing import Probing
from aicr.preflight.checks.times import CheckTimes

_TIMES: Final = CheckTimes()
#: The proof takes several times its size, so it has a size of its own where the message is larger.
PROOF: Final = 256 << 20
#: Values of the proof repeat after so many elements; small, so that float32 sums are exact.
_PERIOD: Final = 13
_SHIFT: Final = 7


class HungError(RuntimeError):
    """A collective did not end in time."""


class Worker:
    """A worker that has joined the gang.

    Args:
        torch: the module.
        job, rank, local: what to do, and who we are.
        tell: takes one document of the report.
    """

    def __init__(
        self, torch: Any, job: Job, rank: int, local: int, tell: Callable[[dict[str, Any]], None]
    ) -> None:
        self.torch, self.job, self.rank, self.tell = torch, job, rank, tell
        self.dist = torch.distributed
        self.gpu = job.backend == "nccl"
        self.device = torch.device("cuda", local) if self.gpu else torch.device("cpu")
        name = {"prod": "PRODUCT"}.get(job.operation, job.operation.upper())
        self.operation = getattr(self.dist.ReduceOp, name)
        self.steps = 0

    def join(self) -> None:
        """Meet the other workers."""
        self.step("init")
        if self.gpu:
            self.torch.cuda.set_device(self.device)
        limit = timedelta(seconds=self.job.timeout)
        self.store = self.dist.TCPStore(
            self.job.address, self.job.port, is_master=False, timeout=limit, wait_for_workers=False
        )
        self.dist.init_process_group(
            self.job.backend,
            store=self.dist.PrefixStore(f"{self.job.key}/workers", self.store),
            rank=self.rank,
            world_size=self.job.world,
            timeout=limit + timedelta(seconds=_TIMES.behind) if self.gpu else limit,
        )
        # The first collective is what connects NCCL; a failure of it is one to start.
        self.shared([0.0], "max")

    def run(self) -> Result:
        """Measure all sizes, and look for who is slow if one of them is."""
        measured = tuple(self.measure(size) for size in self.job.sizes)
        self.tell(jobs.measured_document(measured))
        self.step("waiting for the thresholds")
        name = f"{self.job.key}/{jobs.THRESHOLDS}"
        self.store.wait([name], timedelta(seconds=self.job.timeout))
        thresholds = json.loads(self.store.get(name))
        worst, threshold = jobs.worst(measured, thresholds)
        bad = bool(worst.wrong) or (worst.busbw < threshold and not self.job.skip)
        if not bad or not self.job.localize or len(self.job.workers) < 2:
            return Result(measured)
        return Result(measured, Probing(self, worst.size, threshold, time.monotonic).go())

    def measure(self, size: int) -> Measured:
        """One message size over all workers."""
        seconds = self.time(size, self.job.warm_up, self.job.iterations, None)
        wrong = self.prove(size, None)
        own = bus_bandwidth(size, seconds, self.job.world)
        algbw, busbw = self.shared(list(own), "min")
        (slowest,) = self.shared([seconds], "max")
        (all_wrong,) = self.shared([float(wrong)], "sum")
        return Measured(size, slowest, algbw, busbw, int(all_wrong))

    def time(self, size: int, warm_up: int, iterations: int, group: Any) -> float:
        """Mean seconds of one all-reduce of *size* bytes in *group* (None: all), by our own clock."""
        self.step(f"warm-up, {size} bytes")
        tensor = self.torch.randn(size // 4, dtype=self.torch.float32, device=self.device)
        self.all_reduce(tensor, group, warm_up)
        self.step(f"benchmark, {size} bytes")
        began = time.perf_counter()
        self.all_reduce(tensor, group, iterations)
        return (time.perf_counter() - began) / iterations

    def all_reduce(self, tensor: Any, group: Any, times: int) -> None:
        """All-reduces back to back, until the last one has ended.

        Raises:
            HungError: it did not end in time.
        """
        works = [
            self.dist.all_reduce(tensor, op=self.operation, group=group, async_op=True)
            for _ in range(times)
        ]
        if not self.gpu:
            for work in works:
                work.wait()
            return
        for work in works:
            # Orders our stream behind NCCL's; does not block.
            work.wait()
        self.settle()

    def settle(self) -> None:
        """Until the GPU has done everything, or time is up."""
        done = self.torch.cuda.Event()
        done.record()
        deadline = time.monotonic() + self.job.timeout
        while not done.query():
            if time.monotonic() >= deadline:
                raise HungError(f"no answer within {self.job.timeout:g} s")
            time.sleep(_TIMES.gpu_look)

    def shared(self, values: list[float], how: str, group: Any = None) -> list[float]:
        """Values that all workers of *group* agree on: `min`, `max` or `sum` over what each has."""
        tensor = self.torch.tensor(values, dtype=self.torch.float64, device=self.device)
        self.dist.all_reduce(tensor, op=getattr(self.dist.ReduceOp, how.upper()), group=group)
        if self.gpu:
            self.settle()
        return [float(value) for value in tensor.tolist()]

    def prove(self, size: int, group: Any) -> int:
        """Elements of a known result that are not what they must be; a NaN never is."""
        size = min(size, PROOF)
        self.step(f"proof, {size} bytes")
        torch, count = self.torch, self.dist.get_world_size(group)
        mine = self.dist.get_rank(group)
        pattern = torch.arange(size // 4, device=self.device).remainder_(_PERIOD)
        pattern = pattern.to(torch.float32)
        shifts = [rank % _SHIFT for rank in range(count)]
        if self.job.operation == "prod":
            tensor = pattern + 1.0 if mine == 0 else torch.ones_like(pattern)
            expected = pattern + 1.0
        else:
            tensor = pattern + float(shifts[mine])
            expected = {
                "sum": lambda: pattern * count + float(sum(shifts)),
                "avg": lambda: pattern + sum(shifts) / count,
                "min": lambda: pattern + float(min(shifts)),
                "max": lambda: pattern + float(max(shifts)),
            }[self.job.operation]()
        self.all_reduce(tensor, group, 1)
        slack = 1e-3 if self.job.operation == "avg" else 0.0
        return int((~((tensor - expected).abs() <= slack)).sum().item())

    def step(self, what: str) -> None:
        """Say that we have come to the next step."""
        self.steps += 1
        self.tell({"kind": jobs.STEP, "n": self.steps, "what": what})


def run(
    environ: Mapping[str, str],
    tell: Callable[[dict[str, Any]], None],
    torch: Any,
    make: Callable[..., Worker] = Worker,
) -> int:
    """Do a job, tell how it went, and return the exit code.

    Args:
        environ: the variables.
        tell: takes one document of the report.
        torch: the module.
        make: what a test replaces.
    """
    stage = jobs.CONFIG
    try:
        job = jobs.parse_job(environ[jobs.JOB])
        worker = make(torch, job, int(environ["RANK"]), int(environ["LOCAL_RANK"]), tell)
        stage = jobs.INIT
        worker.join()
        stage = jobs.BENCHMARK
        tell(jobs.result_document(worker.run()))
    except Exception as error:
        text = str(error).strip() or type(error).__name__
        hung = (
            isinstance(error, HungError) or "timed out" in text.lower() or "timeout" in text.lower()
        )
        tell({"kind": jobs.FAILED, "stage": stage, "text": text, "hung": hung})
        return 2 if stage == jobs.CONFIG else 1
    return 0


def main(make: Callable[..., Worker] = Worker) -> int:
    """The program."""
    path = Path(os.environ[jobs.REPORT])

    def tell(document: dict[str, Any]) -> None:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(document) + "\n")

    try:
        import torch  # type: ignore[import-not-found]
    except ImportError as error:
        tell({"kind": jobs.FAILED, "stage": jobs.INIT, "text": str(error), "hung": False})
        return 1
    code = run(os.environ, tell, torch, make)
    if code == 0:
        try:
            torch.distributed.destroy_process_group()
        except Exception as error:
            # The result is out; what goes wrong while leaving is of no interest to it.
            print(f"leaving the process group: {error}", file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    # A communicator that hangs would keep the interpreter from ending.
    os._exit(code)


if __name__ == "__main__":
    main()
