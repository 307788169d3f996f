"""What importing costs and needs (decisions 35 and 39)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import aicr.kube

MODULES = sorted(path.stem for path in Path(aicr.kube.__file__).parent.glob("[a-z]*.py"))
NEED_AIOHTTP = {"http", "http_errors"}

#: Makes an installed package impossible to import.
BLOCK = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {blocked!r}:
            raise ModuleNotFoundError("No module named " + repr(name), name=name)
sys.meta_path.insert(0, Block())
"""


def python(code: str, *blocked: str) -> str:
    """What *code* prints in an interpreter without *blocked*."""
    program = BLOCK.format(blocked=set(blocked)) + code
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_everything_but_the_transport_imports_without_extras() -> None:
    """Check modules and tests of logic need the base install only."""
    names = [name for name in MODULES if name not in NEED_AIOHTTP]
    code = "\n".join(f"import aicr.kube.{name}" for name in names)
    assert python(f"{code}\nprint('ok')", "aiohttp", "kubernetes", "yarl") == "ok\n"


@pytest.mark.parametrize(
    ("package", "call"),
    [
        ("aiohttp", "aicr.kube.connect_to(ClusterConfig('http://x'))"),
        ("kubernetes", "aicr.kube.connect(kubeconfig=__file__)"),
    ],
)
def test_a_missing_extra_is_one_error_with_the_pip_line(
    package: str, call: str, tmp_path: Path
) -> None:
    """Exit status 2, and what to type."""
    file = tmp_path / "config"
    file.write_text("{}")
    code = f"""
__file__ = {str(file)!r}
import aicr.kube
from aicr.errors import AicrError
from aicr.kube.config import ClusterConfig
try:
    {call}
except AicrError as error:
    print(error.exit_status, error.message, error.hint)
"""
    said = python(code, package)
    assert said.startswith(f"2 access to a cluster needs the package {package}, which is not")
    assert 'pip install "aicr[cluster]"' in said


def test_the_official_client_is_imported_for_kubeconfigs_only(tmp_path: Path) -> None:
    """It takes half a second; a pod never pays it."""
    (tmp_path / "token").write_text("t")
    (tmp_path / "ca.crt").write_text("x")
    code = f"""
import sys
from aicr.kube import config, http
config.load(environ={{"KUBERNETES_SERVICE_HOST": "h"}}, service_account={str(tmp_path)!r})
print("kubernetes" in sys.modules)
"""
    assert python(code) == "False\n"


@pytest.mark.parametrize("command", ["recipe", "query", "bundle"])
def test_the_hot_commands_do_not_import_cluster_access(command: str) -> None:
    """Their modules, imported as the command line does."""
    code = f"""
import sys
from aicr.cli.main import COMMANDS
__import__(COMMANDS[{command!r}][0])
print([name for name in sys.modules if name.startswith(("aicr.kube", "aiohttp", "asyncio"))])
"""
    assert python(code) == "[]\n"
