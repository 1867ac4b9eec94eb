import os
import sys
import threading
from unittest import mock

import checkpoints
import record
from job import JobTest


class Pauses(JobTest):
    def test_a_pause_doubles_up_to_five_minutes(self):
        self.job.settings.backoff_seconds = 10
        self.assertEqual([0, 10, 20, 40, 80, 160, 300, 300], [self.job.pause(failures) for failures in range(8)])


class Meanwhile(JobTest):
    """What happens while the coordinator reads or writes a volume."""

    def meanwhile(self, module, name, happens):
        """Let something happen once, at the end of a function."""
        function = getattr(module, name)

        def call(*arguments, **named):
            result = function(*arguments, **named)
            patch.stop()
            happens()
            return result

        patch = mock.patch.object(module, name, call)
        patch.start()

    def test_a_volume_hangs(self):
        """A replica that gets no answer would end its command."""
        for module, function, state, says in (
            (checkpoints, "scan", "running", "; a volume has not answered for 65 s"),
            (record, "fill", "finished", "finished in attempt 1: recording that in "),
        ):
            with self.subTest(function):
                self.setUp()
                self.all_report(0, "waiting")
                self.all_report(1, "running")
                said = []

                def hang(state=state, said=said):
                    for _ in range(13):
                        self.now += 5
                        self.assertFalse(self.job.lock.locked())
                        for role in self.settings.replicas:
                            self.job.report(self.whole(role, 1, state))
                    said.append(self.job.status())

                for role in self.settings.replicas:
                    self.job.report(self.whole(role, 1, state))
                self.meanwhile(module, function, hang)
                self.job.keeper.keep()
                self.assertIn(says, said[0])
                self.assertRegex(self.job.status(), "^(running|complete in) attempt 1")

    def another(self):
        """Another coordinator takes over."""
        other = self.coordinator()
        other.keeper.keep()
        return other

    def test_a_replica_tells_that_the_job_is_complete(self):
        self.all_report(0, "waiting")
        done = self.whole("dataloader", 1, "finished", done=True)
        self.meanwhile(checkpoints, "scan", lambda: self.job.report(done))
        self.report("nn-worker", 1, "failed")
        self.job.keeper.keep()
        self.assertEqual("complete in attempt 1", self.job.status())

    def test_the_attempt_ends(self):
        self.all_report(0, "waiting")
        self.all_report(1, "running")
        self.meanwhile(checkpoints, "scan", lambda: self.job.report(self.whole("nn-worker", 1, "failed")))
        for failures in (0, 1):
            self.job.keeper.keep()
            self.assertEqual(failures, self.job.record.failures)

    def test_another_coordinator_takes_over(self):
        self.job.keeper.keep()
        self.meanwhile(checkpoints, "scan", self.another)
        self.all_report(0, "waiting")
        order = self.report("nn-worker", 0, "waiting")["order"]
        self.assertEqual((True, "stop", False, None), (self.job.superseded, order, self.job.starting, self.job.ended))

    def test_a_write_that_hung_is_done_after_another_has_taken_over(self):
        others = []

        def take_over():
            others.append(self.another())
            others[0].finish()
            others[0].keeper.keep()

        self.job.keeper.keep()
        self.meanwhile(record.Record, "check", take_over)
        self.job.keeper.remember(failed="overwritten")
        self.job.keeper.save_record()
        self.assertEqual("overwritten", self.job.record.read()["failed"])
        others[0].keeper.keep()
        self.assertEqual((True, ""), (self.job.record.read()["done"], self.job.record.read()["failed"]))
        self.job.keeper.keep()
        self.assertTrue(self.job.superseded)

    def test_another_coordinator_takes_over_before_a_checkpoint_is_removed(self):
        folder = self.write_complete("attempt-1/1")
        self.job.keeper.keep()
        self.job.keeper.drop({folder}, "the test says so")
        self.another()
        self.job.keeper.tidy()
        self.assertEqual((True, True), (self.job.superseded, os.path.exists(os.path.join(folder, "opt.pt"))))

    def test_the_pod_ends(self):
        write = record.Record.write

        def late(record, values):
            patch.stop()
            self.job.keeper.release(0.01)
            write(record, values)

        self.job.keeper.keep()
        patch = mock.patch.object(record.Record, "write", late)
        patch.start()
        self.job.keeper.remember(running=True)
        self.job.keeper.save_record()
        for thread in set(threading.enumerate()) - {threading.current_thread()}:
            thread.join()
        self.assertFalse(self.job.record.read()["running"])

    def test_the_number_of_the_attempt_cannot_be_recorded(self):
        self.job.keeper.keep()
        with mock.patch.object(os, "replace", side_effect=OSError(5, "Input/output error")):
            self.all_report(0, "waiting")
        self.assertIn("backing off; this cannot be recorded: [Errno 5] Input/output error", self.job.status())
        self.now += 1
        self.all_report(0, "waiting")
        self.assertEqual(1, self.job.record.read()["attempt"])

    def test_a_replica_fails_while_the_number_of_the_attempt_is_recorded(self):
        self.all_report(0, "waiting")
        self.all_report(1, "running")
        self.report("dataloader", 1, "failed")
        blocked = self.whole("nn-worker", 1, "waiting", blocked="NATS does not answer")
        self.meanwhile(record, "flush_folder", lambda: self.job.report(blocked))
        self.all_report(1, "waiting")
        self.assertEqual(("stop", False, False), (self.job.phase, self.job.record.running, self.job.record.read()["running"]))


