import sys
import unittest
from unittest import mock

import checks
import entry

DATALOADER = {"PERSIA_ROLE": "dataloader", "PERSIA_SCRIPT": "/code/load.py", "PERSIA_DATALOADER_ENTRY": "/opt/persia/entry.py"}
NN_WORKER = {
    "PERSIA_ROLE": "nn-worker", "PERSIA_SCRIPT": "/code/train.py", "PERSIA_NODE_RANK": "2", "PERSIA_NODES": "3", "NPROC_PER_NODE": "4",
    "REPLICA_INDEX": "0", "REPLICA_SIZE": "1", "RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "4", "TORCHELASTIC_USE_AGENT_STORE": "True",
    "MASTER_ADDR": "127.0.0.1",
}


class Environment(unittest.TestCase):
    def test_it_is_as_if_persia_launcher_had_started_the_script(self):
        """torch.distributed.launch knows the processes of one pod."""
        for before, want in (
            (DATALOADER, {"PERSIA_DATALOADER_ENTRY": "/code/load.py"}),
            (NN_WORKER, {
                "PERSIA_NN_WORKER_ENTRY": "/code/train.py", "RANK": "9", "WORLD_SIZE": "12", "LOCAL_RANK": "1", "REPLICA_INDEX": "2",
                "REPLICA_SIZE": "3", "NODE_RANK": "2", "TORCHELASTIC_USE_AGENT_STORE": "False", "MASTER_ADDR": None}),
        ):
            with mock.patch.object(checks, "for_gpus", lambda environment: dict(environment, LD_LIBRARY_PATH="driver")):
                got = entry.script_environment(before)
            self.assertEqual(dict(want, LD_LIBRARY_PATH="driver"), {name: got.get(name) for name in ("LD_LIBRARY_PATH", *want)})


class Runs(unittest.TestCase):
    def test_the_pod_ends_as_its_script_and_pushes_that(self):
        """The first process of a pod speaks for all."""
        for name, rank, files, gpus, ends, status, started, pushed in (
            ("success", "0", None, None, 0, 0, 1, {"persia_replica_alive": 0, "persia_replica_finished": 1}),
            ("failure", "0", None, None, 7, 7, 1, {"persia_replica_alive": 0, "persia_replica_finished": 0}),
            ("another process", "1", None, None, 0, 0, 1, None),
            ("a missing script", "0", "the script is not there", None, 0, 1, 0, {"persia_replica_alive": 0, "persia_replica_finished": 0}),
            ("GPUs that PyTorch does not see", "0", None, "PyTorch sees 1 GPUs", 0, 1, 0, {"persia_replica_alive": 0, "persia_replica_finished": 0}),
        ):
            with self.subTest(name):
                values, said = [], []
                place = mock.Mock(push=lambda now, values=values: values.append(now()))
                command = mock.Mock(**{"status.return_value": ends, "stop.return_value": ends})
                check = mock.Mock(command=None, **{"waiting.return_value": False, "trouble.return_value": gpus})
                with mock.patch.multiple(entry, adopt=mock.Mock(), heed_signals=mock.Mock(), Command=mock.Mock(return_value=command), log=said.append), \
                        mock.patch.multiple(checks, before=mock.Mock(return_value=files), MachineCheck=mock.Mock(return_value=check)), mock.patch.object(entry.gateway, "of", lambda names, _, place=place: place if names else mock.Mock()):
                    self.assertEqual(status, entry.main(dict(DATALOADER, LOCAL_RANK=rank), ["--local_rank=1"]))
                    arguments = [call[0][0] for call in entry.Command.call_args_list]
                self.assertEqual([[sys.executable, "-u", "/code/load.py", "--local_rank=1"]] * started, arguments)
                self.assertEqual([pushed] if pushed else [], values)
                self.assertEqual(list(filter(None, (files, gpus))), said)
                self.assertEqual(bool(pushed), place.keep_pushing.called)
