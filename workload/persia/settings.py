"""Reads the settings of a replica from its environment."""

from typing import Any, Dict, Mapping

import checks

# The largest number: threads cannot wait for some centuries.
MOST = 10**9


class Settings:
    """The settings. Only tests set the times."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.role = environment["PERSIA_ROLE"]
        self.replica = int(environment["REPLICA_INDEX"])
        self.coordinator = environment["PERSIA_COORDINATOR"]
        self.token = environment["PERSIA_TOKEN"]
        roles = [part.split("=") for part in environment.get("PERSIA_REPLICAS", "").split(",") if part]
        self.replicas: Dict[str, int] = {role: int(count) for role, count in roles}
        self.run = environment.get("PERSIA_RUN", "")
        self.job = environment.get("PERSIA_JOB", "")
        self.pod = environment.get("PERSIA_POD_UID", "")
        self.revision = environment.get("PERSIA_REVISION", "")
        self.node = environment.get("PERSIA_NODE", "")  # empty if the machine is not to be measured
        self.idle_file = environment["PERSIA_IDLE_FILE"]
        self.state_directory = environment["PERSIA_STATE_DIR"]
        self.scratch = list(filter(None, environment.get("PERSIA_SCRATCH", "").split(":")))
        self.progress_file = environment.get("PERSIA_PROGRESS_FILE")
        self.checkpoints = environment.get("PERSIA_CKPT_ROOT")
        self.saves_elsewhere = "PERSIA_CKPT_DIR" in environment
        # Only releases without persia-launcher need this variable.
        self.older = "PERSIA_RUNTIME" in environment
        # Whether a pod that exits with status 0 is not started again, as in a Kubernetes Job.
        self.once = "PERSIA_ONCE" in environment
        # Whether servers keep their memory when another replica fails.
        self.partial = environment.get("PERSIA_RECOVERY") == "partial"
        self.server = environment.get("PERSIA_SERVER", "")  # the address of a server's own HTTP port
        self.keep: int = number(environment, "PERSIA_CKPT_KEEP", "2", kind=int)
        self.attempts: int = number(environment, "PERSIA_ATTEMPTS", "5", kind=int)
        self.nats = checks.address(environment.get("PERSIA_NATS_URL", ""))
        self.beat_seconds: float = number(environment, "PERSIA_BEAT_SECONDS", "5")
        self.lost_seconds: float = number(environment, "PERSIA_LOST_SECONDS", "60", 30)
        self.end_seconds: float = number(environment, "PERSIA_END_SECONDS", "60")
        self.nats_seconds: float = number(environment, "PERSIA_NATS_SECONDS", "30")
        self.stuck_seconds: float = number(environment, "PERSIA_STUCK_SECONDS", "3600", 0)
        self.stop_seconds: float = number(environment, "PERSIA_STOP_SECONDS", "20")
        self.memory_seconds: float = number(environment, "PERSIA_MEMORY_SECONDS", "900")
        self.hang_seconds: float = number(environment, "PERSIA_HANG_SECONDS", "10")
        self.backoff_seconds: float = number(environment, "PERSIA_BACKOFF_SECONDS", "10")
        self.look_seconds: float = number(environment, "PERSIA_LOOK_SECONDS", "60")


def number(environment: Mapping[str, str], name: str, default: str, least: float = 1, kind: type = float) -> Any:
    """Return a number from the environment, or the default. Raise a ValueError if it is out of bounds."""
    text = environment.get(name, default)
    try:
        value = kind(text)
    except ValueError:
        value = None
    # Every comparison with NaN is false.
    if value is None or not least <= value <= MOST or 0 < value < 1:
        kinds = ("0 or " if least == 0 else "") + ("a whole number" if kind is int else "a number")
        raise ValueError(f"{name} is {text!r}: must be {kinds} from {max(least, 1)} to {MOST}")
    return value
