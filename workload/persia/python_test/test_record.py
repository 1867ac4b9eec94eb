import contextlib
import errno
import json
import os
from unittest import mock

import record
import events
from job import JobTest
from machine import HELD, LOST


class Claims(JobTest):
    """Two pods of nn-worker 0, while the node of the first one is lost."""

    def setUp(self):
        super().setUp()
        self.first, self.second = self.coordinator(pod="first"), self.coordinator(pod="second")
        for job in (self.first, self.second):
            self.work(job)
        self.pass_time(20, self.first)
        self.assertEqual([LOST, HELD], [self.first.machine.claim, self.second.machine.claim])

    def pass_time(self, seconds, *renewing):
        for _ in range(seconds // 20):
            self.now += 20
            for job in renewing:
                self.work(job)

    def test_a_record_that_cannot_be_read_may_have_been_renewed(self):
        self.pass_time(100, self.first)
        with mock.patch.object(self.first.record, "read", side_effect=OSError(errno.ESTALE, "Stale file handle")):
            self.pass_time(20, self.first)
        self.pass_time(120, self.first)
        self.assertEqual(LOST, self.first.machine.claim)

    def test_a_job_that_ends_during_a_claim_stays_complete(self):
        def end():
            with self.second.lock:
                self.second.machine.finish()
            self.work(self.second)

        def take(descriptor, fstat=os.fstat):
            with mock.patch("os.fstat", fstat), mock.patch("record.in_bucket", return_value=False):
                end()
            raise OSError(errno.ESTALE, "Stale file handle")

        for name, bucket, ends in (("before it is written", False, end), ("while a bucket takes it", True, lambda: None)):
            with self.subTest(name):
                self.setUp()
                third = self.coordinator(pod="third")
                third.happens(events.Ticked)
                third.do(third.queues[events.Load].get())
                ends()
                with mock.patch("record.in_bucket", return_value=bucket):
                    with mock.patch("os.fstat", take if bucket else os.fstat):
                        third.do(third.queues[events.Save].get())
                    self.work(third)
                    self.now += 1
                    self.work(third)
                self.assertEqual(("complete in attempt 0", True), (third.status(), third.record.read()["done"]))

    def test_no_attempt_has_the_number_of_one_whose_record_replaces_a_newer_claim(self):
        with open(self.second.record.file, "w") as file:
            json.dump(dict(self.first.machine.values, attempt=4, running=True), file)
        self.pass_time(20, self.second)
        self.assertEqual((HELD, 4, 2), (self.second.machine.claim, self.second.machine.attempt, self.second.record.read()["term"]))
        self.assertGreater(self.second.machine.not_before, self.now)

    def test_nothing_is_removed_before_the_claim_is_recorded(self):
        broken = self.write("attempt-1/1", "dense.pt")
        self.job = self.coordinator(pod="third")
        with mock.patch("record.fill", side_effect=OSError(errno.EIO, "Input/output error")):
            for self.now in (20, 21, 22):
                self.all_report(0, "waiting")
        self.assertTrue(os.path.exists(broken))
        self.now += 1
        self.start()
        self.assertFalse(os.path.exists(broken))


class Records(JobTest):
    def record(self, folder="state", **values):
        """Write a record as another coordinator left it, and return the file."""
        file = os.path.join(self.volume, folder, "coordinator.json")
        os.makedirs(os.path.dirname(file), exist_ok=True)
        with open(file, "w") as opened:
            json.dump(values, opened)
        return file

    def test_a_record_of_another_job(self):
        """Its coordinator fails, and touches nothing."""
        file = self.record(attempt=7, done=True, job="org/persia/staging/clicks", term=3)
        broken = self.write("attempt-7/1", "dense.pt")
        written = os.stat(file).st_mtime_ns
        self.all_report(0, "waiting")
        self.now += 1000
        self.all_report(0, "waiting")
        self.assertTrue(self.job.status().startswith(f"failed: {file} is the record of the job org/persia/staging/clicks, and this is org/persia/dev/clicks. "), self.job.status())
        self.assertEqual(written, os.stat(file).st_mtime_ns)
        self.assertTrue(os.path.exists(broken))
        self.assertEqual(1, len(self.logged), self.logged)
        # The job is changed, and then the record is given to it.
        self.report("dataloader", 0, "waiting", revision="2")
        self.assertIn("failed: ", self.job.status())
        self.record(attempt=7, job="org/persia/dev/clicks", term=3)
        self.report("dataloader", 0, "waiting", revision="3")
        self.now += 2 * self.settings.lost_seconds
        self.all_report(0, "waiting", revision="3")
        self.assertIn("running attempt 8", self.job.status())

    def test_an_attempt_waits_after_a_slow_write_that_may_have_replaced_a_claim(self):
        for bucket in True, False:
            with self.subTest(bucket=bucket), mock.patch("record.in_bucket", return_value=bucket):
                self.job = self.coordinator(state_directory=self.folder())
                with mock.patch.object(self.job.record, "write", lambda *record, write=self.job.record.write: (write(*record), vars(self).update(now=self.now + 2))[0]):
                    self.all_report(0, "waiting")
                self.assertEqual(bucket, self.job.machine.phase == "start")
                self.now += 22
                self.all_report(0, "waiting")
                self.assertEqual("start", self.job.machine.phase)

    def test_the_next_coordinator_waits_for_the_same_silence(self):
        self.start()
        self.all_report(1, "running")
        self.report("dataloader", 0, "waiting", pod="another", since=1)
        self.job = self.coordinator()
        for self.now, phase in (1, "stop"), (79, "stop"), (1 + 60 + 20 + 20, "start"):
            for role in self.settings.replicas:
                self.report(role, 1, "waiting", pod=role if role == "nn-worker" else "another")
            self.assertEqual(phase, self.job.machine.phase, self.now)

    def test_another_number_of_servers_divides_the_embeddings_anew(self):
        for servers, memory in (2, 7), (3, 0):
            self.job = self.coordinator(replicas={"embedding-ps": servers}, partial=True)
            self.job.machine.recall({"memory": 7, "servers": 2, "attempt": 7})
            self.assertEqual(memory, self.job.machine.values["memory"])

    def test_a_record_of_no_job(self):
        self.record(attempt=7, done=True)
        self.work()
        self.assertEqual("complete in attempt 7", self.job.status())
        with open(self.job.record.file) as file:
            self.assertEqual("org/persia/dev/clicks", json.load(file)["job"])

    def test_a_file_that_is_no_record_starts_nothing(self):
        """It is not the record of a new run, so people look first."""
        for text in (b"", b'{"attempt": 7, "do', b"7", b"\xff\xfe", b'{"term": "7"}', b'{"resume": 7}', b'{"doubts": {"a": "7"}}'):
            with self.subTest(text):
                self.setUp()
                file = self.record()
                with open(file, "wb") as opened:
                    opened.write(text)
                self.all_report(0, "waiting")
                self.assertIn(f"the checkpoints cannot be read: {file} is not the record of a run; if the run was not complete, remove the file", self.job.status())
                os.remove(file)
                self.now += 100
                self.start()

    def test_the_end_cannot_be_recorded(self):
        self.start()
        with mock.patch("record.fill", side_effect=OSError(errno.EIO, "Input/output error")):
            self.all_report(1, "finished")
            self.assertTrue(self.job.status().startswith("finished in attempt 1; this cannot be recorded: [Errno 5] Input/output error"), self.job.status())
        self.assertIn("the state of the run cannot be recorded: [Errno 5] Input/output error", self.logged)
        self.now += 1
        self.work()
        self.assertEqual(("complete in attempt 1", True), (self.job.status(), self.coordinator().record.read()["done"]))


class Buckets(JobTest):
    def test_which_folders_are_in_a_bucket(self):
        mounts = os.path.join(self.volume, "mounts")
        with open(mounts, "wb") as file:
            file.write(b"overlay / overlay rw 0 0\nclicks /data fuse rw 0 0\ndisk /data/scratch ext4 rw 0 0\nb /my\\040bucket fuse.gcsfuse rw 0 0\njfs /jfs fuse.juicefs rw 0 0\n")
            file.write(b"disk /over ext4 rw 0 0\nclicks /over fuse rw 0 0\ndisk /no-utf-8-\xff ext4 rw 0 0\n")
        for folder, want in {"/data": True, "/data/run/state": True, "/database": False, "/data/scratch/a": False, "/my bucket/a": True, "/jfs/a": False, "/over/a": True, "/": False}.items():
            self.assertEqual(want, record.in_bucket(folder, mounts), folder)

    def test_the_record_is_overwritten_where_it_is(self):
        with mock.patch("record.in_bucket", return_value=True):
            self.work()
            before = os.stat(self.job.record.file).st_ino
            self.start()
        self.assertEqual((before, record.SIZE), (os.stat(self.job.record.file).st_ino, os.path.getsize(self.job.record.file)))
        self.assertEqual(1, self.job.record.read()["attempt"])

    def test_a_longer_record_is_overwritten_whole(self):
        with mock.patch("record.in_bucket", return_value=True):
            for failed in ("why" * record.SIZE, ""):
                self.job.record.write(dict(self.job.machine.values, failed=failed), None)
                self.assertEqual(failed, self.job.record.read()["failed"])

    def test_a_coordinator_that_is_killed_while_it_creates_the_record_leaves_no_record(self):
        self.write_record(b"")
        with mock.patch("record.in_bucket", return_value=True):
            self.start()
            self.assertEqual(1, self.job.record.read()["attempt"])

    def test_a_node_shows_a_record_that_was_removed_elsewhere(self):
        self.write_record(b"no record")
        with mock.patch("record.in_bucket", return_value=True), mock.patch("os.listdir", return_value=[]):
            self.assertEqual({}, self.job.record.read())

    def write_record(self, text):
        os.makedirs(self.settings.state_directory)
        with open(self.job.record.file, "wb") as file:
            file.write(text)


class KilledFile:
    """A file whose writer is killed after some bytes, if it overwrites."""

    def __init__(self, file, mode, left):
        self.file, self.mode, self.left = file, mode, left

    def __getattr__(self, name):
        return getattr(self.file, name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()

    def __iter__(self):
        return iter(self.file)

    def write(self, text):
        overwrites = self.mode == "r+b"
        self.file.write(text[:self.left] if overwrites else text)
        self.left -= len(text)
        if overwrites and self.left < 0:
            raise KeyboardInterrupt


class FullVolume(JobTest):
    """A half-written checkpoint leaves no room for another file."""

    def setUp(self):
        super().setUp()
        self.start()
        self.half = self.write("attempt-1/1", "dense.pt")
        fill = record.fill

        def without_room(name, mode, text):
            if mode == "wb" and os.path.exists(self.half):
                with open(name, mode):
                    raise OSError(errno.ENOSPC, "No space left on device")
            fill(name, mode, text)
        patch = mock.patch("record.fill", without_room)
        patch.start()
        self.addCleanup(patch.stop)

    def test_it_is_emptied_before_the_next_attempt(self):
        for pod in ("nn-worker", "another"):
            with self.subTest(pod):
                self.write("attempt-1/1", "dense.pt")
                self.job = self.coordinator(pod=pod)
                self.all_report(self.job.machine.attempt, "waiting")
                self.assertIn("the volume is full; the record of the run is overwritten", self.logged)
                self.now += 100
                self.start()
                self.assertFalse(os.path.exists(self.half), "the attempt waits for room")
                self.assertNotIn("full", self.job.status())
                self.assertEqual(["coordinator.json"], os.listdir(self.settings.state_directory))
                self.assertEqual(self.job.machine.attempt, self.job.record.read()["attempt"])

    def test_a_coordinator_that_is_killed_while_it_overwrites_leaves_the_old_or_the_new_record(self):
        """So does the next one, which finds what the first one has left."""
        kept, values, seen = self.job.record, self.job.machine.values, set()
        length = len(json.dumps(values))
        for first in sorted({*range(0, 2 * length, 97), *range(length - 9, length + 9), *range(2 * length - 9, 2 * length + 99, 9)}):
            for second in (0, 9, length, 2 * length, 9 * length):
                with self.subTest(first=first, second=second):
                    os.remove(kept.file)
                    record.fill(kept.file, "xb", json.dumps(dict(values, attempt=70, failed="a long text")).encode().ljust(record.SIZE))
                    for left, new in ((first, {"attempt": 71, "failed": "an even longer text"}), (second, {"attempt": 72, "failed": ""})):
                        allowed = [new, {key: kept.read()[key] for key in new}]
                        killed = lambda name, mode="r", left=left, **named: KilledFile(open(name, mode, **named), mode, left)  # noqa: E731
                        with mock.patch("record.open", killed, create=True):
                            with contextlib.suppress(KeyboardInterrupt):
                                kept.write(dict(values, **new), None)
                        self.assertIn({key: kept.read()[key] for key in new}, allowed)
                        seen.add(kept.read()["attempt"])
        self.assertEqual({70, 71, 72}, seen)

    def test_failures_are_counted(self):
        os.remove(self.job.record.file)
        for times in ("", ", 2 times in a row"):
            self.now += 20
            self.work()
            self.assertTrue(self.job.status().endswith(f"; this cannot be recorded: [Errno 28] No space left on device{times}"), self.job.status())
            self.assertEqual([], os.listdir(self.settings.state_directory), "what is half-written takes room")


class LastRelease(JobTest):
    # As the release before contracts and answers has recorded it after an attempt of 100 s with a checkpoint after one.
    KEPT = dict(
        {name: value for name, value in record.blank("org/persia/dev/clicks").items() if name not in ("memory", "servers", "dense")},
        attempt=1, revision="1", failures=1, causes={"silent replica": 1}, term=1, holder="121f", pod="old", beat=1, pods=["old"], ledger={
            "training": 1.0, "training again": 99.0, "at": 100, "until": 100, "saved": 1.0, "unsaved": 99.0, "checkpoints": 1, "lost": 1})

    def test_its_jobs_go_on(self):
        path = self.write_complete("attempt-1/a")
        os.makedirs(self.settings.state_directory, exist_ok=True)
        with open(os.path.join(self.settings.state_directory, "coordinator.json"), "w") as file:
            json.dump(dict(self.KEPT, checkpoint=path, trained={path: 1.0}), file)
        self.job, self.now = self.coordinator(pod="new", revision="2"), 1000
        for _ in range(60):
            self.now += 5
            orders = {self.report(role, 0, "waiting", pod=role, revision="2", since=900)["order"] for role in ("nn-worker", "dataloader")}
            self.work()
            if orders == {"start"}:
                break
        self.assertEqual((2, path), (self.job.machine.attempt, self.job.machine.resume))
        self.assertEqual(99, self.job.machine.ledger.seconds()["training again"])
