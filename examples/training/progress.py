"""How far the training is: now, and in a checkpoint."""

import json
import os
import pathlib


def tell():
    """Tell that the training gets on. An attempt that stops telling is ended, and the next
    one goes on from the last checkpoint."""
    file = os.environ.get("PERSIA_PROGRESS_FILE")
    if file:
        pathlib.Path(file).touch()


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
