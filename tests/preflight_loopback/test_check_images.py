"""The container files of the check programs: what must hold of them without building one."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import pytest
import yaml

from aicr.preflight.checks.exit_codes import DCGM_DIAG, MEANING, NCCL_ALLREDUCE, NCCL_LOOPBACK

ROOT = Path(__file__).resolve().parents[2]
CONTAINERS = ROOT / "containers"
IMAGES = ["preflight-dcgm-diag", "preflight-nccl-loopback"]


@pytest.mark.parametrize("image", IMAGES)
def test_a_check_image_starts_its_program_as_a_numbered_user(image: str) -> None:
    """A pod with runAsNonRoot does not start an image whose user is a name, or root."""
    text = (CONTAINERS / image / "Dockerfile").read_text(encoding="utf-8")
    user = re.findall(r"^USER (\S+)$", text, re.MULTILINE)[-1]
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)
    (entry,) = re.findall(r"^ENTRYPOINT (.+)$", text, re.MULTILINE)
    words = json.loads(entry)
    assert words[-2] == "-m"
    assert importlib.util.find_spec(words[-1]) is not None


@pytest.mark.parametrize("image", IMAGES)
def test_what_a_check_image_is_built_from_has_a_version(image: str) -> None:
    """No `latest`, and every base can be replaced by an argument of the build."""
    text = (CONTAINERS / image / "Dockerfile").read_text(encoding="utf-8")
    defaults = dict(re.findall(r"^ARG (\w+_IMAGE)=(\S+)$", text, re.MULTILINE))
    assert defaults
    assert all(":" in value and not value.endswith(":latest") for value in defaults.values())
    for base in re.findall(r"^FROM (\S+)", text, re.MULTILINE):
        assert base.strip("${}") in defaults


@pytest.mark.parametrize("image", IMAGES)
def test_the_wheel_is_what_is_installed(image: str) -> None:
    """With pinned versions, and what the extra `health` needs beside it; nothing of the sources."""
    text = (CONTAINERS / image / "Dockerfile").read_text(encoding="utf-8")
    copied = re.findall(r"^COPY (?!--from)(.+)$", text, re.MULTILINE)
    assert copied == ["constraints.txt /", "dist/aicr-*.whl /wheels/"]
    install = re.sub(r"\s*\\\n\s*", " ", text)
    assert "--constraint /constraints.txt /wheels/*.whl grpcio protobuf" in install


@pytest.mark.parametrize("image", IMAGES)
def test_a_test_node_runs_what_the_image_runs(image: str) -> None:
    """Under the image's name of a development build."""
    images = yaml.safe_load((ROOT / "tests/controlplane/images.yaml").read_text(encoding="utf-8"))
    text = (CONTAINERS / image / "Dockerfile").read_text(encoding="utf-8")
    (entry,) = re.findall(r"^ENTRYPOINT (.+)$", text, re.MULTILINE)
    assert images[f"aicr.local/{image}:dev"][-2:] == json.loads(entry)[-2:]


def test_the_library_of_dcgm_does_not_depend_on_a_variable_that_is_inherited() -> None:
    """Checks inherit LD_LIBRARY_PATH from the workload, so the loader must know the place itself."""
    text = (CONTAINERS / "preflight-dcgm-diag" / "Dockerfile").read_text(encoding="utf-8")
    assert "ENV LD_LIBRARY_PATH" not in text
    assert "RUN ldconfig" in text


def test_the_manual_has_the_codes_of_every_check() -> None:
    """The table has a cell where a check has the code, and a dash where it has not."""
    text = (ROOT / "docs" / "preflight" / "checks.md").read_text(encoding="utf-8")
    cells = {
        int(code): [cell.strip() for cell in rest.strip(" |").split("|")]
        for code, rest in re.findall(r"^\| ([0-4]) \|(.*)$", text, re.MULTILINE)
    }
    for column, check in enumerate((DCGM_DIAG, NCCL_LOOPBACK, NCCL_ALLREDUCE)):
        assert {code for code, row in cells.items() if row[column] != "–"} == set(MEANING[check])
    assert set(MEANING[DCGM_DIAG]) == {0, 1}
    assert set(MEANING[NCCL_LOOPBACK]) == {0, 1, 2, 3}
    assert set(MEANING[NCCL_ALLREDUCE]) == {0, 1, 2, 3, 4}