class Records(JobTest):
    def test_an_attempt_from_a_backup_disturbs_none_and_its_folder_is_not_written(self):
        self.all_report(0, "waiting")
        self.all_report(1, "running")
        os.makedirs(os.path.join(self.root, "attempt-99"))
        self.job.keeper.keep()
        self.assertEqual("go", self.report("dataloader", 1, "running")["order"])
        self.report("dataloader", 1, "failed")
        self.all_report(1, "waiting")
        self.assertEqual("attempt 100 starts from the beginning", self.logged[-1])

    def test_no_attempt_starts_beside_one_that_is_in_no_record(self):
        for first, second in ((("dataloader", 3), ("nn-worker", 0)), (("nn-worker", 0), ("dataloader", 3))):
            with self.subTest(first):
                self.now = 0
                self.job = self.coordinator(state_directory=self.folder())
                for role, attempt in (first, second):
                    self.report(role, attempt, "waiting")
                for self.now, phase in ((1, "stop"), (99, "stop"), (101, "start")):
                    self.all_report(3, "waiting")
                    self.assertEqual(phase, self.job.phase)
                self.assertEqual(4, self.job.attempt)

    def test_an_error_that_nothing_expects_does_not_end_the_work(self):
        def fails_once(name):
            again, tried = threading.Event(), []

            def work():
                tried.append(name)
                if len(tried) == 1:
                    raise TypeError(name)
                again.set()

            work.__name__ = name
            setattr(self.job.keeper, name, work)
            return again

        self.job.settings.look_seconds = 0.01
        self.job.keeper.moment = lambda: 0.01
        work = [fails_once("keep"), fails_once("tidy"), fails_once("hold")]
        self.job.keeper.drop({"a checkpoint"}, "the test says so")
        self.job.keeper.run()
        self.addCleanup(setattr, self.job, "superseded", True)
        self.assertTrue(work[0].wait(60))
        self.job.keeper.drop({"a checkpoint"}, "the test says so")
        for each in work[1:]:
            self.assertTrue(each.wait(60))
        self.assertEqual({f"{name} continues after TypeError('{name}')" for name in ("keep", "tidy", "hold")}, set(self.logged))


class Costs(JobTest):
    """A report costs the same for any number of replicas. This counts lines that Python runs, not time."""

    def most(self, replicas, attempt, state, **more):
        """Have all replicas report, and return the most lines that one of the last reports of a role took."""

        def trace(_frame, event, _argument):
            self.lines += event == "line"
            return trace

        most = 0
        for role, count in replicas.items():
            for replica in range(count):
                self.lines = 0
                report = self.whole(role, attempt, state, replica=replica, pod=f"{role}-{replica}", instance=f"{role}-{replica}", **more)
                sys.settrace(trace if replica > count - 20 else None)
                self.job.report(report)
                sys.settrace(None)
                most = max(most, self.lines)
        return most

    def test_a_report_costs_the_same_for_any_number_of_replicas(self):
        costs = {}
        for number in (100, 10000):
            replicas = {"dataloader": number - 1, "nn-worker": 1}
            self.job = self.coordinator(replicas=replicas, state_directory=self.folder())
            costs[number] = []
            for attempt, state, more in (
                (0, "waiting", {"blocked": "NATS does not answer"}), (0, "waiting", {}), (1, "running", {}), (1, "running", {}),
                (1, "failed", {}), (1, "waiting", {}), (2, "running", {}), (2, "finished", {}),
            ):
                costs[number].append(self.most(replicas, attempt, state, **more))
                self.job.keeper.keep()
            self.assertIn("in attempt 2", self.job.status())
        self.assertEqual(costs[100], costs[10000])
        self.assertNotIn(0, costs[100], "lines are counted")
