"""The weekly job: finds images that drifted below unmoved pins, and proposes the page as a pull request.

```
pinned charts, pulled ─► bill ─► same as docs/container-images.md?  ─ yes ─► done
                                  └ no ─► branch bom-refresh with the new page ─► push ─► pull request
```
One branch has one pull request: while it is open, a later run only brings the branch up to date, and
does nothing when the proposal is still the same. A request that could not be opened is opened by the
next run. The checkout is left as it was found. What cannot be
done (a chart that cannot be pulled, a push that is refused) is an error with exit status 1, never a
page that lacks images. Source: requirement C-139.

Usage, in a clean checkout of the base branch:
    python -m tools.bom_refresh [--remote origin] [--base main] [--open-with gh | --no-open]

The program is called as gh is: `pr list --head … --state open` prints the open requests, and
`pr create --base … --head … --title … --body …` opens one.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from aicr.bundle import bom_page
from aicr.bundle.helm_program import without_userinfo
from aicr.errors import AicrError
from tools import bom_docs

BRANCH: Final = "bom-refresh"
SUBJECT: Final = "Images of the catalogue drifted below unmoved pins"
CURRENT: Final = "current"
PROPOSED: Final = "proposed"
PUSHED: Final = "pushed, to be opened by hand"
UPDATED: Final = "proposal brought up to date"
UNCHANGED: Final = "proposed before, still the same"
_SHOWN: Final = 60


class RefreshError(Exception):
    """What keeps the job from ending; its text is for people."""


class Requests:
    """The pull requests of the branch, through a program that is called as gh is."""

    def __init__(self, program: str, base: str, folder: Path) -> None:
        self.program = program
        self.base = base
        self.folder = folder

    def is_open(self) -> bool:
        """Whether there is one already."""
        words = ["pr", "list", "--head", BRANCH, "--base", self.base, "--state", "open"]
        return bool(run([self.program, *words], self.folder).strip())

    def open(self, text: str) -> None:
        """Open one, and print where it is."""
        words = ["pr", "create", "--base", self.base, "--head", BRANCH]
        print(run([self.program, *words, "--title", SUBJECT, "--body", text], self.folder).strip())


class Checkout:
    """A git checkout, and the commands that the job runs in it."""

    def __init__(self, root: Path, remote: str) -> None:
        self.root = root
        self.remote = remote

    def git(self, *words: str) -> str:
        """The output of a git command; RefreshError when it fails."""
        return run(["git", *words], self.root)

    def require_base(self, base: str) -> None:
        """Refuse to propose anything else than the page: no change, no commit of another branch."""
        if self.git("status", "--porcelain"):
            raise RefreshError("the checkout has changes that are not committed")
        self.git("fetch", "--quiet", self.remote, base)
        if self.git("rev-parse", "HEAD") != self.git("rev-parse", "FETCH_HEAD"):
            raise RefreshError(f"the checkout is not at {base} of {self.remote}")

    def proposed(self, page: str) -> str | None:
        """The page as the remote's branch has it, None when there is no such branch."""
        if not self.git("ls-remote", "--heads", self.remote, BRANCH):
            return None
        self.git("fetch", self.remote, f"+refs/heads/{BRANCH}:refs/remotes/{self.remote}/{BRANCH}")
        return self.git("show", f"refs/remotes/{self.remote}/{BRANCH}:{page}")

    def propose(self, page: str, text: str) -> None:
        """Commit *text* as the page on the branch, push it, and go back to where we were."""
        start = self.git("rev-parse", "--abbrev-ref", "HEAD").strip()
        # Runners check out a commit, not a branch.
        back = ["--detach", self.git("rev-parse", "HEAD").strip()] if start == "HEAD" else [start]
        self.git("switch", "--quiet", "--force-create", BRANCH)
        try:
            (self.root / page).write_text(text, encoding="utf-8", newline="\n")
            self.git("add", "--", page)
            self.git("commit", "--quiet", "--message", SUBJECT)
            self.git("push", "--quiet", "--force-with-lease", self.remote, f"{BRANCH}:{BRANCH}")
        finally:
            self.git("switch", "--quiet", "--discard-changes", *back)


def run(command: Sequence[str], folder: Path) -> str:
    """The output of a command in a folder.

    Raises:
        RefreshError: it cannot be started or fails.
    """
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "GIT_TERMINAL_PROMPT": "0"},
        )
    except OSError as error:
        raise RefreshError(f"{command[0]} cannot be started: {error.strerror}") from error
    if done.returncode != 0:
        # An address that git repeats may have a token in it.
        said = (done.stderr or done.stdout).strip() or f"exit status {done.returncode}"
        raise RefreshError(without_userinfo(f"{' '.join(command[:3])} failed: {said}"))
    return done.stdout


def body(differences: list[str]) -> str:
    """The text of the pull request."""
    shown = differences[:_SHOWN]
    more = len(differences) - len(shown)
    return "\n".join(
        [
            "The sources that the registry pins render something else than the page says.",
            "Look at what changed before merging: a chart or tag that was pushed again is the usual "
            "reason.",
            "",
            *(f"- {line}" for line in shown),
            *([f"- and {more} more"] if more else []),
        ]
    )


def refresh(
    checkout: Checkout, page: str, text: str, differences: list[str], requests: Requests | None
) -> str:
    """Propose *text* as the page, once; says what was done.

    Args:
        checkout: a clean checkout of the base branch.
        page: path of the page in it.
        text: what the page should say.
        differences: how it differs from what it says; none means that there is nothing to do.
        requests: opens the pull request of the pushed branch; None leaves that to people.

    Raises:
        RefreshError: git or the program that opens the request failed.
    """
    if not differences:
        return CURRENT
    same = checkout.proposed(page) == text
    if not same:
        checkout.propose(page, text)
    if requests is None:
        return UNCHANGED if same else PUSHED
    if not requests.is_open():
        requests.open(body(differences))
        return PROPOSED
    return UNCHANGED if same else UPDATED


def main(argv: Sequence[str] | None = None, *, root: Path = bom_docs.ROOT) -> int:
    """Command-line entry: 0 when the page is current or the change is proposed, else 1."""
    parser = argparse.ArgumentParser(description="Propose the page of images when it drifted.")
    bom_docs.add_flags(parser)
    parser.add_argument("--remote", default="origin", help="where the branch is pushed")
    parser.add_argument("--base", default="main", help="branch that the request is for")
    parser.add_argument("--open-with", default="gh", metavar="PROGRAM", help="default: gh")
    parser.add_argument("--no-open", action="store_true", help="push only; open it by hand")
    given = parser.parse_args(argv)
    checkout = Checkout(root, given.remote)
    requests = None if given.no_open else Requests(given.open_with, given.base, root)
    try:
        # Asked first: a branch that is pushed and then not proposed is seen by nobody.
        if not given.no_open and shutil.which(given.open_with) is None:
            raise RefreshError(
                f"{given.open_with} is not installed: name another with --open-with, or --no-open"
            )
        checkout.require_base(given.base)
        before = (root / given.page).read_text(encoding="utf-8")
        bill = bom_docs.fresh_bill(
            bom_docs.catalogue(given.catalogue), pull=True, chart_dir=given.chart_dir
        )
        differences = bom_page.stale(before, bill, full=True)
        text = bom_docs.written(bill, before)
        done = refresh(checkout, given.page, text, differences, requests)
    except (AicrError, RefreshError, OSError) as error:
        print(f"bom: {error}", file=sys.stderr)
        return 1
    print(f"bom: {given.page}: {done}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
