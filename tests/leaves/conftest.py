"""Every row of the table of leaves, resolved and bundled once for all tests of this folder."""

from __future__ import annotations

import pytest
from tools.leaf_table import Leaf, Outcome

from tools import leaf_table

Outcomes = dict[str, Outcome]


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """Row name → outcome, with the arguments of the table alone."""
    return _run(tmp_path_factory, ())


@pytest.fixture(scope="session")
def placed(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """Row name → outcome, bundled with every flag about placement as well."""
    return _run(tmp_path_factory, leaf_table.PLACEMENT)


@pytest.fixture(scope="session")
def bundled(plain: Outcomes, placed: Outcomes) -> list[Outcome]:
    """Every outcome that left a bundle, of both ways to ask."""
    return [
        outcome for way in (plain, placed) for outcome in way.values() if outcome.bundle.is_dir()
    ]


@pytest.fixture
def outcome(request: pytest.FixtureRequest, way: str, row: Leaf) -> Outcome:
    """The outcome of one row, asked for in one way."""
    outcomes: Outcomes = request.getfixturevalue(way)
    return outcomes[row.name]


def _run(factory: pytest.TempPathFactory, extra: tuple[str, ...]) -> Outcomes:
    outcomes = leaf_table.run_all(factory.mktemp("leaves"), extra)
    return {outcome.leaf.name: outcome for outcome in outcomes}
