"""Prints what `mpirun all_reduce_perf` prints: NCCL's lines and the table, for the sizes asked for.

`STANDIN_NCCL` says how it goes: good, low, socket, nvls, wrong, error, manager, cut. The ranks are those
of the command line and the hosts those of the host file, so that a run on too few is seen.
"""

from __future__ import annotations

import os
import sys

UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
#: Bus bandwidth in GB/s of large messages.
FULL = {"low": 101.5}
DEFAULT = 402.25


def size(text: str) -> int:
    """Bytes of a size as nccl-tests takes it."""
    return int(text[:-1]) * UNITS[text[-1]] if text[-1] in UNITS else int(text)


def after(words: list[str], flag: str) -> str:
    """The word after *flag*."""
    return words[words.index(flag) + 1]


def said(mode: str, ranks: int, hosts: list[str]) -> list[str]:
    """What NCCL says while it starts."""
    network = "Socket" if mode == "socket" else "AWS Libfabric"
    lines = [f"{hosts[0]}:7:7 [0] NCCL INFO Using network {network}"]
    if mode == "nvls":
        lines += [
            f"{hosts[0]}:7:7 [0] NCCL INFO NVLS multicast support is available on dev 0",
            f"{hosts[0]}:7:7 [0] NCCL INFO NVLS comm 0x55aa00 headRank 0 nHeads {ranks}",
        ]
    return lines


def row(bytes_: int, busbw: float, wrong: int) -> str:
    """One line of the table."""
    time = bytes_ / busbw / 1e3
    half = f"  {time:>7.1f}  {busbw * 0.53:>6.2f}  {busbw:>6.2f}  {wrong:>5d}"
    return f"{bytes_:>12d}  {bytes_ // 4:>12d}     float     sum      -1{half}{half}"


def main(words: list[str]) -> int:
    """Print; the exit status."""
    mode = os.environ.get("STANDIN_NCCL", "good")
    ranks = int(after(words, "-np"))
    with open(after(words, "--hostfile"), encoding="utf-8") as file:
        hosts = [line.split()[0] for line in file if line.strip()]
    print(f"# nThread 1 nGpus 1 minBytes {after(words, '-b')} maxBytes {after(words, '-e')}")
    print("# Using devices")
    for rank in range(ranks):
        host = hosts[rank * len(hosts) // ranks]
        print(
            f"#  Rank {rank:2d} Group  0 Pid {100 + rank:6d} on {host:>10s} device  0 [0x00] NVIDIA H100"
        )
    print("\n".join(said(mode, ranks, hosts)))
    if mode == "error":
        print(f"{hosts[-1]}:9:9 [0] misc/socket.cc:484 NCCL WARN socket closed by remote peer")
        print(f"{hosts[0]}: Test NCCL failure common.cu:958 'remote process exited'")
        return 3
    if mode == "manager":
        print(f"{hosts[0]}: Test CUDA failure common.cu:892 'system not yet initialized'")
        return 2
    half = "    time   algbw   busbw #wrong"
    print(
        "#\n#                                                              out-of-place        in-place"
    )
    print(f"#       size         count      type   redop    root {half} {half}")
    print(
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)"
    )
    full, bytes_, busbws = FULL.get(mode, DEFAULT), size(after(words, "-b")), []
    while bytes_ <= size(after(words, "-e")):
        busbws.append(full * bytes_ / (bytes_ + (8 << 20)))
        if mode == "cut" and bytes_ >= 1 << 24:
            print(row(bytes_, busbws[-1], 0)[:70], end="")
            return 0
        print(row(bytes_, busbws[-1], 7 if mode == "wrong" and bytes_ >= 1 << 30 else 0))
        bytes_ *= 2
    print(
        f"# Out of bounds values : {14 if mode == 'wrong' else 0} {'FAILED' if mode == 'wrong' else 'OK'}"
    )
    print(f"# Avg bus bandwidth    : {sum(busbws) / len(busbws):g} \n#")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
