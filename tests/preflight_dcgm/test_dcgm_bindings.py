"""The port to a hostengine on DCGM's bindings, against modules of the same shape as DCGM's own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.preflight_dcgm.fake_bindings import MODULES

from aicr.errors import INTERNAL, SERVICE_UNAVAILABLE, AicrError
from aicr.preflight.checks.dcgm import bindings
from aicr.preflight.checks.dcgm.hostengine import EngineGpu, Entity, status_of


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder with the modules, which leaves no trace in this process."""
    for name, text in MODULES.items():
        (tmp_path / f"{name}.py").write_text(text)
    path = list(sys.path)
    yield tmp_path
    sys.path[:] = path
    for name in MODULES:
        sys.modules.pop(name, None)


def connect(folder: Path, address: str = "good:5555") -> bindings.BoundSession:
    """A session on the modules."""
    session = bindings.Bindings({"DCGM_BINDINGS_PATH": str(folder)}).connect(address)
    assert isinstance(session, bindings.BoundSession)
    return session


def calls() -> list[Any]:
    """What the modules were asked."""
    module: ModuleType = sys.modules["dcgm_agent"]
    found: list[Any] = module.calls
    return found


def test_a_run_goes_through_the_bindings(folder: Path) -> None:
    """Connect, GPUs with UUIDs, group, run, stop, close; a failing end is no longer of interest."""
    session = connect(folder)
    assert session.gpus() == [EngineGpu(0, "GPU-0"), EngineGpu(3, "GPU-3")]
    session.group([3])
    answer = session.diagnose(2)
    session.stop()
    session.close()
    assert calls() == [
        ("connect", "good:5555", 1),
        ("group", "nvsentinel-preflight-diag", 1),
        ("add", 3),
        ("run", 20),
        ("stop", 77),
        ("delete",),
        ("shutdown",),
    ]
    assert [(test.name, test.result, test.results) for test in answer.tests] == [
        ("memory", 3, (0, 1))
    ]
    assert [(one.entity, one.result) for one in answer.results] == [
        (Entity(True, 3), 3),
        (Entity(False, 3), 0),
    ]
    assert [(one.entity, one.code, one.message) for one in answer.errors] == [
        (Entity(True, 3), 101, "café")
    ]
    assert session.mnemonics() == {101: "DCGM_FR_XID_ERROR"}


def test_statuses_keep_their_names(folder: Path) -> None:
    """So that the flow can tell what may pass; anything else has none."""
    session = connect(folder)
    session.group([3])
    with pytest.raises(AicrError) as caught:
        session.diagnose(4)
    assert (status_of(caught.value), caught.value.code) == ("DCGM_ST_IN_USE", SERVICE_UNAVAILABLE)
    with pytest.raises(AicrError) as caught:
        session.diagnose(1)
    assert (status_of(caught.value), caught.value.code) == ("", INTERNAL)
    assert caught.value.message == "TypeError: of a kind"
    session.close()


def test_a_hostengine_that_does_not_answer_says_why(folder: Path) -> None:
    """DCGM's status and text."""
    with pytest.raises(AicrError) as caught:
        connect(folder, "bad:5555")
    assert caught.value.message.startswith("DCGM_ST_CONNECTION_NOT_VALID: The connection")


def test_missing_bindings_are_named_with_where_was_looked(tmp_path: Path) -> None:
    """Nothing to import is an error with a next step, not a traceback."""
    with pytest.raises(AicrError) as caught:
        bindings.load({"DCGM_BINDINGS_PATH": str(tmp_path)})
    assert caught.value.code == SERVICE_UNAVAILABLE
    assert str(tmp_path) in caught.value.message
    assert bindings.PLACES[0] in caught.value.message
    assert "datacenter-gpu-manager-4" in caught.value.hint


def test_incomplete_bindings_are_another_error(folder: Path) -> None:
    """A module that is missing beside the others is named."""
    (folder / "dcgm_errors.py").unlink()
    with pytest.raises(AicrError) as caught:
        bindings.load({"DCGM_BINDINGS_PATH": str(folder)})
    assert caught.value.code == INTERNAL
    assert "dcgm_errors" in caught.value.message


@pytest.mark.parametrize(
    ("value", "text"),
    [(b"abc\0def", "abc"), ("abc\0", "abc"), (b"\xff", "\ufffd"), (b"", ""), (" a ", "a")],
)
def test_strings_end_at_the_first_nul(value: bytes | str, text: str) -> None:
    """Bytes or text, whatever the bindings give."""
    assert bindings.text_of(value) == text
