"""Runs the script of a trainer or a data loader in a pod that PERSIA's operator makes:
entry.py [ARGUMENT...]

The operator starts its pods with persia-launcher, which starts this in the place of the
script that PERSIA_SCRIPT names. It finds out what the script would not, and the script
then runs with the same arguments.
"""

import os
import signal
import sys
import time

import checks
import coordinator
import gateway
from processes import Command

# How long what is told to end may take, within the 30 s that such a pod has.
STOP_SECONDS = 20


def log(text):
    print(f"entry.py: {text}", file=sys.stderr, flush=True)


def script_environment(environment):
    """The environment of the script: what it would be without this one in between."""
    environment = checks.with_driver(dict(environment))
    entry = "PERSIA_DATALOADER_ENTRY"
    if environment["PERSIA_ROLE"] == coordinator.TRAINER:
        entry = "PERSIA_NN_WORKER_ENTRY"
        environment.update(among_trainers(environment))
    environment[entry] = environment["PERSIA_SCRIPT"]
    return environment


def among_trainers(environment):
    """Which of all trainers' processes this is. torch.distributed.launch knows of those in
    its pod only: since PyTorch 1.9 it waits for all others at an address, and the pods of
    PERSIA's operator have none that could be known before they run. PERSIA's trainers find
    each other through NATS."""
    node, nodes = int(environment["PERSIA_NODE_RANK"]), int(environment["PERSIA_NODES"])
    processes = int(environment["NPROC_PER_NODE"])
    return {
        "REPLICA_INDEX": str(node),
        "REPLICA_SIZE": str(nodes),
        "NODE_RANK": str(node),
        "RANK": str(node * processes + int(environment["LOCAL_RANK"])),
        "WORLD_SIZE": str(nodes * processes),
        # The launcher's own meeting point is not for the processes of other pods.
        "TORCHELASTIC_USE_AGENT_STORE": "False",
        "NCCL_ASYNC_ERROR_HANDLING": environment.get("NCCL_ASYNC_ERROR_HANDLING", "1"),
        "TORCH_NCCL_ASYNC_ERROR_HANDLING": environment.get("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"),
    }


class Script:
    """The script, and how far it is."""

    def __init__(self, environment, arguments):
        self.environment, self.arguments = environment, arguments
        self.status, self.stopped = None, False

    def values(self):
        """What the metrics gateway is told."""
        return {"alive": int(self.status is None), "finished": int(self.status == 0)}

    def run(self):
        trouble = checks.before(self.environment["PERSIA_ROLE"], self.environment) or self.no_gpus()
        if trouble:
            log(trouble)
            return 1
        if self.stopped:
            return 128 + signal.SIGTERM
        command = Command([sys.executable, "-u", self.environment["PERSIA_SCRIPT"]] + self.arguments, self.environment)
        while command.status() is None and not self.stopped:
            time.sleep(0.2)
        return command.stop(STOP_SECONDS)

    def no_gpus(self):
        """Why the GPUs cannot be used, or nothing, also when told to end."""
        check = checks.GPUs(self.environment)
        while check.waiting() and not self.stopped:
            time.sleep(0.2)
        trouble = None if self.stopped else check.trouble()
        if check.command:
            check.command.stop(STOP_SECONDS)
        return trouble

    def stop(self, *_):
        """Take the signal that tells the pod to end."""
        self.stopped = True


def main(environment, arguments):
    script = Script(script_environment(environment), arguments)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, script.stop)
    told = None
    # Of the processes of a pod the first one speaks for all.
    if environment.get("LOCAL_RANK", "0") == "0":
        told = gateway.of(environment, log)
    if told:
        told.keep_telling(script.values)
    script.status = script.run()
    if told:
        told.tell(script.values)
    return script.status


if __name__ == "__main__":
    sys.exit(main(os.environ, sys.argv[1:]))
