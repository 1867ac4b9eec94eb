"""Finds and removes the checkpoints of a run: ROOT/attempt-N, or folders below that, which a script names as it likes.

TrainCtx.dump_checkpoint writes dense.pt, then has the servers write the folders s0, s1, … and embedding_dump_done, and writes
opt.pt last. PERSIA creates each file empty before it fills it, so a file that exists may be empty or truncated.

All functions raise an OSError when the volume cannot be read. Such a volume must not count as an empty one: the training would
start over, and its checkpoints would be removed. A single entry that cannot be looked at is no checkpoint, and stays.
"""

import contextlib
import errno
import os
import re
import shutil
import stat
import time
from typing import Any, Callable, Container, Dict, List, NamedTuple, Optional

ATTEMPT, DENSE_STATES = re.compile(r"attempt-(\d+)$"), re.compile(r"dense-\d+$")
SHARD = re.compile(r"s\d+$")
DENSE, JIT, DONE, OPTIMIZER = "dense.pt", "jit_dense.pt", "embedding_dump_done", "opt.pt"
MARKS = (DONE, OPTIMIZER)  # in the order of their removal

# The first bytes of an archive and of the last record of its directory, and the lengths of that record and of the longest
# comment after it (PKWARE, ".ZIP File Format Specification", 4.3).
ARCHIVE, LAST_RECORD, RECORD_LENGTH, LONGEST_COMMENT = b"PK\x03\x04", b"PK\x05\x06", 22, 65535

# The errors of one entry: a link to itself, a file that its server has replaced, another user's folder. All others are the volume's.
UNSEEN = (errno.ELOOP, errno.ESTALE, errno.EACCES)

# How long server 0 waits for the marks of the others after its own, in seconds (persia-model-manager,
# waiting_for_all_embedding_server_dump). It then gives the checkpoint up, and only its own log says so.
PATIENCE = 600


class Checkpoint(NamedTuple):
    """A complete checkpoint."""

    attempt: int  # which wrote it
    time: float  # when it became complete
    path: str
    link: bool  # whether path is a link to the folder
    seconds: float  # how long it took after dense.pt
    dense: bool  # whether a file has the dense model, whatever the script calls it


