"""The checkpoints of a run: ROOT/attempt-N, or folders below that, which a script may
name as it likes.

A checkpoint is complete when PERSIA has marked it so (embedding_dump_done) and has
written opt.pt, the last file of TrainCtx.dump_checkpoint.

All functions raise an OSError when the volume cannot be read. It must not be taken for an
empty one: the training would begin anew, and its checkpoints be removed.
"""

import os
import re
import shutil
import stat

ATTEMPT = re.compile(r"attempt-(\d+)$")
PART = re.compile(r"s\d+$")
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


def completed(folder):
    """When a checkpoint was completed, in seconds, or None if it is not."""
    try:
        marks = [os.stat(os.path.join(folder, mark)) for mark in MARKS]
    except (FileNotFoundError, NotADirectoryError):
        return None
    return marks[-1].st_mtime if all(stat.S_ISREG(mark.st_mode) for mark in marks) else None


def complete(root):
    """All complete checkpoints, the newest first."""
    found = []
    for number, folder in folders(root):
        time = completed(folder)
        if time is not None:
            found.append((number, time, folder))
    return [folder for _, _, folder in sorted(found, reverse=True)]


def newest(root):
    """The newest complete checkpoint, or None."""
    return next(iter(complete(root)), None)


def surplus(root, keep, *also):
    """The complete checkpoints but the newest ones, and but some others."""
    return [folder for folder in complete(root)[max(keep, 1) :] if folder not in also]


def incomplete(root):
    """What attempts that have ended did not complete."""
    return [folder for _, folder in folders(root) if parts(folder) and completed(folder) is None]


def parts(folder):
    """What a folder has of a checkpoint, but for the marks. A script may give a whole
    checkpoint the name of a part."""
    return [
        entry for entry in list_folder(folder)
        if entry == "dense.pt" or PART.match(entry) and completed(os.path.join(folder, entry)) is None
    ]


def remove(folder):
    """Remove a checkpoint, its marks first: what is left when this is interrupted is
    taken for incomplete. Of a folder with other folders only the parts of a checkpoint
    go: the others may be checkpoints, too."""
    if kind(folder, follow=False) == stat.S_IFLNK:
        os.remove(folder)
        return
    for mark in MARKS:
        remove_all(os.path.join(folder, mark))
    found = parts(folder)
    if any(kind(os.path.join(folder, entry)) == stat.S_IFDIR for entry in list_folder(folder) if entry not in found):
        for part in found:
            remove_all(os.path.join(folder, part))
    else:
        remove_all(folder)


def remove_all(path):
    """Remove a file, or a folder with what is in it, if it is there."""
    there = kind(path, follow=False)
    if there == stat.S_IFDIR:
        shutil.rmtree(path)
    elif there is not None:
        os.remove(path)


def kind(path, follow=True):
    """The kind of file at a path, as stat.S_IFMT gives it, or None if there is none."""
    try:
        return stat.S_IFMT(os.stat(path, follow_symlinks=follow).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return None


def list_folder(folder):
    """The names in a folder: none if there is no such folder."""
    try:
        return os.listdir(folder) if folder else []
    except (FileNotFoundError, NotADirectoryError):
        return []
