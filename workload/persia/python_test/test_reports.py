import roster
from job import JobTest


class Reports(JobTest):
    def test_a_report_that_is_not_whole_changes_nothing(self):
        self.all_report(0, "waiting")
        self.all_report(1, "running")
        before = dict(self.job.machine.roster.reports)
        whole = self.whole("dataloader", 1, "failed")
        broken = [{name: value for name, value in whole.items() if name != missing} for missing in whole]
        broken += [dict(whole, **{name: []}) for name in whole]
        broken += [dict(whole, replica=False), dict(whole, state="lost"), dict(whole, attempt="1")]
        for report in broken:
            with self.subTest(report):
                self.assertRaises(ValueError, self.job.report, report)
        self.assertEqual(before, self.job.machine.roster.reports)
        self.assertEqual("go", self.report("dataloader", 1, "running")["order"])
        self.assertEqual(set(whole), set(roster.VALUES))

    def test_a_replica_whose_reports_are_refused_is_silent(self):
        self.all_report(0, "waiting")
        self.all_report(1, "running")
        for self.now in range(0, 70, 5):
            self.report("nn-worker", 1, "running")
            self.assertRaises(ValueError, self.job.report, {"role": "dataloader", "replica": 0})
        self.assertIn("(dataloader 0 has not been heard of for 60 s)", self.job.status())

    def test_a_job_is_complete_only_for_a_member_of_the_attempt(self):
        self.all_report(0, "waiting")
        self.all_report(1, "running")
        self.report("dataloader", 1, "failed")
        for attempt, order in ((0, "stop"), (1, "done")):
            with self.subTest(attempt):
                self.assertEqual(order, self.report("dataloader", attempt, "waiting", done=True)["order"])

    def test_the_coordinator_leaves_only_after_the_completion_has_asked(self):
        self.all_report(1, "finished", done=True)
        self.report("dataloader", 1, "finished", leaving=True)
        self.now = 599
        self.assertTrue(self.job.stays())
        self.job.status("1", known=True)
        self.assertFalse(self.job.stays())
