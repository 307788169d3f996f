"""Where an input is: the way to an http(s) address, an address with a log-in, a folder."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from tests.cli.program import EKS, aicr
from tests.oci.http_proxy import proxying
from tests.oci.test_registry_logins import TokenRegistry, answering

LOGIN = "Basic " + base64.b64encode(b"me:hunter2").decode()


@pytest.fixture(autouse=True)
def no_proxy_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests name their own."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def recipe_server(heads: list[str]) -> type[TokenRegistry]:
    """A server that has a recipe under every path and notes the headers of each request."""
    text = aicr("recipe", *EKS).out.encode()

    def serve(handler: TokenRegistry) -> None:
        heads.append(str(handler.headers))
        handler._answer(200, text)

    return type("Server", (TokenRegistry,), {"do_GET": serve})


def test_a_recipe_is_fetched_through_the_proxy_that_applies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rules of registries and clusters; the proxy's log-in stays with the proxy."""
    heads: list[str] = []
    with (
        answering(recipe_server(heads)) as host,
        proxying({"files.invalid": host, "10.9.8.7": host}, login=LOGIN) as (proxy, seen),
    ):
        monkeypatch.setenv("HTTP_PROXY", f"http://me:hunter2@{proxy}")
        for number, name in enumerate(("files.invalid", "10.9.8.7")):
            made = aicr("bundle", "-r", f"http://{name}/r.yaml", "-o", tmp_path / str(number))
            assert made.status == 0, made.err
        assert seen.lines == ["GET http://files.invalid/r.yaml", "GET http://10.9.8.7/r.yaml"]
        seen.lines.clear()
        # This machine is never reached through a proxy.
        assert aicr("bundle", "-r", f"http://{host}/r.yaml", "-o", tmp_path / "near").status == 0
        assert seen.lines == []
    assert len(heads) == 3
    assert not any("Proxy-Authorization" in head for head in heads)
    assert set(seen.logins) == {LOGIN}


@pytest.mark.parametrize(
    ("status", "said"),
    [(407, "the proxy asks for a log-in"), (502, "the server answered 502")],
)
def test_a_proxy_that_refuses_says_so_without_its_log_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, said: str
) -> None:
    """Nothing is written."""
    with proxying({}, refusal=status) as (proxy, _):
        monkeypatch.setenv("HTTP_PROXY", f"http://me:hunter2@{proxy}")
        result = aicr("bundle", "-r", "http://files.invalid/r.yaml", "-o", tmp_path / "out")
    result.refused(6, said, "http://files.invalid/r.yaml")
    assert "hunter2" not in result.err
    assert not (tmp_path / "out").exists()


def test_an_address_with_a_password_is_refused_and_not_repeated(tmp_path: Path) -> None:
    """It would not be sent, and the address is printed and recorded."""
    result = aicr("bundle", "-r", "https://me:hunter2@files.invalid/r.yaml", "-o", tmp_path / "out")
    result.refused(2, "https://files.invalid/r.yaml", "user name or password")
    assert "hunter2" not in result.err


def test_a_bundle_in_the_place_of_its_recipe_is_told_which_file(tmp_path: Path) -> None:
    """The folder is one step from what is meant."""
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "recipe.yaml").write_text("kind: RecipeResult\n")
    result = aicr("bundle", "-r", tmp_path / "b", "-o", tmp_path / "out")
    result.refused(2, "is a folder", f"next: name the file in it: {tmp_path / 'b' / 'recipe.yaml'}")
