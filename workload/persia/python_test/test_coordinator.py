import os
import sys
import time
from unittest import mock

import checkpoints
import coordinator
import events
import machine
import record
from job import JobTest
from machine import LOST


class Pauses(JobTest):
    def test_a_pause_doubles_up_to_five_minutes(self):
        self.job.settings.backoff_seconds = 10
        self.assertEqual([0, 10, 20, 40, 80, 160, 300, 300], [self.job.machine.pause(failures) for failures in range(8)])


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

                self.now += 60

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
                self.work()
                self.assertIn(says, said[0])
                self.assertRegex(self.job.status(), "^(running|complete in) attempt 1")

    def another(self):
        """Another coordinator takes over."""
        other = self.coordinator()
        self.work(other)
        return other

    def test_a_replica_tells_that_the_job_is_complete(self):
        self.all_report(0, "waiting")
        done = self.whole("dataloader", 1, "finished", done=True)
        self.meanwhile(checkpoints, "scan", lambda: self.job.report(done))
        self.report("nn-worker", 1, "failed")
        self.work()
        self.assertEqual("complete in attempt 1", self.job.status())

    def test_the_attempt_ends(self):
        self.all_report(0, "waiting")
        self.all_report(1, "running")
        self.now += 60
        self.job.happens(events.Ticked)
        scan = self.job.queues[events.Scan].get()
        self.job.report(self.whole("nn-worker", 1, "failed"))
        self.job.do(scan)
        self.assertEqual(0, self.job.metrics()["persia_job_failures"])
        self.work()
        self.assertEqual(1, self.job.metrics()["persia_job_failures"])

    def test_a_write_that_hung_is_done_after_another_has_taken_over(self):
        others = []

        def take_over():
            others.append(self.another())
            others[0].machine.finish()
            self.work(others[0])

        self.work()
        self.meanwhile(record.Record, "check", take_over)
        self.job.machine.remember(failed="overwritten")
        self.work()
        self.assertEqual("overwritten", self.job.record.read()["failed"])
        self.now += 60
        self.work(others[0])
        self.assertEqual((True, ""), (self.job.record.read()["done"], self.job.record.read()["failed"]))
        self.work()
        self.assertEqual(LOST, self.job.machine.claim)

    def test_the_pod_ends(self):
        def clock():
            self.now += 1
            return self.now

        self.start()
        self.now += 20
        self.job.happens(events.Ticked)
        save = self.job.queues[events.Save].get()
        self.job.clock = clock
        self.job.release(2, 0)
        self.assertLess(self.now, 30, "the volume hangs")
        self.job.do(save)
        self.assertTrue(self.job.record.read()["running"])
        self.work()
        self.assertEqual((False, True), (self.job.record.read()["running"], self.job.record.read()["released"]))

    def test_replicas_are_called_when_an_attempt_starts_or_ends_and_when_nn_workers_can_be_asked(self):
        """The pod of the coordinator waits for those that are there, so that they need not wait for its substitute."""
        self.job.call = called = mock.Mock()
        self.all_report(0, "waiting")
        self.assertEqual(1, called.call_count)
        self.all_report(1, "running")
        self.now += 5
        self.report("nn-worker", 1, "waiting", leaving=True)
        self.assertEqual((3, False), (called.call_count, self.job.machine.heard_all()))
        for told, waits in (False, 3), (True, 1):
            with self.subTest(told=told):
                def sleep(_, told=told):
                    self.now += 0.4
                    self.all_report(1, "running") if told else self.work()

                with mock.patch.object(coordinator.time, "sleep", mock.Mock(side_effect=sleep)) as slept:
                    self.job.release(1, 1)
                self.assertEqual(waits, slept.call_count)

    def test_a_replica_fails_while_the_number_of_the_attempt_is_recorded(self):
        self.all_report(0, "waiting")
        self.all_report(1, "running")
        self.report("dataloader", 1, "failed")
        blocked = self.whole("nn-worker", 1, "waiting", blocked="NATS does not answer")
        self.meanwhile(record, "flush_folder", lambda: self.job.report(blocked))
        self.all_report(1, "waiting")
        self.assertEqual(("stop", False, False), (self.job.machine.phase, self.job.machine.values["running"], self.job.record.read()["running"]))


class Records(JobTest):
    def test_an_attempt_from_a_backup_disturbs_none_and_its_folder_is_not_written(self):
        self.all_report(0, "waiting")
        self.all_report(1, "running")
        os.makedirs(os.path.join(self.root, "attempt-99"))
        self.work()
        self.assertEqual("go", self.report("dataloader", 1, "running")["order"])
        self.report("dataloader", 1, "failed")
        self.all_report(1, "waiting")
        self.assertEqual("attempt 100 starts from the beginning", self.logged[-1])

    def test_an_error_that_nothing_expects_does_not_end_the_work(self):
        def fails_once(handler):
            failed = []

            def handle(machine, event):
                handler(machine, event)
                if not failed:
                    failed.append(event)
                    raise TypeError(type(event).__name__)
            return handle

        kinds = (events.Ticked, events.Loaded, events.Saved, events.Scanned, events.Removed)
        broken = self.write("attempt-1/1", "dense.pt")
        self.job = coordinator.Coordinator(self.settings, self.logged.append)
        self.addCleanup(setattr, self.job, "happens", sys.exit)
        with mock.patch.dict(machine.HANDLERS, {kind: fails_once(machine.HANDLERS[kind]) for kind in kinds}), \
                mock.patch("coordinator.time", mock.Mock(sleep=lambda _, sleep=time.sleep: sleep(0.001))):
            self.job.run()
            wants, end = {f"the coordinator continues after TypeError('{kind.__name__}')" for kind in kinds}, time.monotonic() + 60
            while not wants <= set(self.logged) and time.monotonic() < end:
                for role in self.settings.replicas:
                    self.job.report(self.whole(role, 0, "waiting"))
                time.sleep(0.01)
        self.assertEqual(wants, set(self.said("continues after")))
        self.assertEqual((2, False), (self.job.record.read()["attempt"], os.path.exists(broken)))


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
                self.work()
            self.assertIn("in attempt 2", self.job.status())
        self.assertEqual(costs[100], costs[10000])
        self.assertNotIn(0, costs[100], "lines are counted")
