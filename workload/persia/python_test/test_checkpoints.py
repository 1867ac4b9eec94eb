import errno
import io
import os
import shutil
import time
import zipfile
from unittest import mock

import checkpoints
from job import FILES, JobTest


FAILS_TO_READ = "the checkpoints cannot be read: "


def failing(function, path, number):
    """Return a function of os that fails for a path and what is below it."""
    def call(name, *arguments, **named):
        if (str(name) + "/").startswith(path + "/"):
            raise OSError(number, os.strerror(number), name)
        return function(name, *arguments, **named)
    return call


class WhatIsACheckpoint(JobTest):
    def setUp(self):
        super().setUp()
        self.write_complete("attempt-1/old")
        self.new = self.write_complete("attempt-1/new")

    def empty(self, file):
        with open(os.path.join(self.new, file), "w"):
            pass

    def test_files_of_servers(self):
        for name, change, want in (
            ("all files", lambda: None, "attempt-1/new"),
            ("a server without files", lambda: [os.remove(os.path.join(self.new, file)) for file in FILES[2:4]], "s1 has 0 of 2 files"),
            ("a server with too few files", lambda: os.remove(os.path.join(self.new, FILES[3])), "s1 has 1 of 2 files"),
            ("an empty file", lambda: self.empty(FILES[1]), "s0 has empty files"),
            ("no dense model, which the others have", lambda: os.remove(os.path.join(self.new, "dense.pt")), "dense.pt is missing"),
            ("a dense model with another name", lambda: os.rename(os.path.join(self.new, "dense.pt"), os.path.join(self.new, "model.pt")), "attempt-1/new"),
        ):
            with self.subTest(name):
                self.setUp()
                change()
                got = self.start()
                if want != got:
                    self.assertEqual("attempt-1/old", got)
                    self.assertIn(f"; {self.new} is no checkpoint: {want}", self.job.status())
                self.work()
                self.assertTrue(os.path.exists(self.new), "PERSIA has said that it is complete, so it stays")

    def test_files_are_looked_at_once(self):
        self.start()
        self.now += 60
        with mock.patch("os.scandir", wraps=os.scandir) as listed:
            self.work()
        self.assertEqual([self.root, self.root + "/attempt-1", self.root + "/attempt-1/new", self.root + "/attempt-1/old"],
                         sorted(call[0][0] for call in listed.call_args_list))

    def test_an_entry_that_cannot_be_looked_at(self):
        """It is no checkpoint, is shown, and stops nothing."""
        def link(path):
            os.symlink(path, path)
        for name, path, make in (
            ("a link to itself beside checkpoints", "attempt-1/latest", link),
            ("a link to itself in a checkpoint", "attempt-1/new/latest", link),
            ("a folder of another user", "attempt-1/theirs", os.mkdir),
            ("an attempt of another user", "attempt-7", os.mkdir),
            ("a stale handle", "attempt-1/stale", os.mkdir),
        ):
            with self.subTest(name):
                self.setUp()
                full = os.path.join(self.root, path)
                make(full)
                number = {os.mkdir: errno.ESTALE if "stale" in path else errno.EACCES}.get(make, errno.ELOOP)
                with mock.patch("os.scandir", os.scandir if number == errno.ELOOP else failing(os.scandir, full, number)):
                    self.assertEqual("attempt-1/new", self.start())
                    self.work()
                text = f"{full} is no checkpoint: {os.strerror(number)}"
                self.assertIn(text, self.logged)
                self.assertIn(text, self.job.status())
                self.assertTrue(os.path.lexists(full))

    def test_no_job_begins_again_because_its_checkpoints_cannot_be_looked_at(self):
        self.start()
        self.job = self.coordinator(pod="another")
        stale = failing(os.scandir, os.path.join(self.root, "attempt-1"), errno.ESTALE)
        self.now += 100
        with mock.patch("os.scandir", stale):
            self.all_report(2, "waiting")
            self.assertIn(f"the checkpoints cannot be read: {self.root}/attempt-1: Stale file handle", self.job.status())
        self.now += 100
        self.assertEqual("attempt-1/new", self.start())

    def test_the_volume_cannot_be_read(self):
        for number, path in ((errno.EIO, "attempt-1/old"), (errno.ESTALE, "")):
            self.setUp()
            with mock.patch("os.scandir", failing(os.scandir, os.path.join(self.root, path).rstrip("/"), number)):
                self.all_report(0, "waiting")
            self.assertIn("the checkpoints cannot be read", self.job.status())

