"""What the machine decides at the edges of its conditions, which histories of random faults rarely meet."""

from unittest import mock

import checkpoints
import events
import ledger
import machine
import record
from job import JobTest
from machine import FAILED, LOST, START, STOP


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

    def test_a_data_loader_for_which_all_wait_is_not_measured(self):
        for dense, following in (None, ""), ("/dense-1/2", None):
            with self.subTest(dense=dense):
                member = self.whole("dataloader", 0, "waiting")
                self.job.machine.roster.take(("dataloader", 0), member, 0)
                vars(self.job.machine).update(phase=START, attempt=1, dense=dense, joined={"nn-worker": {("nn-worker", 0)}, "embedding-ps": set()})
                self.assertEqual((START, following), (lambda order: (order["order"], order["next"]))(self.job.machine.order(("dataloader", 0), member)))

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

    def changed(self, replicas=None, **changes):
        """Return the machine of a new job that holds the claim on its run, with some of its state changed."""
        self.job = self.coordinator(state_directory=self.folder(), **({"replicas": replicas} if replicas else {}))
        self.work()
        for name, value in changes.items():
            setattr(self.job.machine, name, value)
        return self.job.machine

    def test_which_replicas_may_have_an_older_pod_that_runs_on(self):
        for attempt, vouched, reported, key, unknown in (
            (0, False, 0, ("dataloader", 0), False), (1, False, 1, ("dataloader", 0), True), (1, False, 0, ("nn-worker", 0), True),
            (1, True, 1, ("dataloader", 0), False), (1, True, 0, ("dataloader", 0), True), (1, True, 0, ("nn-worker", 1), True), (1, True, 0, ("nn-worker", 0), False),
        ):
            with self.subTest(attempt=attempt, vouched=vouched, reported=reported, key=key):
                decides = self.changed(attempt=attempt, vouched=vouched)
                self.assertEqual(unknown, decides.is_unknown(key, {"attempt": reported}))

    def test_the_memory_of_servers_after_an_attempt_that_another_coordinator_started(self):
        for phase, claim, attempt, learned, memory in (
            (STOP, machine.HELD, 3, 3, 0), (STOP, machine.HELD, 2, 2, 7), (STOP, machine.UNREAD, 3, 3, 7), (START, machine.HELD, 3, 2, 7),
        ):
            with self.subTest(phase=phase, claim=claim, attempt=attempt):
                decides = self.changed(phase=phase, claim=claim, attempt=2)
                decides.values["memory"] = decides.roster.memory = 7
                decides.learn(attempt)
                self.assertEqual((learned, memory, memory, memory == 0), (decides.attempt, decides.values["memory"], decides.roster.memory, decides.values["unheard"]))

    def test_when_servers_keep_their_memory_beside_a_dense_state(self):
        for change, why in (
            ({}, ""), ({"dense": None}, "saved its dense state"), ({"recorded": "/d"}, "saved its dense state"), ({"incomplete": ["/b"]}, "being written"),
            ({"time": 8.9}, ""), ({"time": 9}, "not of the newest"), ({"resume": "/b"}, "not of the newest"), ({"lost": [0, 1]}, "2 of 3 servers"),
        ):
            with self.subTest(change=change):
                decides, found = self.changed({"embedding-ps": 3}, resume=change.get("resume", "/a")), checkpoints.Found()
                found.dense, found.dense_time, found.incomplete = change.get("dense", "/d"), 9, change.get("incomplete", [])
                found.complete = [checkpoints.Checkpoint(1, change.get("time", 1), "/a", False, 1, True)]
                decides.values["dense"], decides.roster.without_memory = change.get("recorded"), mock.Mock(return_value=change.get("lost", []))
                self.assertRegex(decides.begins_anew(found), why or "^$")

    def test_which_memory_the_next_coordinator_knows(self):
        for partial, servers, attempt, memory in (True, 3, 2, 7), (False, 3, 2, 0), (True, 4, 2, 0), (True, 3, 3, 0):
            with self.subTest(partial=partial, servers=servers, attempt=attempt):
                self.settings.partial = partial
                decides = self.changed({"embedding-ps": 3}, attempt=attempt)
                decides.recall(dict(record.blank(self.settings.job), attempt=2, memory=7, servers=servers))
                self.assertEqual(memory, decides.values["memory"])

    def test_a_replica_that_a_smaller_job_has_no_more_is_told_to_stop(self):
        decides = self.changed()
        self.assertEqual(("stop", False), (self.job.report(self.whole("dataloader", 0, "waiting", replica=1))["order"], ("dataloader", 1) in decides.roster.reports))

    def test_a_coordinator_stands_down_once_and_has_no_servers_keep_their_memory(self):
        decides = self.changed(actions=[])
        decides.roster.memory = 7
        for _ in range(2):
            decides.stand_down()
        self.assertEqual((1, 0), (len(decides.actions), decides.roster.memory))

    def test_only_servers_that_keep_their_memory_have_folders_that_are_forgotten(self):
        for partial, queue in (True, ["/dense-1"]), (False, []):
            self.settings.partial = partial
            decides, found = self.changed(), checkpoints.Found()
            found.forgotten = ["/dense-1"]
            decides.drop_unneeded(found)
            self.assertEqual(queue, decides.queue)

    def test_a_checkpoint_is_removed_only_after_the_record_has_been_written_for_that(self):
        for proving, removing in (True, "/a"), (False, None):
            decides = self.changed(proving=proving, queue=["/a"], unneeded={"/a": "why"})
            decides.decide(1, 1, events.Saved())
            self.assertEqual(removing, decides.removing)

    def test_pods_that_are_replaced_again_and_again_soon_are_waited_for(self):
        for counts, seconds, short in (False, 299, 3), (False, 300, 0), (True, 299, 0):
            decides = self.changed(short=2, now=seconds, started=0)
            decides.count_failure(machine.Trouble("", counts, False, ledger.LOST), checkpoints.Found())
            self.assertEqual(short, decides.short)

    def test_how_a_trouble_counts_and_whether_it_doubts_the_checkpoint(self):
        servers = {"nn-worker": 1, "embedding-ps": 1}
        for state, more, trouble in (
            ("failed", {}, (True, True, ledger.COMMAND)), ("failed", {"doubts": False}, (True, False, ledger.COMMAND)), ("waiting", {}, (True, False, ledger.LOST)),
            ("finished", {}, (True, True, ledger.COMMAND)), ("running", {"leaving": True}, (False, False, ledger.REPLACED)),
            ("running", {"instance": "new"}, (True, False, ledger.LOST)), ("running", {"instance": "new", "pod": "new"}, (False, False, ledger.REPLACED)),
        ):
            with self.subTest(state=state, more=more):
                self.settings.replicas = servers
                decides = self.changed()
                self.all_report(0, "waiting")
                self.all_report(1, "running")
                self.job.report(self.whole("embedding-ps", 1, state, **more))
                self.assertEqual(trouble, decides.ended[1:4])

    def test_whether_the_record_of_a_job_that_is_over_counts_time_without_a_coordinator(self):
        for values, gap in (({}, 30), ({"done": True}, 0), ({"failed": "why"}, 0)):
            with self.subTest(values=values):
                decides = self.changed(now=130, wall=130)
                decides.recall(dict(record.blank(self.settings.job), ledger=dict(decides.ledger.record()["ledger"], at=100), **values))
                self.assertEqual(gap, decides.ledger.gap)

    def test_a_claim_is_renewed_two_seconds_after_its_first_write(self):
        decides = self.changed(claimed={}, changes=0, saved=0, sent=0)
        decides.decide(10, 10, events.Saved())
        self.assertEqual([[], ["Save"]], [self.works(now) for now in (11.9, 12)])

    def test_a_full_volume_is_told_once(self):
        decides = self.changed()
        logged = [event.text for _ in range(2) for event in decides.decide(1, 1, events.Saved(full=True)) if isinstance(event, events.Log)]
        self.assertEqual(["the volume is full; the record of the run is overwritten"], logged)

    def test_checkpoints_that_cannot_be_read_are_told_once(self):
        decides = self.changed(actions=[])
        for _ in range(2):
            decides.fail_read("away")
            self.assertEqual([events.Log("the checkpoints cannot be read: away")], decides.actions)

    def test_a_job_is_stalled_from_an_attempt_without_progress_to_one_with(self):
        decides = self.changed()
        for cause, stalled in (ledger.LOST, False), (ledger.STUCK, True), (ledger.LOST, True):
            decides.fail(machine.Trouble("", True, False, cause))
            self.assertEqual(stalled, decides.stalled)
        decides.prove()
        self.assertFalse(decides.stalled)

    def test_an_attempt_whose_number_is_not_recorded_waits_for_the_next_scan(self):
        for error, chosen, saved, attempt, phase, not_before in (
            (OSError("away"), True, 0, 0, STOP, 11), (None, True, 9, 0, START, 0), (None, True, 9, 1, STOP, 0), (None, True, 0, 0, STOP, 0), (OSError("away"), False, 0, 0, STOP, 0),
        ):
            with self.subTest(error=error, chosen=chosen, saved=saved, attempt=attempt):
                decides = self.changed()
                self.job.settings.backoff_seconds = 10
                for role in self.settings.replicas:
                    self.job.report(self.whole(role, 0, "waiting"))
                decides.values["attempt"], decides.attempt, decides.changes, decides.sent = 1, attempt, 9, saved
                decides.chosen = machine.Chosen(checkpoints.Found(), 9, None, {}) if chosen else None
                decides.decide(1, 1, events.Saved(error))
                self.assertEqual((phase, not_before, chosen and saved == 0 and not error), (decides.phase, decides.not_before, bool(decides.chosen)))

    def test_doubts_are_recorded_when_they_change(self):
        for doubts, kept, chosen in (({}, {}, "/b"), ({"/b": 1}, {"/b": 1}, "/b"), ({"/b": 2}, {"/b": 2}, "/a"), ({"/a": 2, "/b": 2}, {}, "/b"), ({"/gone": 1}, {}, "/b")):
            with self.subTest(doubts=doubts):
                decides, found = self.changed(), checkpoints.Found()
                found.complete = [checkpoints.Checkpoint(1, when, path, False, 1, True) for when, path in ((2, "/b"), (1, "/a"))]
                decides.values["doubts"], before = doubts, decides.changes
                self.assertEqual((chosen, kept, doubts != kept), (decides.choose(found), decides.values["doubts"], decides.changes > before))

    def test_what_the_start_of_an_attempt_waits_for(self):
        for change, starts in (
            ({}, True), ({"chosen": None}, False), ({"saved": 1}, False), ({"unsure": 1.0}, False), ({"full": True}, True),
            ({"full": True, "queue": ["/a"]}, False), ({"full": True, "removing": "/a"}, False), ({"queue": ["/a"], "removing": "/b"}, True),
        ):
            with self.subTest(change=change):
                decides = self.changed(**{"chosen": machine.Chosen(checkpoints.Found(), 2, None, {}), "saved": 2, **change})
                with mock.patch.object(decides, "start") as start:
                    decides.start_chosen()
                self.assertEqual(starts, start.called)

    def test_the_moment_before_another_try_is_a_tenth_of_a_second_to_one(self):
        for backoff, moment in (0, 0.1), (0.5, 0.5), (10, 1):
            self.job.settings.backoff_seconds = backoff
            self.assertEqual(moment, self.job.machine.moment())

    def test_whether_the_last_write_has_replaced_another_claim_is_looked_up_when_that_shows(self):
        self.changed(unsure=1.0)
        self.assertEqual([[], ["Scan"]], [self.works(now) for now in (0.9, 1)])

    def test_until_when_the_coordinator_of_a_job_that_is_over_stays(self):
        seen = {role: {"seen": 100} for role in (("nn-worker", 0), ("dataloader", 0))}
        for change, heard, stays in (
            ({}, [], False), ({"phase": FAILED}, [], False), ({"phase": START}, [], True), ({"phase": STOP}, [], True), ({"changes": 1}, [], True), ({"completion_asked": False}, [], True),
            ({"completion_asked": False, "over": -501.0}, [], True), ({"completion_asked": False, "over": -502.0}, [], False), ({}, [("nn-worker", 0)], False), ({}, [("dataloader", 0)], True),
            ({"now": 160}, [("dataloader", 0)], True), ({"now": 161}, [("dataloader", 0)], False),
        ):
            with self.subTest(change=change, heard=heard):
                decides = self.changed(**{"phase": machine.DONE, "saved": 0, "changes": 0, "completion_asked": True, "now": 99, **change})
                decides.roster.reports, decides.roster.heard = seen, dict.fromkeys(heard)
                self.assertEqual(stays, decides.stays())
