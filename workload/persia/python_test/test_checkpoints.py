import errno
import os
import unittest
from unittest import mock

from job import FILES, JobTest


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
        ):
            with self.subTest(name):
                self.setUp()
                change()
                got = self.start()
                if want != got:
                    self.assertEqual("attempt-1/old", got)
                    self.assertIn(f"; {self.new} is no checkpoint: {want}", self.job.status())
                self.job.keeper.tidy()
                self.assertTrue(os.path.exists(self.new), "PERSIA has said that it is complete, so it stays")

    def test_files_are_looked_at_once(self):
        self.start()
        with mock.patch("os.scandir", wraps=os.scandir) as listed:
            self.job.keeper.keep()
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
                    self.job.keeper.tidy()
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


if __name__ == "__main__":
    unittest.main()
