"""Help, version and completion: a person finds the way without the manual."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from tests import tools
from tests.cli.program import ROOT, aicr, environment

from aicr.cli.completion import SHELLS
from aicr.cli.main import COMMANDS
from aicr.version import __version__
from tools import make_completions

SCRIPTS = make_completions.scripts()


@pytest.mark.parametrize("argv", [[], ["-h"], ["--help"], ["help"]], ids=" ".join)
def test_the_overview_lists_every_command_and_an_example_of_the_way(argv: list[str]) -> None:
    """`aicr` alone is a question, and gets an answer on stdout."""
    found = aicr(*argv)
    assert (found.status, found.err) == (0, "")
    for name, (_, line) in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(line)}$", found.out, re.MULTILINE)
    for command in ("aicr recipe --service", "aicr query --service", "aicr bundle -r"):
        assert command in found.out


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_has_examples_and_exit_statuses(name: str) -> None:
    """`aicr CMD -h`, `--help` and `aicr help CMD` print the same, on stdout, with status 0."""
    found = aicr(name, "--help")
    assert (found.status, found.err) == (0, "")
    assert found == aicr(name, "-h") == aicr("help", name)
    assert found.out.startswith(f"usage: aicr {name}")
    assert f"examples:\n  aicr {name}" in found.out or f"<(aicr {name}" in found.out
    assert "exit status: 0 done; 2 the input is wrong; 3 " in found.out
    assert "130 Ctrl-C" in found.out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_flag_of_a_command_says_what_it_is_for(name: str) -> None:
    """No flag without a line of help."""
    parser = __import__(COMMANDS[name][0], fromlist=["parser"]).parser().full()
    assert [action.dest for action in parser._actions if not action.help] == []


def examples(name: str) -> list[list[str]]:
    """The command lines in the examples of a command's help."""
    text = aicr(name, "--help").out.replace("\\\n", " ")
    lines = text[text.index("examples:") :].splitlines()[1:]
    return [shlex.split(line) for line in lines if line.startswith("  aicr ")]


@pytest.mark.parametrize("name", ["recipe", "query", "bundle"])
def test_the_examples_work_as_they_stand(
    name: str, recipe_text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the help tells people to type does something, given the files that it names."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recipe.yaml").write_text(recipe_text)
    (tmp_path / "criteria.yaml").write_text(
        "kind: RecipeCriteria\napiVersion: aicr.run/v1\n"
        "spec: {service: gke, accelerator: h100, intent: training, os: cos}\n"
    )
    (tmp_path / "snapshot.yaml").write_text(
        "kind: Snapshot\napiVersion: aicr.run/v1\nmeasurements: [{type: K8s, subtypes: "
        "[{subtype: node, data: {provider: eks}}]}]\n"
    )
    (tmp_path / "my-recipes").mkdir()
    (tmp_path / "my-recipes" / "registry.yaml").write_text(
        "kind: ComponentRegistry\napiVersion: aicr.run/v1beta1\ncomponents: []\n"
    )
    found = examples(name)
    assert len(found) >= 3
    for words in found:
        done = aicr(*words[1:])
        assert done.status == 0, f"{shlex.join(words)}\n{done.err}"


@pytest.mark.parametrize("argv", [["version"], ["--version"], ["-v"], ["-V"]], ids=" ".join)
def test_the_version_is_one_line(argv: list[str]) -> None:
    """Decision 40: SemVer first, then which build it is."""
    found = aicr(*argv)
    assert (found.status, found.err) == (0, "")
    assert re.fullmatch(rf"aicr {re.escape(__version__)} \(.+\)\n", found.out)
    assert re.match(r"aicr \d+\.\d+\.\d+", found.out)


@pytest.mark.parametrize("shell", SHELLS)
def test_a_completion_script_is_current_and_printed_as_it_is(shell: str) -> None:
    """The committed script is what the parsers say now; else run tools/make_completions.py."""
    found = aicr("completion", shell)
    assert (found.status, found.err) == (0, "")
    assert found.out == SCRIPTS[f"aicr.{shell}"]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_completion_script_knows_every_command_and_long_flag(shell: str) -> None:
    """Nothing that the program takes is missing from what the shell offers."""
    script = SCRIPTS[f"aicr.{shell}"]
    for name, (module, _) in COMMANDS.items():
        assert name in script
        if shell == "tcsh":
            continue  # its scripts complete words of the top level only
        parser = __import__(module, fromlist=["parser"]).parser().full()
        for action in parser._actions:
            for option in action.option_strings:
                if option.startswith("--"):
                    assert option[2:] in script, f"{name} {option}"


def test_the_bash_script_parses() -> None:
    """`bash -n` takes it."""
    done = subprocess.run(
        [tools.program("bash", "install the package bash"), "-n"],
        input=SCRIPTS["aicr.bash"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("aicr re", ["recipe"]),
        ("aicr bundle --stor", ["--storage-class"]),
        ("aicr recipe --service ek", ["eks"]),
        ("aicr recipe --accelerator gb2", ["gb200"]),
        ("aicr query --format j", ["json"]),
        ("aicr completion fi", ["fish"]),
        ("aicr bundle --recipe rec", ["recipe.yaml"]),
        ("aicr recipe --data fo", ["folder"]),
        ("aicr evidence pu", ["publish"]),
        ("aicr preflight conf", ["config"]),
        ("aicr preflight run dcgm", ["dcgm-diag"]),
        ("aicr checks show check-n", ["check-nvidia-smi"]),
        ("aicr schema RecipeM", ["RecipeMetadata", "RecipeMixin"]),
        ("aicr cluster d", ["demo"]),
        ("aicr mirror list --format h", ["hauler"]),
        ("aicr validate --phase conf", ["conformance"]),
        ("aicr validate --fail-on-error f", ["false"]),
        ("aicr recipe --slurm-accounting-mode c", ["customer-managed"]),
        ("aicr query --runtime-inventory e", ["enabled"]),
        ("aicr bundle --fleet-mode h", ["helmop"]),
        ("aicr lint --ignore legacy", ["legacy-header"]),
        ("aicr snapshot --os t", ["talos"]),
        ("aicr diff --fail-on-drift f", ["false"]),
        ("aicr preflight run dcgm-diag --strategy EX", ["EXECUTE_REMEDIATION"]),
        ("aicr verify --min-trust-level m", ["max"]),
        ("aicr validate --recipe rec", ["recipe.yaml"]),
        ("aicr verify fo", ["folder"]),
    ],
)
def test_bash_completes_commands_flags_values_and_files(
    line: str, offered: list[str], tmp_path: Path
) -> None:
    """The script is asked as bash asks it, in a folder with a file and a folder."""
    (tmp_path / "recipe.yaml").touch()
    (tmp_path / "folder").mkdir()
    words = shlex.join(line.split())
    script = f"""
    source {shlex.quote(str(ROOT / "src/aicr/cli/completions/aicr.bash"))}
    COMP_WORDS=({words}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
    function_name=$(complete -p aicr | sed 's/.*-F \\([^ ]*\\).*/\\1/')
    $function_name aicr "${{COMP_WORDS[COMP_CWORD]}}" "${{COMP_WORDS[COMP_CWORD - 1]}}"
    printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert sorted(word.strip().rstrip("/") for word in done.stdout.split()) == offered, done.stderr
