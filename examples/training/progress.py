"""Which batches a checkpoint has been trained on."""

import json
import os


def load(checkpoint):
    """The numbers of the batches that a checkpoint has seen: none without one."""
    if not checkpoint:
        return set()
    with open(os.path.join(checkpoint, "progress.json")) as file:
        return set(json.load(file)["trained"])


def save(checkpoint, trained):
    """Note the batches in the checkpoint's folder, before PERSIA completes it."""
    os.makedirs(checkpoint)
    with open(os.path.join(checkpoint, "progress.json"), "w") as file:
        json.dump({"trained": sorted(trained)}, file)


def remaining(batches, trained):
    """The numbers of the batches that are still to be trained, in order."""
    return [number for number in range(batches) if number not in trained]
