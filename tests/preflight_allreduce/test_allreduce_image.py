"""The container file of preflight-nccl-allreduce: what must hold of it without building one."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path

import yaml

from aicr.preflight.checks.allreduce.__main__ import WORKER

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "containers" / "preflight-nccl-allreduce" / "Dockerfile").read_text(encoding="utf-8")


def test_the_image_starts_the_program_as_a_numbered_user() -> None:
    """A pod with runAsNonRoot does not start an image whose user is a name, or root."""
    assert re.findall(r"^USER ([1-9]\d*:[1-9]\d*)$", TEXT, re.MULTILINE)
    (entry,) = re.findall(r"^ENTRYPOINT (.+)$", TEXT, re.MULTILINE)
    words = json.loads(entry)
    assert words[-2:] == ["-m", "aicr.preflight.checks.allreduce"]
    assert importlib.util.find_spec(f"{words[-1]}.__main__") is not None


def test_workers_run_in_the_programs_own_interpreter() -> None:
    """Which sees the base's torch through its environment."""
    assert WORKER[0] == sys.executable
    assert importlib.util.find_spec(WORKER[-1]) is not None
    assert "venv --system-site-packages /opt/aicr" in TEXT


def test_the_hosts_efa_libraries_are_the_only_ones() -> None:
    """They are mounted where the base has its own."""
    assert "rm -rf /opt/amazon" in TEXT
    assert "'libefa.so*' -delete" in TEXT


def test_what_the_image_is_built_from_has_a_version() -> None:
    """The wheel with pinned versions on a base that an argument can replace."""
    (base,) = re.findall(r"^ARG PYTORCH_IMAGE=(\S+)$", TEXT, re.MULTILINE)
    assert re.search(r":[^:]+$", base)
    assert not base.endswith(":latest")
    assert re.findall(r"^COPY (.+)$", TEXT, re.MULTILINE) == [
        "constraints.txt /",
        "dist/aicr-*.whl /wheels/",
    ]


def test_a_test_node_runs_what_the_image_runs() -> None:
    """Under the image's name of a development build."""
    images = yaml.safe_load((ROOT / "tests/controlplane/images.yaml").read_text(encoding="utf-8"))
    assert images["aicr.local/preflight-nccl-allreduce:dev"][-2:] == [
        "-m",
        "aicr.preflight.checks.allreduce",
    ]
