"""What can happen to a job, and what its coordinator can do: the events and the actions of its machine (see machine.py)."""

from dataclasses import dataclass
from typing import Optional, Union

from checkpoints import Found
from record import Values


@dataclass(frozen=True)
class Event:
    """Something that has happened, with its time by a clock that only goes forward, and by the wall clock, both in seconds."""

    now: float
    wall: float


@dataclass(frozen=True)
class Reported(Event):
    """A replica has reported. The machine acts with an Answer."""

    member: Values


@dataclass(frozen=True)
class Asked(Event):
    """Somebody has asked for the status of a run, maybe the job's completion, which is known. The machine acts with a Status."""

    run: str
    known: bool


@dataclass(frozen=True)
class Ticked(Event):
    """Time has passed."""


@dataclass(frozen=True)
class Loaded(Event):
    """The record is read, or could not be read."""

    kept: Optional[Values]
    error: Optional[Exception] = None


@dataclass(frozen=True)
class Saved(Event):
    """The record is written, or could not be written. full is whether the volume has no room for another file."""

    error: Optional[Exception] = None
    full: bool = False


@dataclass(frozen=True)
class Scanned(Event):
    """The checkpoints are found, or could not be. held is whether the file has the record of this coordinator."""

    found: Optional[Found]
    held: bool = True
    error: Optional[Exception] = None


@dataclass(frozen=True)
class Removed(Event):
    """A checkpoint is removed, or could not be removed."""

    error: Optional[Exception] = None


@dataclass(frozen=True)
class Leaving(Event):
    """The command of this coordinator's replica has ended, because its pod has to end."""


@dataclass(frozen=True)
class Answer:
    """Answer a report."""

    order: Values


@dataclass(frozen=True)
class Status:
    """Answer a question for the status."""

    document: Values


@dataclass(frozen=True)
class Log:
    """Tell people."""

    text: str


@dataclass(frozen=True)
class Load:
    """Read the record. Loaded follows."""


@dataclass(frozen=True)
class Save:
    """Write the record, unless another coordinator has claimed the run, or has written since claimed was read. Saved
    follows."""

    values: Values
    claimed: Optional[Values]


@dataclass(frozen=True)
class Scan:
    """Find the checkpoints, unless another coordinator has claimed the run. Scanned follows."""

    values: Values
    claimed: Optional[Values]


@dataclass(frozen=True)
class Remove:
    """Remove a checkpoint. Removed follows."""

    folder: str


Action = Union[Answer, Status, Log, Load, Save, Scan, Remove]
