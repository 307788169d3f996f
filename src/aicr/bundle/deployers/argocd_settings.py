"""The options of a run that shape Applications: the `deployer:` keys, the parent's name.

```
--set deployer:namePrefix=eu-                put before the name of each child Application
--set deployer:destinationServer=https://…   the cluster that the charts go to
--set deployer:project=gpu                   the Argo CD project of the children
--set deployer:cascadeDelete=true            deleting an Application deletes what it deployed
--app-name stack                             the parent Application
```
It must not know what an Application looks like. Source: bundler spec 1.1, 1.4, 5.3; field case F4.
"""

from __future__ import annotations

from aicr.bundle.deployers import gitops
from aicr.bundle.overrides import RESERVED_KEY, SET, SET_FILE, SET_JSON
from aicr.errors import AicrError, invalid, nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Final

    from aicr.bundle.layout import Folder
    from aicr.bundle.options import BundleOptions

NAME_PREFIX: Final = "namePrefix"
DESTINATION_SERVER: Final = "destinationServer"
PROJECT: Final = "project"
CASCADE_DELETE: Final = "cascadeDelete"
KEYS: Final = (CASCADE_DELETE, DESTINATION_SERVER, NAME_PREFIX, PROJECT)

#: What Go's ParseBool reads (bundler spec 0.4).
_TRUE: Final = ("1", "t", "T", "TRUE", "true", "True")
_FALSE: Final = ("0", "f", "F", "FALSE", "false", "False")
_DNS_LABEL: Final = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
#: The host is what makes it an address: https:///path and https://:443 have none.
_HOST: Final = r"(?:\[[0-9A-Fa-f:.]+\]|[^\s\"'`\\@/:?#\[\]\x00-\x1f\x7f]+)"
_FORMS: Final[dict[str, tuple[str, str]]] = {
    NAME_PREFIX: (r"[a-z0-9][a-z0-9-]*", "lower-case letters, digits and '-', not '-' first"),
    DESTINATION_SERVER: (
        rf"https://{_HOST}(?::[0-9]+)?(?:[/?#][^\s\"'`\\@\x00-\x1f\x7f]*)?",
        "https:// and the address of an API server, without user, quotes or blanks",
    ),
    PROJECT: (rf"{_DNS_LABEL}(?:\.{_DNS_LABEL})*", "the name of an Argo CD project"),
    CASCADE_DELETE: ("|".join(_TRUE + _FALSE), "true or false"),
}

IN_CLUSTER: Final = "https://kubernetes.default.svc"
DEFAULT_PROJECT: Final = "default"
_PREFIX: Final = f"{RESERVED_KEY}:"


class Settings:
    """The options of a run for its Applications, with defaults filled in.

    Attributes:
        parent: name of the parent Application.
        name_prefix: put before each child's name.
        destination_server: address of the API server of the cluster that the charts go to.
        project: Argo CD project of the children.
        cascade_delete: whether deleting an Application deletes what it deployed.
    """

    __slots__ = ("cascade_delete", "destination_server", "name_prefix", "parent", "project")

    def __init__(self, parent: str, keys: dict[str, str]) -> None:
        self.parent = parent
        self.name_prefix = keys.get(NAME_PREFIX, "")
        self.destination_server = keys.get(DESTINATION_SERVER, IN_CLUSTER)
        self.project = keys.get(PROJECT, DEFAULT_PROJECT)
        self.cascade_delete = keys.get(CASCADE_DELETE) in _TRUE

    def child(self, release: str) -> str:
        """Name of the Application of a release: with the prefix, cut to the length of a release."""
        return gitops.fitted(self.name_prefix + release, gitops.MAX_RELEASE)


def read(options: BundleOptions, default_parent: str) -> Settings:
    """The options of a run for its Applications.

    Args:
        options: the flags.
        default_parent: name of the parent Application without --app-name.

    Raises:
        AicrError: INVALID_REQUEST for a malformed name, and for a `deployer:` key that is unknown,
            malformed, given twice (decision 7), or given with --set-json or --set-file.
    """
    for flag, texts in ((SET_JSON, options.set_json), (SET_FILE, options.set_file)):
        for text in texts:
            if text.startswith(_PREFIX):
                raise invalid(
                    f'{flag} {text.partition("=")[0]}: the reserved key "{RESERVED_KEY}" takes '
                    f"{SET} only",
                    where=flag,
                    hint=f"write {SET} {text.partition('=')[0]}=…",
                )
    keys: dict[str, str] = {}
    for text in options.set:
        if not text.startswith(_PREFIX):
            continue
        key, _, value = text.removeprefix(_PREFIX).partition("=")
        if key not in KEYS:
            raise _unknown(key)
        if key in keys:
            raise invalid(
                f"{SET} {_PREFIX}{key} is given twice", where=SET, hint="keep one of the two flags"
            )
        import re

        pattern, form = _FORMS[key]
        if not re.fullmatch(pattern, value) or len(value) > gitops.MAX_SUBDOMAIN:
            raise invalid(f"invalid {SET} {_PREFIX}{key}={value!r}: expected {form}", where=SET)
        keys[key] = value
    parent = options.app_name or default_parent
    gitops.check_name(parent, "--app-name", limit=gitops.MAX_LABEL)
    return Settings(parent, keys)


def check_names(settings: Settings, folders: Iterable[Folder]) -> None:
    """Refuse children of one name, or with the name of their parent.

    Raises:
        AicrError: INVALID_REQUEST naming the two (bundler spec 5.3).
    """
    taken = {settings.parent: "the parent Application"}
    for folder in folders:
        name = settings.child(folder.release)
        gitops.check_name(name, "Application name", limit=gitops.MAX_RELEASE)
        if name in taken:
            raise invalid(
                f"the Application {name!r} of release {folder.release!r} has the name of "
                f"{taken[name]}",
                where=folder.release,
                hint=f"choose another --app-name or --set {RESERVED_KEY}:namePrefix=…",
            )
        taken[name] = f"the one of release {folder.release!r}"


def _unknown(key: str) -> AicrError:
    close = nearest(key, list(KEYS))
    return invalid(
        f'{SET} {_PREFIX}{key} is unknown: "{RESERVED_KEY}" takes {", ".join(KEYS)}',
        where=SET,
        hint=f"did you mean {_PREFIX}{close}=…?" if close else f"write {SET} {_PREFIX}{KEYS[0]}=…",
    )
