"""``aicr bundle --debug``: advice of severity info, which is kept quiet otherwise (bundler spec 6.1)."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest

from aicr.cli.console import Console
from aicr.cli.main import main


@pytest.mark.covers("V-353")
@pytest.mark.parametrize(("flags", "told"), [([], False), (["--debug"], True)])
def test_advice_is_told_only_when_asked(flags: list[str], told: bool, tmp_path: Path) -> None:
    """A selector that most clusters want and no cluster needs is advice, not a warning."""
    criteria = ["--service", "eks", "--accelerator", "h100", "--intent", "training"]
    recipe, out, err = tmp_path / "recipe.yaml", StringIO(), StringIO()
    words = ["recipe", *criteria, "--os", "ubuntu", "-o", str(recipe)]
    assert main(words, Console(out, err)) == 0
    status = main(
        ["bundle", "-r", str(recipe), "-o", str(tmp_path / "b"), *flags], Console(out, err)
    )
    assert status == 0, err.getvalue()
    assert ("advice: " in err.getvalue()) is told
