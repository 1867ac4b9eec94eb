import contextlib
import io
import os
import unittest
from unittest import mock

import launch

POD = {
    "PERSIA_ROLE": "dataloader", "REPLICA_INDEX": "0", "PERSIA_COORDINATOR": "127.0.0.1:1", "PERSIA_TOKEN": "of the job",
    "PERSIA_IDLE_FILE": "/none/idle", "PERSIA_STATE_DIR": "/none",
}


class Misuse(unittest.TestCase):
    def test_launch_refuses_wrong_settings_and_says_which(self):
        for arguments, wrong, says in (
            ([], {}, "usage: launch.py COMMAND [ARGUMENT...]"),
            (["true"], {"PERSIA_ROLE": None}, "PERSIA_ROLE is not set: launch.py runs in the pods of a PERSIA job"),
            (["true"], {"PERSIA_TOKEN": None}, "PERSIA_TOKEN is not set: launch.py runs in the pods of a PERSIA job"),
            (["true"], {"PERSIA_STUCK_SECONDS": "1h"}, "PERSIA_STUCK_SECONDS is '1h': must be a number of at least 0"),
            (["true"], {"PERSIA_STUCK_SECONDS": "nan"}, "PERSIA_STUCK_SECONDS is 'nan': must be a number of at least 0"),
            (["true"], {"PERSIA_STUCK_SECONDS": "-1"}, "PERSIA_STUCK_SECONDS is '-1': must be a number of at least 0"),
            (["true"], {"PERSIA_CKPT_KEEP": "all"}, "PERSIA_CKPT_KEEP is 'all': must be a whole number of at least 1"),
            (["true"], {"PERSIA_CKPT_KEEP": "1.5"}, "PERSIA_CKPT_KEEP is '1.5': must be a whole number of at least 1"),
            (["true"], {"PERSIA_CKPT_KEEP": "0"}, "PERSIA_CKPT_KEEP is '0': must be a whole number of at least 1"),
        ):
            environment = {name: value for name, value in dict(POD, **wrong).items() if value is not None}
            with self.subTest(says), mock.patch.dict(os.environ, environment, clear=True), contextlib.redirect_stderr(io.StringIO()) as said:
                self.assertEqual(2, launch.main(arguments))
                self.assertEqual(f"launch.py: {says}\n", said.getvalue())
