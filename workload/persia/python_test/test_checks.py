import threading
import unittest
from unittest import mock

import checks


class Files(unittest.TestCase):
    def test_a_volume_that_hangs_is_told(self):
        answers = threading.Event()
        with mock.patch("os.path.isfile", lambda _: answers.wait(60)):
            files = checks.Files("embedding-ps", {"PERSIA_GLOBAL_CONFIG": "/volume/global.yml"}, 0.01)
            self.assertEqual("the volume with its configuration and its script does not answer", files.missing())
            answers.set()
            files.looking.join()
            self.assertIsNone(files.missing())


if __name__ == "__main__":
    unittest.main()
