"""What can happen to a job, and what its coordinator can do: the events and the actions of its machine (see machine.py)."""

from typing import NamedTuple, Optional, Union

from checkpoints import Found
from record import Values


class Reported(NamedTuple):
    """A replica has reported. The machine acts with an Answer."""

    member: Values


class Asked(NamedTuple):
    """Somebody has asked for the status of a run, maybe the job's completion, which is known. The machine acts with an Answer."""

    run: str
    known: bool


class Ticked(NamedTuple):
    """Time has passed."""


class Loaded(NamedTuple):
    """The record is read, or could not be read."""

    error: Optional[Exception] = None
    kept: Optional[Values] = None


class Saved(NamedTuple):
    """The record is written, or could not be written. full is whether the volume has no room for another file, older the record
    of an older coordinator that the file had, or None, and safe whether the volume holds no write back until it replaces
    another one."""

    error: Optional[Exception] = None
    full: bool = False
    older: Optional[Values] = None
    safe: bool = False


class Scanned(NamedTuple):
    """The checkpoints are found, or could not be. older is the record of an older coordinator that the file had, or None."""

    error: Optional[Exception] = None
    found: Optional[Found] = None
    older: Optional[Values] = None


class Removed(NamedTuple):
    """A checkpoint is removed, or could not be removed."""

    error: Optional[Exception] = None


class Leaving(NamedTuple):
    """The command of this coordinator's replica has ended, because its pod has to end."""


class Answer(NamedTuple):
    """Answer a report with an order, or a question with the state of the job."""

    values: Values


class Log(NamedTuple):
    """Tell people."""

    text: str


class Load(NamedTuple):
    """Read the record. Loaded follows."""


class Save(NamedTuple):
    """Write the record, unless another coordinator has claimed the run, or has written since claimed was read. Saved
    follows."""

    values: Values
    claimed: Optional[Values]


class Scan(NamedTuple):
    """Find the checkpoints, unless another coordinator has claimed the run. Scanned follows."""

    values: Values
    claimed: Optional[Values]


class Remove(NamedTuple):
    """Remove a checkpoint. Removed follows."""

    folder: str


Event = Union[Reported, Asked, Ticked, Loaded, Saved, Scanned, Removed, Leaving]
Action = Union[Answer, Log, Load, Save, Scan, Remove]
