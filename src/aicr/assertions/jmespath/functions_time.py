"""Functions of kyverno on points in time (RFC 3339) and durations.

A moment is nanoseconds since 1970 and an offset from UTC in seconds, so nothing rounds. Layouts are
Go's, written as the reference time ``Mon Jan 2 15:04:05 MST 2006``.
Source: validators spec 8.8.5.
"""

from __future__ import annotations

import re
import time
from datetime import date
from typing import Any, Final, NamedTuple

from aicr.assertions.jmespath.signatures import Function, function
from aicr.assertions.jmespath.values import FunctionError
from aicr.errors import AicrError
from aicr.values import durations

Arguments = list[Any]
_RFC3339: Final = "2006-01-02T15:04:05Z07:00"
_SECOND: Final = 1_000_000_000
_EPOCH: Final = date(1970, 1, 1).toordinal()
#: Seconds between the years 1 and 1970; Go truncates from the former.
_SINCE_YEAR_ONE: Final = (_EPOCH - 1) * 86_400
_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)
_DAYS: Final = "Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday"
_TOKENS: Final = {
    "2006": r"(?P<year>\d{4})",
    "January": rf"(?P<month_name>{'|'.join(_MONTHS)})",
    "Jan": rf"(?P<month_short>{'|'.join(name[:3] for name in _MONTHS)})",
    "Monday": rf"(?:{_DAYS})",
    "Mon": rf"(?:{'|'.join(name[:3] for name in _DAYS.split('|'))})",
    "MST": r"(?P<zone_name>UTC|GMT)",
    "Z07:00": r"(?P<zone>Z|[+-]\d\d:\d\d)",
    "-07:00": r"(?P<zone>[+-]\d\d:\d\d)",
    "Z0700": r"(?P<zone>Z|[+-]\d{4})",
    "-0700": r"(?P<zone>[+-]\d{4})",
    "01": r"(?P<month>\d\d)",
    "02": r"(?P<day>\d\d)",
    "03": r"(?P<hour12>\d\d)",
    "04": r"(?P<minute>\d\d)",
    "05": r"(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,9})\d*)?",
    "15": r"(?P<hour>\d\d)",
    "_2": r" ?(?P<day>\d{1,2})",
    "PM": r"(?P<half>AM|PM)",
    "1": r"(?P<month>\d{1,2})",
    "2": r"(?P<day>\d{1,2})",
    "3": r"(?P<hour12>\d{1,2})",
}
_TOKEN: Final = re.compile("|".join(re.escape(token) for token in _TOKENS))


