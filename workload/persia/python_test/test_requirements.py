import errno
import http.client
import os
import socket
import tempfile
import threading
import unittest
from unittest import mock

import checks
import gateway


class GPUs(unittest.TestCase):
    def test_pytorch_must_see_as_many_as_the_replica_has_asked_for(self):
        for name, wanted, status, output, says in (
            ("no GPU", 1, 0, '{"gpus": 0}', "PyTorch sees 0 GPUs and the replica has asked for 1"),
            ("too few GPUs", 8, 0, 'a warning\n{"gpus": 7}', "PyTorch sees 7 GPUs and the replica has asked for 8"),
            ("all GPUs", 8, 0, '{"gpus": 8}', None),
            ("none wanted", 0, 0, "", None),
            ("a driver that hangs", 8, None, "", "PyTorch has not said within 300 s which GPUs it sees"),
            ("no PyTorch", 8, 1, "", "PyTorch cannot be asked for its GPUs"),
            ("no answer", 8, 0, "eight", "PyTorch cannot be asked for its GPUs"),
        ):
            with self.subTest(name):
                times = iter((0, 299, 300))

                def command(_arguments, _environment, file, output=output, status=status):
                    file.write(output)
                    return mock.Mock(**{"status.return_value": status})

                with mock.patch.object(checks, "Command", command):
                    gpus = checks.MachineCheck({"PERSIA_GPUS": str(wanted)}, clock=lambda times=times: next(times))
                self.assertEqual([status is None, False], [gpus.waiting(), gpus.waiting()])
                self.assertEqual(says, (gpus.trouble() or "").partition(":")[0] or None)
                if gpus.output:
                    gpus.output.close()


class Files(unittest.TestCase):
    def test_a_volume_that_hangs(self):
        answers = threading.Event()
        self.addCleanup(answers.set)
        with mock.patch("os.path.isfile", lambda file: answers.wait() and True):
            files = checks.Files("dataloader", {"PERSIA_DATALOADER_ENTRY": "/code/load.py"}, 0.01)
            for _ in range(2):
                self.assertEqual("the volume with its configuration and its script does not answer", files.missing())
            answers.set()
            files.looking.join()
            self.assertIsNone(files.missing())

    def test_a_bucket_whose_gcsfuse_has_ended(self):
        errors = {"/lost": errno.ENOTCONN, "/slow": errno.EIO}

        def stat(path):
            if path in errors:
                raise OSError(errors[path], path)

        for mount, want in {("/lost", "fuse"): "gcsfuse has ended, which mounted /lost", ("/lost", "nfs"): None, ("/slow", "fuse"): None, ("/", "fuse"): None}.items():
            with self.subTest(mount), mock.patch("record.mounted", return_value=[("/", "overlay"), mount]), mock.patch("os.stat", stat):
                self.assertEqual(want, (checks.Files("embedding-ps", {}, 5).missing() or "").partition(":")[0] or None)


class Addresses(unittest.TestCase):
    def test_nats(self):
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))
            where = checks.address("nats://user:word@127.0.0.1:%d" % server.getsockname()[1])
            self.assertFalse(checks.reachable(where))
            server.listen()
            self.assertTrue(checks.reachable(where))
        self.assertEqual([("nats", 4222), None], [checks.address("nats://nats"), checks.address("")])


class Driver(unittest.TestCase):
    def test_it_comes_behind_the_folders_of_the_image(self):
        """GKE sets no variable for it, and images drop the CUDA base image's."""
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(checks, "DRIVER", folder):
            os.mkdir(folder + "/lib64")
            nccl = {"NCCL_ASYNC_ERROR_HANDLING": "1", "TORCH_NCCL_ASYNC_ERROR_HANDLING": "0"}
            want = {"LD_LIBRARY_PATH": f"/opt/conda/lib:{folder}/lib64", "PATH": "/bin", **nccl}
            for before in ("/opt/conda/lib", want["LD_LIBRARY_PATH"]):
                self.assertEqual(want, checks.for_gpus({"LD_LIBRARY_PATH": before, "PATH": "/bin", "TORCH_NCCL_ASYNC_ERROR_HANDLING": "0"}))


class Gateway(unittest.TestCase):
    def test_values_are_pushed_and_a_gateway_that_is_gone_is_told_once(self):
        said = []
        place = gateway.of({"PERSIA_METRICS_GATEWAY_ADDR": "gateway:9091", "PERSIA_REPLICA_METRICS": "/metrics/job/criteo"}, said.append)
        with mock.patch.object(gateway.direct, "open") as opened:
            for error in (OSError(), http.client.IncompleteRead(b""), None, OSError()):
                opened.side_effect = error
                place.push(lambda: {"alive": 1, 'ends_total{cause="a"}': 2, 'ends_total{cause="b"}': 3})
            place.push(dict)
            gateway.of({"PERSIA_METRICS_GATEWAY_ADDR": "gateway:9091"}, said.append).push(lambda: {"alive": 2})
        self.assertEqual(["cannot push to the metrics gateway at gateway:9091; retrying: OSError()"] * 2, said)
        request = opened.call_args[0][0]
        self.assertEqual(("PUT", "http://gateway:9091/metrics/job/criteo"), (request.get_method(), request.full_url))
        self.assertEqual(
            '# TYPE alive gauge\nalive 1\n# TYPE ends_total counter\nends_total{cause="a"} 2\nends_total{cause="b"} 3\n', request.data.decode())
        of_replica = {"PERSIA_METRICS_GATEWAY_ADDR": "gateway:9091", "PERSIA_REPLICA_METRICS": "/metrics/job/run/run/role/role/nn-worker/replica/0/of/1"}
        self.assertEqual("/metrics/job/run", gateway.of(of_replica, said.append, whole_job=True).path)

    def test_pushes_go_on_after_an_error_of_their_own(self):
        said, values = [], mock.Mock(side_effect=[KeyError("phase"), KeyError("phase"), {"alive": 1}, SystemExit])
        place = gateway.Gateway("gateway:9091", "/metrics/job/criteo", 0, said.append)
        with mock.patch.object(gateway.direct, "open") as opened, mock.patch.object(gateway.threading, "Thread") as thread:
            place.keep_pushing(values)
            self.assertRaises(SystemExit, thread.call_args[1]["target"])
        self.assertEqual(["cannot push to the metrics gateway at gateway:9091; retrying: KeyError('phase')"], said)
        opened.assert_called_once()

    def test_memory_is_what_the_kernel_cannot_take_back(self):
        versions = ("memory.current", "memory.max", "memory.stat", "inactive_file"), (
            "memory/memory.usage_in_bytes", "memory/memory.limit_in_bytes", "memory/memory.stat", "total_inactive_file")
        for current, limit, stat, cache in versions:
            with self.subTest(limit), tempfile.TemporaryDirectory() as groups:
                self.assertIsNone(gateway.memory_ratio(groups))
                os.makedirs(os.path.join(groups, os.path.dirname(current)), exist_ok=True)
                for name, text in ((current, "700\n"), (limit, "1000\n"), (stat, f"anon 500\n{cache} 200\n")):
                    with open(os.path.join(groups, name), "w") as file:
                        file.write(text)
                self.assertEqual(0.5, gateway.memory_ratio(groups))
                with open(os.path.join(groups, limit), "w") as file:
                    file.write("max\n")
                self.assertIsNone(gateway.memory_ratio(groups))
