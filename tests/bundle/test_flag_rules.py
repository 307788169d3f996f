"""Flags that belong to some deployers, and deployers from elsewhere."""

from __future__ import annotations

from typing import Any

import pytest
from tests.bundle.sample_catalogues import World

from aicr.bundle import deployers, flag_rules, layout
from aicr.bundle.options import BundleOptions
from aicr.errors import AicrError

SEVEN = ["argocd", "argocd-helm", "fleet", "flux", "helm", "helmfile", "terraform"]


def given(name: str) -> dict[str, Any]:
    """A value of an option that is not its default."""
    return {name: {"fleet_mode": "helmop"}.get(name, True if name.startswith("terraform") else "x")}


@pytest.mark.parametrize("deployer", SEVEN)
@pytest.mark.parametrize("name", list(flag_rules.SPECIAL))
def test_a_flag_of_some_deployers_is_refused_with_every_other(name: str, deployer: str) -> None:
    """Nothing would come of it (bundler spec 1.1, 1.8)."""
    flag, _, users = flag_rules.SPECIAL[name]
    options = BundleOptions(deployer=deployer, **given(name))
    if deployer in users:
        assert flag_rules.check(options, deployer) == []
        return
    with pytest.raises(AicrError) as caught:
        flag_rules.check(options, deployer)
    assert caught.value.code == "INVALID_REQUEST"
    assert f"{flag} cannot be used with --deployer {deployer}" in caught.value.message
    assert all(user in caught.value.message for user in users)


@pytest.mark.parametrize(
    ("deployer", "flags"),
    [
        ("argocd", {"app_name": "Upper"}),
        ("argocd", {"app_name": "a_b"}),
        ("argocd", {"app_name": "a" * 254}),
        ("flux", {"flux_namespace": "a.b"}),
        ("flux", {"flux_namespace": "x\n"}),
        ("flux", {"flux_oci_source_name": ""}),
        ("fleet", {"fleet_workspace": "-x"}),
        ("fleet", {"fleet_mode": "git"}),
        ("flux", {"repo": "-oops"}),
        ("flux", {"repo": "https://a b"}),
        ("flux", {"target_revision": "a\nb"}),
    ],
)
def test_a_name_that_no_object_can_have_is_refused(deployer: str, flags: dict[str, Any]) -> None:
    """The API server would refuse it hours later."""
    with pytest.raises(AicrError) as caught:
        flag_rules.check(BundleOptions(deployer=deployer, **flags), deployer)
    assert f"--{next(iter(flags)).replace('_', '-')}" in caught.value.message


@pytest.mark.parametrize("deployer", ["argocd-helm", "helm", "helmfile", "terraform"])
def test_a_repository_that_nobody_reads_is_a_note(deployer: str) -> None:
    """For argocd-helm it is an install-time value (bundler spec 1.1)."""
    made = World("app").plan(deployer=deployer, repo="https://git.example.com/x")
    assert any("--repo changes nothing" in note for note in made.notes)


@pytest.mark.covers("C-099")
@pytest.mark.parametrize("deployer", SEVEN)
def test_serial_and_readiness_hooks_are_taken_by_all_seven(deployer: str) -> None:
    """Gates are Helm hooks or synced Jobs, and every format runs one or the other (decision 53)."""
    made = World("app").plan(deployer=deployer, serial=True, readiness_hooks=True)
    assert (made.serial, made.deployer) == (True, deployer)


def test_a_deployer_of_another_package_can_be_registered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An eighth needs a module and one line, and may use every flag (issue 5)."""
    monkeypatch.setattr(deployers, "MODULES", dict(deployers.MODULES))
    deployers.register("eighth", "tests.bundle.eighth_deployer")
    made = World("app").plan(deployer=" Eighth ", app_name="x", flux_namespace="y")
    assert made.deployer == "eighth"
    module = deployers.load("eighth")
    files = module.generate(made, layout.folders(made))
    assert files["install.txt"][0] == b"001-app\napp\n"


@pytest.mark.parametrize("name", ["", "Upper", "a b", "helm"])
def test_a_deployer_cannot_take_an_impossible_name_or_one_that_is_taken(name: str) -> None:
    """What could not be typed, or would hide one of ours."""
    with pytest.raises(AicrError):
        deployers.register(name, "x")