class Found:
    """The checkpoints that a scan found. complete has the newest one first. strange has entries that are neither complete nor to
    be removed, with the reason, and given_up has incomplete ones that PERSIA never completes, with the server that was too slow.
    known has the marks of checkpoints whose servers' files are all there: to look at 100,000 files takes long."""

    def __init__(self, known: Optional[Dict[str, Any]] = None) -> None:
        self.last_attempt = 0
        self.complete: List[Checkpoint] = []
        self.incomplete: List[str] = []
        self.strange: Dict[str, str] = {}
        self.given_up: Dict[str, str] = {}
        self.known = {} if known is None else known
        # The newest dense state beside the memory of the servers, when that was written, and folders with older ones.
        self.dense: Optional[str] = None
        self.dense_time = 0.0
        self.forgotten: List[str] = []

    def look(self, path: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return what a function finds out about an entry, or None if it cannot be looked at."""
        try:
            return function(*arguments)
        except OSError as error:
            if error.errno not in UNSEEN:
                raise
            self.strange[path] = os.strerror(error.errno)
            return None

    def newest(self, attempt: Optional[int] = None) -> Optional[str]:
        """Return the newest complete checkpoint, of one attempt or of all, or None."""
        paths = (checkpoint.path for checkpoint in self.complete if attempt in (None, checkpoint.attempt))
        return next(paths, None)

    def surplus(self, keep: int, needed: Container[Optional[str]]) -> List[str]:
        """Return the complete checkpoints except the newest ones and those needed."""
        own = [checkpoint.path for checkpoint in self.complete if not checkpoint.link]
        return [path for path in own[max(keep, 1) :] if path not in needed]


def scan(root, older=False, known=None, memory=0):
    """Find all checkpoints. On a bucket, each request takes tens of milliseconds, and a checkpoint has up to 100,000 files, so
    this lists each folder once, and opens only the files that show whether a checkpoint is complete.

    older is for releases of PERSIA without persia-launcher, which leave DONE empty. memory is the name of the servers' memory."""
    found = Found(known)
    for entry in entries(root) if root else []:
        if DENSE_STATES.match(entry.name) and not entry.is_symlink():
            if entry.name == f"dense-{memory}":
                found.look(entry.path, find_dense, found, entry.path)
            else:
                found.forgotten.append(entry.path)
        match = ATTEMPT.match(entry.name)
        if not match or entry.is_symlink():
            continue
        number = int(match.group(1))
        found.last_attempt = max(found.last_attempt, number)
        inner = found.look(entry.path, entries, entry.path) or []
        found.look(entry.path, consider, found, number, entry.path, False, inner, older)
        is_checkpoint = any(file.name in (DENSE, DONE) for file in inner)
        for folder in inner:
            # The folders that the servers write in a checkpoint have up to 1,000 files each.
            if found.look(folder.path, folder.is_dir) and not (is_checkpoint and SHARD.match(folder.name)):
                files = found.look(folder.path, entries, folder.path) or []
                found.look(folder.path, consider, found, number, folder.path, folder.is_symlink(), files, older)
    found.complete.sort(reverse=True)
    if any(checkpoint.dense for checkpoint in found.complete):
        found.strange.update({checkpoint.path: f"{DENSE} is missing" for checkpoint in found.complete if not checkpoint.dense})
        found.complete = [checkpoint for checkpoint in found.complete if checkpoint.dense]
    return found


def find_dense(found, folder):
    """Find the newest dense state: a folder like a checkpoint's, without embeddings. nn-workers remove old ones meanwhile."""
    for entry in entries(folder):
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            written = os.stat(os.path.join(entry.path, OPTIMIZER)).st_mtime
            if written > found.dense_time and all(whole(os.path.join(entry.path, name)) for name in (DENSE, OPTIMIZER)):
                found.dense, found.dense_time = entry.path, written


def consider(found, attempt, path, link, inner, older):
    """Add a folder to found if it is a checkpoint. Scripts also write other folders, such as exported embeddings."""
    folders = {entry.name: found.look(entry.path, entry.is_dir) for entry in inner}
    files = {entry.name: entry for entry in inner if folders[entry.name] is False}
    shards = {entry.name: entry for entry in inner if folders[entry.name] and SHARD.match(entry.name)}
    models = {name for name in files if name.endswith(".pt")} - {JIT, OPTIMIZER}
    times = completed(files, shards, older)
    if times is None:
        if link or DENSE not in files:
            return
        # If a script gave the optimizer's file another name, only it knows whether the checkpoint is complete.
        named = OPTIMIZER not in files and models > {DENSE} and DONE in files
        if named and embeddings_whole(files[DONE].path, shards, older):
            return
        found.incomplete.append(path)
        late = None if DONE in files else too_late(shards)
        if late:
            found.given_up[path] = late
        return
    since, seconds = times
    if found.known.get(path) != since:
        missing = unwritten(files[DONE].path, shards)
        if missing:
            # PERSIA has said that it is complete. Whatever has happened to it since, people decide.
            found.strange[path] = missing
            return
        found.known[path] = since
    found.complete.append(Checkpoint(attempt, since, path, link, seconds, bool(models)))


def too_late(shards):
    """Return which server was so slow that server 0 does not wait for it, for people, or None."""
    first = marked(shards, "s0")
    if first is None or time.time() - first <= PATIENCE:
        return None
    for name in sorted(shards, key=lambda name: int(name[1:])):
        last = marked(shards, name)
        if last is None:
            return f"server {name[1:]} has not finished {time.time() - first:.0f} s after server 0"
        if last - first > PATIENCE:
            return f"server {name[1:]} finished {last - first:.0f} s after server 0"
    return None


def marked(shards, name):
    """Return when a server has marked its part as complete, or None."""
    with contextlib.suppress(FileNotFoundError, KeyError):
        return os.stat(os.path.join(shards[name].path, DONE)).st_mtime
    return None


def completed(files, shards, older):
    """Return when a checkpoint became complete, and how long that took after dense.pt, in seconds, or None."""
    with contextlib.suppress(FileNotFoundError):
        if (
            all(mark in files and stat.S_ISREG(files[mark].stat().st_mode) for mark in MARKS)
            and embeddings_whole(files[DONE].path, shards, older)
            and all(whole(files[name].path) for name in (DENSE, OPTIMIZER) if name in files)
        ):
            since = files[OPTIMIZER].stat().st_mtime
            return since, max(0, since - files[DENSE].stat().st_mtime) if DENSE in files else 0
    return None


def embeddings_whole(mark, shards, older):
    """Report whether PERSIA has written the whole mark, and each server that it counts has a folder."""
    text, numbers = read_mark(mark)
    if "num_shards" not in numbers or not text.endswith("\n"):
        return older and not text
    return all(f"s{number}" in shards for number in range(numbers["num_shards"]))


def unwritten(mark, shards):
    """Return which server lacks files of a checkpoint, for people, or None. A node without power may leave empty files behind."""
    _, numbers = read_mark(mark)
    most = numbers.get("num_internal_shards") or 1
    every = [f"s{number}" for number in range(numbers["num_shards"])] if "num_shards" in numbers else sorted(shards)
    for name in every:
        sizes = [entry.stat().st_size for entry in entries(shards[name].path) if entry.name.endswith(".emb")]
        if len(sizes) < most:
            return f"{name} has {len(sizes)} of {most} files"
        if not all(sizes):
            return f"{name} has empty files"
    return None


def read_mark(mark):
    """Return the text of a mark, and its numbers by their names."""
    with open(mark, "rb") as file:
        text = file.read(4096).decode(errors="replace")
    return text, {name: int(number) for name, number in re.findall(r"^(\w+): (\d+)$", text, re.MULTILINE)}


def whole(path):
    """Report whether PyTorch has written a whole file: an archive with its directory, which comes last. Of other files, as
    PyTorch 1.5 wrote them, any content counts. zipfile.is_zipfile would return False when the volume fails."""
    with open(path, "rb") as file:
        start = file.read(len(ARCHIVE))
        if start != ARCHIVE:
            return bool(start) and not ARCHIVE.startswith(start)
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - RECORD_LENGTH - LONGEST_COMMENT))
        end = file.read()
    at = end.rfind(LAST_RECORD)
    return at >= 0 and len(end) - at >= RECORD_LENGTH


