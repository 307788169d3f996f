"""How the programs of a gang find together, and how they part: over the board of rank 0.

```
 node/R     each      who it is, how many GPUs it has, and a token of this run
 roster     rank 0    all of them, and the session; or who did not come
 trouble    any       a node whose workers have failed, so that nobody waits for it
 end/R      each      result or failure
 verdict    rank 0    what it comes to: everybody's exit code and events
 read/R     each      the verdict was read, so that rank 0 may go
```

A container that was restarted alone may find the board of the run before, which rank 0 still serves: a
roster without its token is none, and it looks again. All but the first two names carry the session.
It must not know: what is measured, and how an end becomes a verdict.
Source: preflight specification 7.3, decision 22 (a restart is a new run).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Final

from aicr.errors import SERVICE_UNAVAILABLE, TIMEOUT, AicrError
from aicr.preflight.checks.allreduce.board import Board, Meeting
from aicr.preflight.checks.allreduce.clock import Clock
from aicr.preflight.checks.allreduce.gang import Place
from aicr.preflight.checks.times import CheckTimes

_TIMES: Final = CheckTimes()


@dataclass(frozen=True)
class Card:
    """What a node says of itself."""

    pod: str
    node: str
    workers: int
    #: Of this run of the program and no other.
    token: str
    generation: int
    product: str = ""


@dataclass(frozen=True)
class Roster:
    """A gang that has met."""

    session: str
    cards: tuple[Card, ...]


class Gathering:
    """The board, as one node uses it.

    Args:
        place: our place in the gang.
        card: what we say of ourselves.
        meeting: the way to the board.
        clock: time and sleeping.
        limit: seconds that meeting may take.
    """

    def __init__(
        self, place: Place, card: Card, meeting: Meeting, clock: Clock, limit: float
    ) -> None:
        self.place, self.card, self.meeting, self.clock = place, card, meeting, clock
        self.deadline = clock.now() + limit
        self.board: Board | None = None
        self.session = ""

    @property
    def first(self) -> bool:
        """Whether we are rank 0."""
        return self.place.rank == 0

    def meet(self) -> Roster:
        """Until all nodes are there.

        Raises:
            AicrError: TIMEOUT naming the pods that did not come; SERVICE_UNAVAILABLE when rank 0 cannot be
                reached, or says that somebody did not come.
        """
        if self.first:
            self.board = self._connect(self._left)
            return self._call_roll(self.board)
        while True:
            board = self._connect(max(self._left, 1.0))
            try:
                roster = self._answer(board)
            except AicrError as error:
                # Rank 0 may just have been restarted.
                if self._left <= 0 or error.context.get("told"):
                    raise
                roster = None
            if roster is not None:
                self.board = board
                return roster
            self.clock.sleep(2 * _TIMES.board_look)

    @property
    def _left(self) -> float:
        return self.deadline - self.clock.now()

    def _connect(self, limit: float) -> Board:
        return self.meeting(
            self.place.master_addr,
            self.place.master_port,
            serves=self.first,
            limit=limit,
            clock=self.clock,
        )

    def _call_roll(self, board: Board) -> Roster:
        cards: dict[int, Card] = {0: self.card}
        while True:
            for rank in range(self.place.nodes):
                if rank not in cards and (text := board.get(f"node/{rank}")):
                    cards[rank] = Card(**json.loads(text))
            if len(cards) == self.place.nodes:
                break
            if self._left <= 0:
                missing = [pod for n, pod in enumerate(self.place.pods) if n not in cards]
                text = f"{', '.join(missing)} did not come to rank 0"
                self._call_off(board, text, cards.values())
                raise AicrError(TIMEOUT, text, hint="read the logs of these pods' checks")
            self.clock.sleep(_TIMES.board_look)
        ordered = tuple(cards[rank] for rank in range(self.place.nodes))
        problem = _mismatch(ordered, self.place)
        self.session = self.card.token
        if problem:
            self._call_off(board, problem, ordered)
            raise AicrError(SERVICE_UNAVAILABLE, problem)
        document = {"session": self.session, "cards": [asdict(one) for one in ordered]}
        board.put("roster", json.dumps(document))
        return Roster(self.session, ordered)

    def _call_off(self, board: Board, why: str, cards: Iterable[Card]) -> None:
        """Tell those who came that it comes to nothing, and stay until they have heard it."""
        tokens = [card.token for card in cards]
        board.put("roster", json.dumps({"missing": why, "tokens": tokens}))
        deadline = self.clock.now() + _TIMES.heard
        others = [token for token in tokens if token != self.card.token]
        while others and self.clock.now() < deadline:
            self.clock.sleep(_TIMES.board_look)
            others = [token for token in others if board.get(f"heard/{token}") is None]

    def _answer(self, board: Board) -> Roster | None:
        """The roster with us in it; None when the board is that of an earlier run.

        Raises:
            AicrError: rank 0 is gone, nobody calls the roll, or somebody did not come.
        """
        name = f"node/{self.place.rank}"
        board.put(name, json.dumps(asdict(self.card)))
        # Rank 0 waits as long as we do, and is to be heard when it gives up.
        until = self.clock.now() + max(self._left, 0) + _TIMES.heard
        while True:
            text = board.get("roster")
            if text is not None:
                document = json.loads(text)
                if "missing" in document:
                    if self.card.token not in document["tokens"]:
                        return None
                    board.put(f"heard/{self.card.token}", "")
                    raise AicrError(
                        SERVICE_UNAVAILABLE, document["missing"], context={"told": True}
                    )
                roster = Roster(
                    document["session"], tuple(Card(**one) for one in document["cards"])
                )
                if all(one.token != self.card.token for one in roster.cards):
                    return None
                self.session = roster.session
                return roster
            if self.clock.now() >= until:
                raise AicrError(TIMEOUT, "rank 0 does not call the roll")
            self.clock.sleep(_TIMES.board_look)

    # While the workers run, and after

    def put(self, name: str, document: Any) -> None:
        """Leave a document of this session."""
        assert self.board is not None
        self.board.put(f"{self.session}/{name}", json.dumps(document))

    def get(self, name: str) -> Any:
        """A document of this session, or None."""
        assert self.board is not None
        text = self.board.get(f"{self.session}/{name}")
        return None if text is None else json.loads(text)

    def ends(self, own: Any, limit: float) -> list[Any]:
        """On rank 0: the ends of all nodes, None for one that does not report within *limit* seconds."""
        found: list[Any] = [own, *([None] * (self.place.nodes - 1))]
        self._each("end", found, limit)
        return found

    def verdict(self, limit: float) -> Any:
        """On the others: what rank 0 came to.

        Raises:
            AicrError: rank 0 is gone or says nothing within *limit* seconds.
        """
        deadline = self.clock.now() + limit
        while True:
            found = self.get("verdict")
            if found is not None:
                self.put(f"read/{self.place.rank}", True)
                return found
            if self.clock.now() >= deadline:
                raise AicrError(TIMEOUT, f"rank 0 said nothing within {limit:g} s")
            self.clock.sleep(_TIMES.board_look)

    def part(self, limit: float) -> None:
        """On rank 0: stay until all have read the verdict, at most *limit* seconds."""
        read: list[Any] = [True, *([None] * (self.place.nodes - 1))]
        self._each("read", read, limit)

    def _each(self, name: str, found: list[Any], limit: float) -> None:
        deadline = self.clock.now() + limit
        while True:
            for rank, document in enumerate(found):
                if document is None:
                    found[rank] = self.get(f"{name}/{rank}")
            if all(one is not None for one in found) or self.clock.now() >= deadline:
                return
            self.clock.sleep(_TIMES.board_look)


def _mismatch(cards: tuple[Card, ...], place: Place) -> str:
    """What is wrong with those who came; "" when they are the gang that the file named."""
    strange = [card.pod for card, pod in zip(cards, place.pods, strict=True) if card.pod != pod]
    if strange:
        return f"{', '.join(strange)} came with a rank that is another pod's here: a mounted file is late"
    generations = {card.generation for card in cards}
    if len(generations) > 1:
        shown = "; ".join(f"{card.pod}={card.generation}" for card in cards)
        return f"the members read different generations of the gang: {shown}"
    return ""
