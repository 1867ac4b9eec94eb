"""What can happen to a job, and what its coordinator can do: the events and the actions of its machine (see machine.py)."""

from typing import NamedTuple, Optional, Union

from checkpoints import Found
from record import Values

# A replica has reported, or somebody asks for the status of a run: known is whether that is the completion. An Answer follows.
Reported = NamedTuple("Reported", [("member", Values)])
Asked = NamedTuple("Asked", [("run", str), ("known", bool)])

# Time has passed.
Ticked = NamedTuple("Ticked", [])

# The command of this coordinator's replica has ended, because its pod has to end.
Leaving = NamedTuple("Leaving", [])

# Answer a report with an order, or a question with the state of the job.
Answer = NamedTuple("Answer", [("values", Values)])

# Have every replica report now.
Call = NamedTuple("Call", [])

# Tell people.
Log = NamedTuple("Log", [("text", str)])

# Read the record, write it, find the checkpoints, and remove one. Save and Scan fail where Record.check raises.
Load = NamedTuple("Load", [])
Save = NamedTuple("Save", [("values", Values), ("claimed", Optional[Values])])
Scan = NamedTuple("Scan", [("values", Values), ("claimed", Optional[Values])])
Remove = NamedTuple("Remove", [("folder", str)])
Removed = NamedTuple("Removed", [("error", Optional[Exception])])


class Loaded(NamedTuple):
    error: Optional[Exception] = None
    kept: Optional[Values] = None


class Saved(NamedTuple):
    error: Optional[Exception] = None
    full: bool = False  # whether the volume has no room for another file
    older: Optional[Values] = None  # the record of an older coordinator that the file had
    safe: bool = False  # whether the volume holds no write back until it replaces another one


class Scanned(NamedTuple):
    error: Optional[Exception] = None
    found: Optional[Found] = None
    older: Optional[Values] = None  # as in Saved


Event = Union[Reported, Asked, Ticked, Loaded, Saved, Scanned, Removed, Leaving]
Action = Union[Answer, Call, Log, Load, Save, Scan, Remove]
