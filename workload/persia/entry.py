"""Runs the script of an nn-worker or a dataloader in a pod of PERSIA's operator: entry.py [ARGUMENT...]

The operator starts its pods with persia-launcher, which starts this program instead of the script that PERSIA_SCRIPT names. It
checks what the script needs, and then runs the script with the same arguments.
"""

import os
import signal
import sys
import time

import checks
import gateway
from processes import Command, adopt, heed_signals, log
from roster import NN_WORKER

# How long the script may take to end, of the 30 s that such a pod has.
STOP_SECONDS = 20


def script_environment(environment):
    """Return the environment of the script, as persia-launcher would have set it."""
    environment = dict(checks.for_gpus(environment))
    if environment["PERSIA_ROLE"] != NN_WORKER:
        return dict(environment, PERSIA_DATALOADER_ENTRY=environment["PERSIA_SCRIPT"])
    # The rank counts the processes of all nn-workers, and torch.distributed.launch knows only those of its pod: since PyTorch 1.9,
    # it waits for the others at an address, which these pods lack until they run. PERSIA's nn-workers find each other through NATS.
    environment.pop("MASTER_ADDR", None)  # of this pod alone
    node, nodes, processes = (int(environment[name]) for name in ("PERSIA_NODE_RANK", "PERSIA_NODES", "NPROC_PER_NODE"))
    return dict(
        environment, PERSIA_NN_WORKER_ENTRY=environment["PERSIA_SCRIPT"], REPLICA_INDEX=str(node), REPLICA_SIZE=str(nodes),
        NODE_RANK=str(node), RANK=str(node * processes + int(environment["LOCAL_RANK"])), WORLD_SIZE=str(nodes * processes),
        TORCHELASTIC_USE_AGENT_STORE="False",  # that of this pod's launcher is not for processes of other pods
    )


class Script:
    """The script, and its exit status."""

    def __init__(self, environment, arguments):
        self.environment, self.arguments = environment, arguments
        self.status, self.stopped = None, False

    def values(self):
        """Return the metrics that the pod pushes to the gateway."""
        return {"persia_replica_alive": int(self.status is None), "persia_replica_finished": int(self.status == 0)}

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
        """Return why PyTorch cannot use the GPUs, or None. Return None if the pod has to end."""
        check = checks.MachineCheck(self.environment)
        while check.waiting() and not self.stopped:
            time.sleep(0.2)
        trouble = None if self.stopped else check.trouble()
        if check.command:
            check.command.stop(STOP_SECONDS)
        return trouble


def main(environment, arguments):
    adopt()
    script = Script(script_environment(environment), arguments)
    heed_signals(script)
    # The first process of a pod pushes for all.
    metrics = gateway.of(environment if environment.get("LOCAL_RANK", "0") == "0" else {}, log)
    metrics.keep_pushing(script.values)
    script.status = script.run()
    metrics.push(script.values)
    return script.status


if __name__ == "__main__":
    sys.exit(main(os.environ, sys.argv[1:]))