def remove(folder):
    """Remove a checkpoint, its marks first and dense.pt last, so that an interruption leaves an incomplete checkpoint. Other
    checkpoints in the folder, and files of the script, stay. Of a folder with dense states, nothing stays."""
    if DENSE_STATES.match(os.path.basename(folder)):
        return remove_all(folder)
    for mark in MARKS:
        remove_all(os.path.join(folder, mark))
    for entry in sorted(filter(is_part, entries(folder)), key=lambda entry: entry.name == DENSE):
        remove_all(entry.path)
    try:
        os.rmdir(folder)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT):
            raise


def is_part(entry):
    """Report whether PERSIA wrote an entry of a checkpoint's folder. A script may name a checkpoint like a server's folder."""
    if SHARD.match(entry.name) and entry.is_dir() and not entry.is_symlink():
        return not any(inner.name == DENSE for inner in entries(entry.path))
    return entry.name in (DENSE, JIT)


def remove_all(path):
    """Remove a file, or a folder with its content, if it exists."""
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISDIR(os.lstat(path).st_mode):
            shutil.rmtree(path, onerror=ignore_missing)
        else:
            os.remove(path)


def ignore_missing(_function, _path, error):
    """Continue with the rest of a folder if another process has removed a file of it."""
    if not isinstance(error[1], FileNotFoundError):
        raise error[1]


def entries(folder):
    """List a folder, or return [] if it does not exist."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as found:
        return list(found)
    return []