class WholeFiles(JobTest):
    """PERSIA creates each file empty and then fills it, so that the files of an interrupted checkpoint
    may all be there."""

    def archive(self):
        """Return a file of PyTorch since 1.6."""
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as opened:
            opened.writestr("archive/data.pkl", bytes(99999))
        return file.getvalue()

    def test_files(self):
        archive = self.archive()
        for name, file, content, older, whole in (
            ("a whole one", "opt.pt", archive, False, True),
            ("an empty optimizer", "opt.pt", b"", False, False),
            ("half an optimizer", "opt.pt", archive[:50000], False, False),
            ("an optimizer without its end", "opt.pt", archive[:-1], False, False),
            ("half a model", "dense.pt", archive[:50000], False, False),
            ("the first bytes of one", "opt.pt", archive[:2], False, False),
            ("something else", "opt.pt", b"opt", False, True),
            ("an empty mark", "embedding_dump_done", b"", False, False),
            ("half a mark", "embedding_dump_done", b"---\nnum_shards: 1", False, False),
            ("fewer servers than it counts", "embedding_dump_done", b"---\nnum_shards: 3\n", False, False),
            ("the mark of an older release", "embedding_dump_done", b"", True, True),
            ("half a mark of an older release", "embedding_dump_done", b"---\nnum", True, False),
        ):
            with self.subTest(name):
                self.setUp()
                self.write_complete("attempt-1/old")
                with open(os.path.join(self.write_complete("attempt-1/new"), file), "wb") as opened:
                    opened.write(content)
                self.job = self.coordinator(older=older)
                if older:
                    # Its marks are all empty.
                    with open(os.path.join(self.root, "attempt-1/old/embedding_dump_done"), "w"):
                        pass
                self.assertEqual("attempt-1/new" if whole else "attempt-1/old", self.start())
                self.work()
                self.assertEqual(whole, os.path.exists(os.path.join(self.root, "attempt-1/new")), "what is not whole is removed")


class Patience(JobTest):
    def test_a_slow_server(self):
        for name, first, last, want in (
            ("all in time", 1000, 600, ""),
            ("one finished too late", 1000, 640, "server 1 finished 640 s after server 0"),
            ("one writes on", 1000, None, "server 1 has not finished 1000 s after server 0"),
            ("one writes on, and server 0 waits", 500, None, ""),
            ("server 0 writes on", None, 640, ""),
        ):
            with self.subTest(name):
                self.setUp()
                self.start()
                path = self.write("attempt-1/step", "s0/a.emb", "s1/a.emb", "dense.pt")
                begun = time.time() - (first or 1000)
                for server, at in (("s0", first and begun), ("s1", last and begun + last)):
                    if at:
                        os.utime(os.path.join(self.write("attempt-1/step", f"{server}/embedding_dump_done"), server, "embedding_dump_done"), (at, at))
                self.now += 60
                self.work()
                self.assertEqual([f"PERSIA has given up the checkpoint {path}: {want}"] if want else [], self.said("given up"))


