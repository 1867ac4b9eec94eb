import unittest

from job import JobTest


class Pauses(JobTest):
    def test_a_pause_doubles_up_to_five_minutes(self):
        self.job.settings.backoff_seconds = 10
        self.assertEqual([0, 10, 20, 40, 80, 160, 300, 300], [self.job.pause(failures) for failures in range(8)])


if __name__ == "__main__":
    unittest.main()
