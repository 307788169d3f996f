"""A rule about upgrade records: they are read strictly, and only by the commands that need them.

Sources: recipe spec 3.9, bundler spec 9.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from aicr.bundle import upgrade_records
from aicr.errors import AicrError
from aicr.lint import reading
from aicr.lint.decoder import problem_of
from aicr.lint.findings import ERROR, Problem, rule, split_place

if TYPE_CHECKING:
    from aicr.lint.ground import Ground


@rule(
    "upgrade-record",
    ERROR,
    "A record that cannot be read tells nobody what an upgrade asks, and stops aicr upgrade-check.",
)
def upgrade_record(ground: Ground) -> Iterator[Problem]:
    """The first thing that the reader of records refuses in each record that an entry names."""
    unreadable = {
        split_place(problem.where)[0]
        for id, problem in ground.noted
        if id in (reading.FILE, reading.YAML)
    }
    for name, entry in ground.entries.items():
        path = (entry.entry.get("upgrades") or {}).get("file")
        if not path or not ground.tree.exists(path):
            continue
        place = ground.tree.place(path)
        if place in unreadable:
            continue
        pin = (entry.entry.get("helm") or {}).get("defaultVersion") or ""
        try:
            text = ground.tree.read_text(path)
            upgrade_records.read(text, source=place, component=name, pin=pin)
        except AicrError as error:
            yield problem_of(error, place)