class Removal(JobTest):
    def test_no_replica_is_lost_meanwhile(self):
        rmtree = shutil.rmtree

        def slowly(folder, **named):
            left = set(os.listdir(os.path.dirname(folder)))
            self.assertTrue(checkpoints.DENSE in left and not left.intersection(checkpoints.MARKS), "what is left is incomplete")
            for _ in range(13):
                self.now += 5
                self.assertFalse(self.job.lock.locked())
                self.all_report(self.job.machine.attempt, "running")
            rmtree(folder, **named)

        for name in ("before the attempt", "in the attempt"):
            self.setUp()
            before = 0
            with self.subTest(name), mock.patch("shutil.rmtree", slowly):
                if name == "before the attempt":
                    self.write("attempt-1", "s0/a.emb", "dense.pt", "opt.pt")
                    self.start()
                else:
                    os.makedirs(os.path.join(self.root, "attempt-1"))
                    self.start()
                    for step in (1, 2, 3):
                        self.write_complete(f"attempt-2/{step}")
                    self.now = 30
                    self.all_report(2, "running")
                    before = self.now = 60
                    self.work()
                self.assertTrue(self.job.status().startswith("running attempt 2"), self.job.status())
                self.assertGreaterEqual(self.now, before + 65)

    def test_checkpoints_within_others(self):
        complete, write = (lambda name: lambda: self.write_complete(name)), (lambda *files: lambda: self.write(*files))

        def link(to, at):
            return lambda: (os.makedirs(os.path.dirname(os.path.join(self.root, at)), exist_ok=True), os.symlink(os.path.join(self.root, to), os.path.join(self.root, at)))

        steps = [f"attempt-9/step-{number}" for number in (100, 200, 300)]
        for name, makes, whole, others in (
            ("the last one is interrupted", [complete(steps[0]), write("attempt-9", "s0/a.emb", "dense.pt", "embedding_dump_done")], steps[:1], []),
            ("all are interrupted", [write(steps[0], "dense.pt", "s0/a.emb", "notes"), write("attempt-9", "dense.pt", "s0/a.emb", "notes")],
             [], ["attempt-9/notes", steps[0] + "/notes"]),
            ("files of the script", [complete(steps[0]), write(steps[0], "metrics.csv"), complete(steps[1]), complete(steps[2])], steps[1:], [steps[0] + "/metrics.csv"]),
            ("the oldest is too many", [complete("attempt-9"), complete(steps[0]), complete(steps[1])], steps[:2], []),
            ("an inner one is too many", [complete(steps[0]), complete(steps[1]), complete("attempt-9")], ["attempt-9", steps[1]], []),
            ("one with the name of a part", [complete("attempt-9/s100"), write("attempt-9/s200", "s0/a.emb", "dense.pt")], ["attempt-9/s100"], []),
            ("one with the name of a part beside another", [complete("attempt-9/s100"), complete("attempt-9"), complete(steps[1]), complete(steps[2])],
             ["attempt-9/s100", *steps[1:]], []),
            ("other folders of the script", [write("attempt-9", "dense.pt", "s0/a.emb", "logs/today"), write("dense-1", "own.pt")], [], ["attempt-9/logs/today", "dense-1/own.pt"]),
            ("exported embeddings", [write("attempt-9/export", "s0/a.emb", "embedding_dump_done"), write("attempt-9", "s0/a.emb")],
             [], ["attempt-9/export/embedding_dump_done", "attempt-9/export/s0/a.emb", "attempt-9/s0/a.emb"]),
            ("an optimizer with another name", [write("attempt-9", "s0/a.emb", "s1/a.emb", "dense.pt", "embedding_dump_done", "adam.pt")],
             [], ["attempt-9/" + file for file in ("s0/a.emb", "s1/a.emb", "dense.pt", "embedding_dump_done", "adam.pt")]),
            ("what is in no attempt's folder", [write("exports/1", "s0/a.emb", "dense.pt"), link("exports/1", "attempt-9/1"), link("exports", "attempt-8")],
             [], ["exports/1/dense.pt", "exports/1/s0/a.emb"]),
            ("a link to the newest", [complete(steps[0]), complete(steps[1]), link(steps[1], "attempt-1/newest")], steps[:2], []),
        ):
            with self.subTest(name):
                self.setUp()
                for make in makes:
                    make()
                self.start()
                self.work()
                self.assertEqual(sorted(others + [f"{folder}/{file}" for folder in whole for file in FILES]), self.left())

    def test_each_one_is_logged_before_it_happens(self):
        """A person may have copied it there, and looks for it."""
        half = self.write("attempt-5/half", "dense.pt")
        old = [self.write_complete(f"attempt-{attempt}/1") for attempt in (1, 2, 3)][0]
        logged = []
        with mock.patch("checkpoints.remove", lambda folder: logged.append(self.said("removing ")[-1])):
            self.start()
        self.assertEqual([f"removing {half}: it is not complete", f"removing {old}: newer ones are complete"], logged)

    def test_another_process_removes_a_file_meanwhile(self):
        self.write("attempt-1", "dense.pt", *[f"s{server}/{number}.emb" for server in range(2) for number in range(9)])
        unlink, failed = os.unlink, []

        def faster(*arguments, **named):
            unlink(*arguments, **named)
            if not failed:
                failed.append(True)
                raise FileNotFoundError(2, "another process was faster")

        with mock.patch("os.unlink", faster):
            self.start()
        self.assertEqual(([True], []), (failed, self.left()))


