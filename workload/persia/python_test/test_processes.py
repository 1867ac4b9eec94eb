import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

import processes

processes.adopt()

# A program that leaves another one in a session of its own.
LEAVES = """
import subprocess, sys
left = subprocess.Popen(["sleep", "600"], start_new_session=True, stdout=subprocess.DEVNULL)
print(left.pid, flush=True)
"""


class Commands(unittest.TestCase):
    def run_command(self, script, *arguments):
        command = processes.Command([sys.executable, "-c", script, *arguments], dict(os.environ), subprocess.PIPE)
        self.addCleanup(command.process.stdout.close)
        self.addCleanup(command.stop, 0)
        return command

    def test_a_process_in_a_session_of_its_own_ends_with_its_attempt(self):
        command = self.run_command(LEAVES)
        left = int(command.process.stdout.readline())
        while command.status() is None:
            time.sleep(0.01)
        self.assertEqual({left}, command.running())
        self.assertEqual(0, command.stop(0))
        self.assertFalse(os.path.exists(f"/proc/{left}"), "it is not even a zombie")

    def test_orphans_are_reaped_while_the_command_runs(self):
        command = self.run_command(LEAVES + "sys.stdin.close(); import time; time.sleep(600)")
        command.process.stdout.readline()
        orphan = subprocess.Popen(["true"])
        while os.path.exists(f"/proc/{orphan.pid}"):
            self.assertIsNone(command.status())
        self.assertIsNone(orphan.poll() or None, "its status is lost")

    def test_the_status_of_the_command_is_not_lost(self):
        command = self.run_command("import sys; sys.exit(7)")
        while command.running():
            time.sleep(0.01)
        processes.reap(command.process)
        self.assertEqual(7, command.status())

    def test_no_other_process_of_the_machine_is_found(self):
        command = self.run_command(LEAVES + "import time; time.sleep(600)")
        left = int(command.process.stdout.readline())
        self.assertEqual({command.process.pid, left}, command.running())

    def test_a_process_that_cannot_be_killed_is_told(self):
        command = self.run_command("import time; time.sleep(600)")
        with mock.patch.object(os, "kill"):
            command.end(0)
            self.assertFalse(command.ended())
            self.assertEqual("", command.hangs(60))
            self.assertRegex(command.hangs(0), rf"^process {command.process.pid} \(.+\) hangs and cannot be killed: it waits for a device")


class Connections(unittest.TestCase):
    def test_a_connection_is_found_behind_a_descriptor_that_is_closed_meanwhile(self):
        server = socket.socket()
        self.addCleanup(server.close)
        server.bind(("127.0.0.1", 0))
        server.listen()
        port, ended, listed = server.getsockname()[1], 2 ** 30, os.listdir
        client = socket.create_connection(("127.0.0.1", port))
        with mock.patch.object(os, "listdir", lambda folder: ["1000000"] + listed(folder)):
            self.assertEqual({os.getpid()}, processes.connected([ended, os.getpid()], port))
            client.close()
            self.assertEqual(set(), processes.connected([ended, os.getpid()], port))


class Scratch(unittest.TestCase):
    def folder(self, where=None):
        folder = tempfile.mkdtemp(dir=where)
        self.addCleanup(shutil.rmtree, folder)
        for name in ("old", "link", "sub/file"):
            os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
            if name == "link":
                os.symlink("/", os.path.join(folder, name))
            else:
                open(os.path.join(folder, name), "w").close()
        return folder

    def test_memory_is_emptied_and_the_image_keeps_its_files(self):
        memory, disk = self.folder("/dev/shm"), self.folder("/var/tmp")
        scratch = processes.Scratch([memory, disk, "/nowhere"])
        open(os.path.join(disk, "new"), "w").close()
        with mock.patch.object(os, "getpid", lambda: 1):
            scratch.clear()
        self.assertEqual([], os.listdir(memory))
        self.assertEqual(["link", "old", "sub"], sorted(os.listdir(disk)))

    def test_only_process_1_removes_anything(self):
        memory = self.folder("/dev/shm")
        processes.Scratch([memory]).clear()
        self.assertEqual(["link", "old", "sub"], sorted(os.listdir(memory)))

    def test_nothing_that_is_mounted_there_is_removed(self):
        memory = self.folder("/dev/shm")
        stat = os.stat
        with mock.patch.object(os, "stat", lambda path: mock.Mock(st_dev=stat(path).st_dev + (path == memory))):
            processes.remove(memory)
        self.assertEqual(["link", "old", "sub"], sorted(os.listdir(memory)))
