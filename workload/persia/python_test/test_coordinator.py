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
        self.job.release(2)
        self.assertLess(self.now, 30, "the volume hangs")
        self.job.do(save)
        self.assertTrue(self.job.record.read()["running"])
        self.work()
        self.assertEqual((False, True), (self.job.record.read()["running"], self.job.record.read()["released"]))

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


class Memory(JobTest):
    def test_a_container_that_restarts_is_a_failure_and_a_replaced_pod_is_none(self):
        for pod, failures in ("dataloader", 1), ("another", 0):
            self.job = self.coordinator(state_directory=self.folder())
            self.start()
            self.all_report(1, "running")
            self.report("dataloader", 0, "waiting", pod=pod, instance="new", since=1)
            self.assertEqual(failures, self.job.machine.values["failures"])

    def test_all_servers_begin_anew_when_more_than_a_tenth_have_lost_their_memory(self):
        for servers, lost, resume, anew in (
            (3, 0, "/a", False), (3, 1, "/a", False), (3, 1, None, True), (3, 0, None, False), (3, 2, "/a", True), (20, 2, "/a", False), (20, 3, "/a", True),
        ):
            with self.subTest(servers=servers, lost=lost, resume=resume):
                self.job = self.coordinator(replicas={"embedding-ps": servers})
                self.job.machine.resume, self.job.machine.roster.without_memory = resume, lambda role, lost=lost: list(range(lost))
                self.assertEqual(anew, bool(self.job.machine.lost_memory()))

    def test_all_servers_begin_anew_when_three_attempts_with_their_memory_have_failed(self):
        for failures, attempt, anew in (2, 12, False), (3, 12, True), (3, 11, True), (3, 10, False):
            with self.subTest(failures=failures, attempt=attempt):
                self.job = self.coordinator(replicas={"embedding-ps": 3})
                found, self.job.machine.attempt = checkpoints.Found(), attempt
                found.dense = "/dense-9/2"
                self.job.machine.values.update(memory=9, failures=failures)
                self.assertEqual(anew, "attempts failed" in self.job.machine.begins_anew(found))

    def test_an_attempt_that_saves_dense_states_for_ten_minutes_counts_like_one_with_a_checkpoint(self):
        for since, newest, seconds, cause, failures in (
            ("1", "2", 601, "failed command", 1), ("1", "2", 600, "failed command", 3), ("1", "1", 601, "failed command", 3),
            (None, "2", 601, "failed command", 3), ("1", "2", 601, "no progress", 3),
        ):
            with self.subTest(since=since, newest=newest, seconds=seconds, cause=cause):
                self.job = self.coordinator()
                found, self.job.machine.dense, self.job.machine.started = checkpoints.Found(), since, self.now - seconds
                found.dense = newest
                self.job.machine.values["failures"] = 2
                self.job.machine.count_failure(machine.Trouble("", True, True, cause), found)
                self.assertEqual(failures, self.job.machine.values["failures"])


class Edges(JobTest):
    """What happens at the edge of a condition."""

    def works(self, now):
        """Return the names of the actions that are due at a time."""
        return [type(action).__name__ for action in self.job.machine.decide(now, now, events.Ticked())]

    def test_a_volume_hangs_when_it_has_not_answered_for_longer_than_a_replica_may_be_silent(self):
        for seconds, hangs in ((60, 0), (61, 61)):
            with self.subTest(seconds):
                self.job.machine.loading, self.job.machine.now = 0, seconds
                self.assertEqual(hangs, self.job.machine.document("")["hangs"])

    def test_a_coordinator_that_stands_down_reads_the_record_three_times_until_it_counts_as_lost(self):
        self.work()
        self.job.machine.stand_down()
        self.assertEqual([[], ["Load"]], [self.works(now) for now in (19.9, 20)])

    def test_only_a_report_of_this_attempt_with_progress_shows_that_its_script_reports_it(self):
        for attempt, progress, reports in ((1, None, False), (0, "1", False), (1, "1", True)):
            with self.subTest(attempt=attempt, progress=progress):
                self.job.machine.attempt, self.job.machine.reports_progress = 1, False
                self.job.machine.notice(("nn-worker", 0), None, self.whole("nn-worker", attempt, "running", progress=progress))
                self.assertEqual(reports, self.job.machine.reports_progress)

    def test_an_attempt_that_another_coordinator_started_has_progressed_only_from_a_proven_checkpoint_without_memory(self):
        for resume, dense, progressed in (("/a", None, True), ("/a", "/dense", False), ("/b", None, False)):
            with self.subTest(resume=resume, dense=dense):
                self.job = self.coordinator(state_directory=self.folder())
                self.job.machine.values.update(resume=resume, proven="/a", dense=dense)
                self.job.machine.take_over("nn-worker")
                self.assertEqual(progressed, self.job.machine.progressed)

    def test_nothing_is_proven_for_the_next_removal_during_one(self):
        self.work()
        for removing, due in (("/a", []), (None, ["Save"])):
            self.job.machine.queue, self.job.machine.removing = ["/b"], removing
            self.assertEqual(due, self.works(1))

    def test_a_scan_that_a_newer_coordinator_supersedes_ends_this_one_and_another_error_is_tried_again(self):
        for error, claim, reads in ((record.Superseded(), LOST, 0), (OSError("away"), machine.HELD, 1), (None, machine.HELD, 1)):
            with self.subTest(error=error):
                self.job = self.coordinator(state_directory=self.folder())
                self.work()
                self.job.machine.decide(1, 1, events.Scanned(error=error))
                self.assertEqual((claim, reads), (self.job.machine.claim, self.job.machine.failed_reads))

    def test_a_job_that_is_over_lets_go_of_memory_and_of_the_next_attempt(self):
        for end in (self.job.machine.finish, lambda: self.job.machine.give_up("why")):
            self.job.machine.roster.memory, self.job.machine.starting = 7, True
            end()
            self.assertEqual((0, False), (self.job.machine.roster.memory, self.job.machine.starting))