class BrokenVolume(JobTest):
    """A volume that fails for a while does not count as empty. The simulation has it fail at other times."""

    def test_at_the_end_of_a_file(self):
        self.settings.backoff_seconds = 10
        self.job = self.coordinator()
        self.write_complete("attempt-1/1")

        class Torn(io.BytesIO):
            def read(self, *size):
                if self.tell():
                    raise OSError(errno.EIO, "Input/output error")
                return super().read(*size)

        content = b"PK\x03\x04" + b"x" * 99999 + b"PK\x05\x06" + bytes(18)
        with open(os.path.join(self.root, "attempt-1/1/opt.pt"), "wb") as file:
            file.write(content)
        with mock.patch("builtins.open", lambda name, *rest, opened=open, **more: Torn(content) if str(name).endswith("opt.pt") else opened(name, *rest, **more)):
            self.all_report(0, "waiting")
            self.assertIn(FAILS_TO_READ + "[Errno 5] Input/output error", self.job.status())
        self.now += 10
        self.assertEqual("attempt-1/1", self.start())


class Doubts(JobTest):
    """An attempt that fails before it makes progress leaves its checkpoint in doubt, and the next one
    begins with the one before."""

    def restart(self, **changes):
        """Have the next attempt start, and note its checkpoint."""
        attempt = self.job.machine.attempt
        if changes:
            self.job = self.coordinator(**changes)
        while self.job.machine.phase != "start":
            self.now += 1000
            self.all_report(max(attempt, self.job.machine.attempt), "waiting")
        self.resumed.append(os.path.basename(self.job.machine.resume))

    def tell(self, *progress):
        for value in progress:
            self.report("nn-worker", self.job.machine.attempt, "running", progress=value)

    def end(self, **more):
        self.report("nn-worker", self.job.machine.attempt, "failed", **more)

    def look(self):
        self.now += 60
        self.work()

    def save(self, name):
        self.write_complete(f"attempt-{self.job.machine.attempt}/{name}")

    def lose(self):
        self.now += 61
        self.tell(1)

    def again(self, **changes):
        """Have an attempt fail before it makes progress, and the next one start."""
        self.tell(1)
        self.end()
        self.restart(**changes)

    def test_what_the_next_attempts_start_from(self):
        restart, tell, end, again, look, save = self.restart, self.tell, self.end, self.again, self.look, self.save
        for name, steps, keep, want in (
            ("once before its first progress", again, 2, "2 2"),
            ("twice before its first progress", lambda: (again(), again()), 2, "2 2 1"),
            ("once before and once after its first progress", lambda: (again(), tell(1, 2), end(), restart(), again()), 2, "2 2 2 2"),
            ("before its command starts", lambda: [(tell(1), end(doubts=False), restart()) for _ in range(2)], 2, "2 2 2"),
            ("after another coordinator's order", lambda: [(tell(1), self.report("nn-worker", self.job.machine.attempt, "waiting"), restart()) for _ in range(2)], 2, "2 2 2"),
            ("with a new checkpoint that nothing has seen",
             lambda: (tell(1), save("3"), end(), restart(), self.work(), again(), again()), 1, "2 3 3 2"),
            ("with a checkpoint from a backup", lambda: (tell(1), self.write_complete("attempt-99/9"), look(), end(), restart(), again(), again()), 9, "2 9 9 2"),
            ("with another cause", lambda: [again() for _ in range(5)], 2, "2 2 1 1 2 2"),
            ("a script that tells nothing", lambda: [(end(), restart()) for _ in range(3)], 2, "2 2 1 1"),
            ("a script that tells nothing for long", lambda: [(self.wait(7 * 3600), end(), restart()) for _ in range(3)], 2, "2 2 2 2"),
            ("a replica that is lost", lambda: [(tell(1), self.lose(), restart()) for _ in range(2)], 2, "2 2 2"),
            ("a container that restarts", lambda: [(tell(1), self.report("dataloader", 0, "waiting", instance=str(self.now)), restart()) for _ in range(2)], 2, "2 2 2"),
            ("before it trains", lambda: [(self.report("dataloader", 0, "waiting", instance=number), restart()) for number in "ab"], 2, "2 2 2"),
            ("in another process", lambda: [again(pod="nn-worker") for _ in range(2)], 2, "2 2 1"),
            ("the coordinator with the nn-worker", lambda: [(tell(1), restart(pod="nn-worker")) for _ in range(2)], 2, "2 2 2"),
            ("one that is kept alone", lambda: (self.work(), again(), again(), self.work()), 1, "2 2 2"),
            ("one that was to be removed", lambda: (again(), again(), mock.patch.stopall(), look(), tell(1, 2), end(), restart()), 1, "2 2 1 1"),
            ("one that worked is not removed", lambda: (tell(1, 2), save("3"), look(), end(), restart(), again(), look(), again()), 1, "2 3 3 2"),
        ):
            with self.subTest(name):
                self.setUp()
                self.settings.attempts, self.settings.keep = 9, keep
                self.settings.lost_seconds = 60 if "lost" in name else 1e9
                self.job, self.resumed = self.coordinator(), []
                for step in "12":
                    self.write_complete(f"attempt-1/{step}")
                if "was to be removed" in name:
                    mock.patch("checkpoints.remove", side_effect=OSError(errno.EIO, "Input/output error")).start()
                restart()
                steps()
                self.assertEqual(want, " ".join(self.resumed))

    def wait(self, seconds):
        self.now += seconds


