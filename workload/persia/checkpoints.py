"""The checkpoints of a run: ROOT/attempt-N, or folders below that, which a script may
name as it likes.

A checkpoint is complete when PERSIA has marked it so (embedding_dump_done) and has
written opt.pt, the last file of TrainCtx.dump_checkpoint.
"""

import os
import re
import shutil

ATTEMPT = re.compile(r"attempt-(\d+)$")
MARKS = ("embedding_dump_done", "opt.pt")


def directory(root, attempt):
    """Where an attempt writes its checkpoints."""
    return os.path.join(root, f"attempt-{attempt}") if root else None


def attempts(root):
    """The folders of the attempts with their numbers, the last one first."""
    found = []
    for entry in list_folder(root):
        match = ATTEMPT.match(entry)
        if match:
            found.append((int(match.group(1)), os.path.join(root, entry)))
    return sorted(found, reverse=True)


def last_attempt(root):
    """The number of the last attempt that has a folder, or 0."""
    return max([number for number, _ in attempts(root)] or [0])


def folders(root):
    """Everything that may be a checkpoint, with the number of its attempt."""
    for number, attempt in attempts(root):
        yield number, attempt
        for entry in list_folder(attempt):
            yield number, os.path.join(attempt, entry)


def is_complete(folder):
    return all(os.path.isfile(os.path.join(folder, mark)) for mark in MARKS)


def complete(root):
    """All complete checkpoints, the newest first."""
    found = []
    for number, folder in folders(root):
        if is_complete(folder):
            found.append((number, os.path.getmtime(os.path.join(folder, MARKS[-1])), folder))
    return [folder for _, _, folder in sorted(found, reverse=True)]


def newest(root):
    """The newest complete checkpoint, or None."""
    return next(iter(complete(root)), None)


def prune(root, keep, *also):
    """Remove complete checkpoints but the newest ones, and also keep some others."""
    for folder in complete(root)[max(keep, 1) :]:
        if folder not in also:
            shutil.rmtree(folder, ignore_errors=True)


def remove_incomplete(root):
    """Remove what attempts that have ended did not complete."""
    for _, folder in list(folders(root)):
        parts = [entry for entry in list_folder(folder) if entry == "dense.pt" or re.match(r"s\d+$", entry)]
        if parts and not is_complete(folder):
            shutil.rmtree(folder, ignore_errors=True)


def list_folder(folder):
    try:
        return os.listdir(folder) if folder else []
    except OSError:
        return []