class Moment(NamedTuple):
    """A point in time; *nanoseconds* since 1970 in UTC, *offset* in seconds east."""

    nanoseconds: int
    offset: int

    def parts(self) -> tuple[date, int]:
        """The local date and the second of the day."""
        days, seconds = divmod(self.nanoseconds // _SECOND + self.offset, 86_400)
        try:
            return date.fromordinal(days + _EPOCH), seconds
        except (ValueError, OverflowError):
            raise FunctionError("the time is out of range") from None

    def text(self) -> str:
        """The moment as RFC 3339 in whole seconds."""
        day, seconds = self.parts()
        clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        sign, minutes = ("-" if self.offset < 0 else "+"), abs(self.offset) // 60
        zone = f"{sign}{minutes // 60:02}:{minutes % 60:02}" if self.offset else "Z"
        return f"{day.year:04}-{day.month:02}-{day.day:02}T{clock}{zone}"


def _pattern(layout: str) -> re.Pattern[str]:
    parts, end = [], 0
    for match in _TOKEN.finditer(layout):
        parts += [re.escape(layout[end : match.start()]), _TOKENS[match.group()]]
        end = match.end()
    try:
        return re.compile("".join(parts) + re.escape(layout[end:]), re.ASCII)
    except re.error:
        raise FunctionError(f"the layout {layout!r} names a part of the time twice") from None


def _parse(text: str, layout: str = _RFC3339) -> Moment:
    match = _pattern(layout).fullmatch(text)
    if match is None:
        raise FunctionError(f"cannot parse {text!r} as a time of the form {layout!r}")
    found = {key: value for key, value in match.groupdict().items() if value is not None}
    month = int(found.get("month", 1))
    if "month_name" in found:
        month = _MONTHS.index(found["month_name"]) + 1
    elif "month_short" in found:
        month = [name[:3] for name in _MONTHS].index(found["month_short"]) + 1
    hour = int(found.get("hour", 0))
    if "hour12" in found:
        hour = int(found["hour12"]) % 12 + (12 if found.get("half") == "PM" else 0)
    minute, second = int(found.get("minute", 0)), int(found.get("second", 0))
    offset = _offset(found.get("zone", "Z"))
    if hour > 23 or minute > 59 or second > 59 or int(found.get("hour12", 0)) > 12:
        raise FunctionError(f"{text!r} is out of range")
    try:
        # Go's year 0 is out of reach here; a layout without a year is of no use for comparing.
        day = date(int(found.get("year", 1)), month, int(found.get("day", 1)))
    except ValueError:
        raise FunctionError(f"{text!r} is no day of the calendar") from None
    seconds = (day.toordinal() - _EPOCH) * 86_400 + hour * 3600 + minute * 60 + second - offset
    return Moment(seconds * _SECOND + int(found.get("fraction", "0").ljust(9, "0")), offset)


def _offset(text: str) -> int:
    if text == "Z":
        return 0
    digits = text[1:].replace(":", "")
    hours, minutes = int(digits[:2]), int(digits[2:])
    if hours > 24 or minutes > 59:
        raise FunctionError(f"{text!r} is no offset from UTC")
    seconds = hours * 3600 + minutes * 60
    return -seconds if text[0] == "-" else seconds


def _duration(text: str) -> int:
    try:
        return durations.parse(text)
    except AicrError as error:
        raise FunctionError(error.message) from error


def _now(local: bool) -> str:
    now = time.time_ns()
    offset = time.localtime(now // _SECOND).tm_gmtoff if local else 0
    return Moment(now, offset).text()


def _since(arguments: Arguments) -> str:
    layout, start, end = arguments
    first = _parse(start, layout or _RFC3339)
    last = _parse(end, layout or _RFC3339) if end else Moment(time.time_ns(), 0)
    return _difference(first, last)


def _difference(first: Moment, last: Moment) -> str:
    largest = (1 << 63) - 1
    span = last.nanoseconds - first.nanoseconds
    return durations.format(max(-largest, min(span, largest)))


def _cron(arguments: Arguments) -> str:
    day, seconds = _parse(arguments[0]).parts()
    return f"{seconds // 60 % 60} {seconds // 3600} {day.day} {day.month} {day.isoweekday() % 7}"


def _add(arguments: Arguments) -> str:
    moment = _parse(arguments[0])
    return Moment(moment.nanoseconds + _duration(arguments[1]), moment.offset).text()


def _between(arguments: Arguments) -> bool:
    moment, start, end = (_parse(text).nanoseconds for text in arguments)
    return start < moment < end


def _truncate(arguments: Arguments) -> str:
    moment, step = _parse(arguments[0]), _duration(arguments[1])
    rest = (moment.nanoseconds + _SINCE_YEAR_ONE * _SECOND) % step if step > 0 else 0
    return Moment(moment.nanoseconds - rest, moment.offset).text()


FUNCTIONS: Final[list[Function]] = [
    function("time_since", _since, "string", "string", "string"),
    function("time_now", lambda a: _now(local=True)),
    function("time_now_utc", lambda a: _now(local=False)),
    function("time_to_cron", _cron, "string"),
    function("time_add", _add, "string", "string"),
    function("time_parse", lambda a: _parse(a[1], a[0]).text(), "string", "string"),
    function("time_utc", lambda a: Moment(_parse(a[0]).nanoseconds, 0).text(), "string"),
    function("time_diff", lambda a: _difference(_parse(a[0]), _parse(a[1])), "string", "string"),
    function("time_before", lambda a: _parse(a[0])[0] < _parse(a[1])[0], "string", "string"),
    function("time_after", lambda a: _parse(a[0])[0] > _parse(a[1])[0], "string", "string"),
    function("time_between", _between, "string", "string", "string"),
    function("time_truncate", _truncate, "string", "string"),
]