class Failures(JobTest):
    """Failures in a row end a job, and those of a job that trains for long between them do not."""

    def test_how_often_a_job_may_fail(self):
        hour = 3600
        for name, reports, stuck, ran, own, fails in (
            ("a script that fails soon", True, 0, hour, False, True), ("one that tells nothing", False, 0, hour, False, True),
            ("one killed container a week", True, 0, 168 * hour, False, False), ("which tells nothing", False, 0, 168 * hour, False, False),
            ("the coordinator's container", True, 0, 168 * hour, True, False), ("which restarts soon", True, 0, hour, True, True),
            ("replicas that wait for each other", True, 9 * hour, hour, False, True),
        ):
            with self.subTest(name):
                self.setUp()
                self.settings.lost_seconds, self.settings.stuck_seconds = 1e9 if stuck else 3 * hour, stuck
                self.job = self.coordinator()
                for attempt in range(1, 6):
                    self.start()
                    for told in range(ran // hour):
                        self.now += hour
                        self.all_report(attempt, "running", progress=told if reports else None)
                    if own:
                        self.job = self.coordinator()
                        self.work()
                    elif stuck:
                        self.now += stuck + 1
                        self.all_report(attempt, "running", progress=told)
                    else:
                        self.report("dataloader", attempt, "failed")
                self.work()
                self.assertEqual(fails, self.job.status().startswith("failed: 5 attempts failed"), self.job.status())


class Gone(JobTest):
    """Checkpoints that the record names."""

    def test_a_job_does_not_begin_again_because_they_are_gone(self):
        def empty(folder):
            for name in os.listdir(folder):
                shutil.rmtree(os.path.join(folder, name))

        for name, lose, pod, waits in (
            ("an emptied folder", lambda: empty(self.root), "", True), ("a deleted folder", lambda: shutil.rmtree(self.root), "", True),
            ("for another pod", lambda: shutil.rmtree(self.root), "another", True),
            ("one without its end", lambda: os.truncate(os.path.join(self.root, "attempt-1/1/opt.pt"), 0), "another", True),
            ("a volume that is emptied while its coordinator runs", lambda: empty(self.volume), "", True),
            ("another volume", lambda: empty(self.volume), "another", False),
        ):
            with self.subTest(name):
                self.setUp()
                self.start()
                path = self.write_complete("attempt-1/1")
                self.work()
                self.report("nn-worker", 1, "failed", doubts=False)
                lose()
                self.job = self.coordinator(pod=pod) if pod else self.job
                for _ in range(9):
                    self.now += 301
                    if "running" not in self.job.status():
                        self.all_report(1, "waiting")
                        self.work()
                self.assertEqual(waits, f"({FAILS_TO_READ}{path} was complete, and neither it nor another one is there and complete; restore one, or give "
                                 "the job another runId, which starts the training over" in self.job.status(), self.job.status())
                if waits:
                    self.write_complete("attempt-1/1")
                    self.now += 301
                    self.assertEqual("attempt-1/1", self.start())
                else:
                    self.assertIn("running attempt 2", self.job.status())

    def test_another_run_starts_over(self):
        self.start()
        self.write_complete("attempt-1/1")
        self.report("nn-worker", 1, "failed")
        shutil.rmtree(self.root)
        self.settings.run, self.settings.checkpoints, self.settings.state_directory = "2", self.folder(), self.folder()
        self.job = self.coordinator()
        for role in self.settings.replicas:
            self.report(role, 0, "waiting", run="2")
        self.assertIn("running attempt 1", self.job.status())

    def test_a_script_that_keeps_its_own_begins_by_itself(self):
        self.start()
        self.report("nn-worker", 1, "failed")
        self.assertIsNone(self.start())
