import contextlib
import io
import os
import unittest
from unittest import mock

import launch
import settings

POD = {
    "PERSIA_ROLE": "dataloader", "REPLICA_INDEX": "0", "PERSIA_COORDINATOR": "127.0.0.1:1", "PERSIA_TOKEN": "of the job",
    "PERSIA_IDLE_FILE": "/none/idle", "PERSIA_STATE_DIR": "/none",
}


class Defaults(unittest.TestCase):
    def test_they_are_what_docs_guides_jobs_says(self):
        want = {"attempts": 5, "backoff_seconds": 10, "beat_seconds": 5, "end_seconds": 60, "keep": 2, "lost_seconds": 60, "nats_seconds": 30, "stop_seconds": 20, "stuck_seconds": 3600}
        self.assertEqual(want, {name: vars(settings.Settings(POD))[name] for name in want})


class Misuse(unittest.TestCase):
    def test_launch_refuses_wrong_settings_and_says_which(self):
        for arguments, wrong, says in (
            ([], {}, "usage: launch.py COMMAND [ARGUMENT...]"),
            (["true"], {"PERSIA_ROLE": None}, "PERSIA_ROLE is not set: launch.py runs in the pods of a PERSIA job"),
            *((["true"], {"PERSIA_STUCK_SECONDS": value}, f"PERSIA_STUCK_SECONDS is '{value}': must be 0 or a number from 1 to 1000000000")
              for value in ("1h", "nan", "-1", "0.5", "inf")),
            *((["true"], {f"PERSIA_{name}_SECONDS": "0"}, f"PERSIA_{name}_SECONDS is '0': must be a number from 1 to 1000000000")
              for name in ("BACKOFF", "BEAT", "END", "HANG", "LOOK", "NATS", "STOP")),
            (["true"], {"PERSIA_LOST_SECONDS": "29"}, "PERSIA_LOST_SECONDS is '29': must be a number from 30 to 1000000000"),
            (["true"], {"PERSIA_CKPT_KEEP": "all"}, "PERSIA_CKPT_KEEP is 'all': must be a whole number from 1 to 1000000000"),
            (["true"], {"PERSIA_CKPT_KEEP": "0"}, "PERSIA_CKPT_KEEP is '0': must be a whole number from 1 to 1000000000"),
        ):
            environment = {name: value for name, value in dict(POD, **wrong).items() if value is not None}
            with self.subTest(says), mock.patch.dict(os.environ, environment, clear=True), mock.patch("sys.argv", ["/opt/persia/launch.py"]), contextlib.redirect_stderr(io.StringIO()) as said:
                self.assertEqual(2, launch.main(arguments))
                self.assertEqual(f"launch.py: {says}\n", said.getvalue())
