import concurrent.futures
import os
import unittest
from unittest import mock

import launch
import machine
import processes
import simulation
from checkpoints import Found

SEED, HISTORIES = int(os.environ.get("SEED") or 1), int(os.environ.get("HISTORIES") or 300)

# Within how many histories the simulation finds a fault that was planted. Each row has the first one that does.
ENOUGH = 500


def planted(**functions):
    """Return a machine with other functions."""
    return type("Planted", (machine.Machine,), functions)


def start_unrecorded(self, found):
    machine.Machine.take_found(self, found)
    if self.chosen:
        self.start(True)


def choose_half(self, found):
    return min(found.incomplete, default=None) or machine.Machine.choose(self, found)


def forget_the_end(self):
    machine.Machine.finish(self)
    self.remember(done=False)


def count_all(self, trouble, found):
    self.values["checkpoint"] = found.newest()
    machine.Machine.count_failure(self, trouble, found)


def trust_the_predecessor(self, kept):
    machine.Machine.recall(self, dict(kept, released=True, unheard=False))


def continue_again(self, found):
    self.values["dense"] = None
    return machine.Machine.begins_anew(self, found)


def ignore_dumps(self, found):
    found.incomplete = []
    return machine.Machine.begins_anew(self, found)


def ignore_checkpoints(self, found):
    found.dense_time = float("inf")
    return machine.Machine.begins_anew(self, found)


def learn_the_number(self, attempt):
    memory = self.values["memory"]
    machine.Machine.learn(self, attempt)
    self.values["memory"] = memory
    self.roster.keep(memory if self.phase == machine.STOP else 0)


def start_all(self, key, member):
    answer = machine.Machine.order(self, key, member)
    return self.answer(machine.START) if answer["order"] == machine.STOP and self.phase == machine.START else answer


PLANTED = {
    "no waiting for silence": (27, planted(wait_for_silence=lambda self, since: None)),
    "an older pod is obeyed": (177, planted(has_substitute=lambda self, before, member: False)),
    "a start before the record is saved": ((90, (157, "slow volume, and a restart 0", 0.5, 0)), planted(take_found=start_unrecorded)),
    "a scan takes a half checkpoint": (3, planted(choose=choose_half)),
    "the checkpoint in use is removed": (1, planted(drop_unneeded=lambda self, found: self.drop([checkpoint.path for checkpoint in found.complete], ""))),
    "a superseded coordinator goes on": (79, planted(stand_down=lambda self, why="": None)),
    "a volume that fails counts as empty": (5, planted(fail_read=lambda self, error: self.take_found(Found()))),
    "the end is not recorded": (1, planted(finish=forget_the_end)),
    "failures count although there is a new checkpoint": (17, planted(count_failure=count_all)),
    "the predecessor is trusted": (1, planted(recall=trust_the_predecessor)),
    "a write that was held back is trusted": ((38, (82.5, "node is lost 0", 0.6, 6.8), (108.4, "slow volume of one", 0.969, 25.7), (128.4, "command fails", 0.1, 0)),
        planted(unsure=property(lambda self: None, lambda self, until: None))),
    "an attempt without progress is continued again": (62, planted(begins_anew=continue_again)),
    "servers keep their memory in spite of a dump": (155, planted(begins_anew=ignore_dumps)),
    "servers keep their memory if most have lost it": (1, planted(lost_memory=lambda self: "")),
    "others start before servers have loaded their parts": (30, planted(order=start_all)),
    "servers keep the memory of an attempt that is in no record": (
        (442, (94.8, "node is lost 0", 0.6, 5.1), (100.5, "slow volume of one", 0.235, 12.1), (107.1, "command fails", 0.1, 0)),
        planted(learn=learn_the_number)),
    "a server without memory takes part": (17, planted(joins=lambda self, member: True)),
}

# Faults of what the machine stands on, with the first history that finds each, or one and its fault.
BELOW = {
    "a replica does not notice that it is cut off": ((15, (51, "node is lost", 0.1, 190)), launch.Replica, "forsaken", lambda self: False),
    "servers that start anew are not waited for": (3, machine.Roster, "keep", lambda self, memory: setattr(self, "memory", memory)),
    "a container of an older pod takes the run": (79, machine.record, "is_outranked", lambda kept, pod: False),
}


FREEZE = processes.Command.freeze


class Scenes(unittest.TestCase):
    """What a history of random faults does not show: how long something takes."""

    def scene(self, *faults, jobset=True, seconds=200, behind=0.0):
        """Play a history in which a script takes some seconds to end, and the clocks of new pods are behind. Return the world."""
        world = simulation.World(4, faults=list(faults))
        world.jobset = world.settings.once = jobset
        world.endings, world.grace = (seconds,), 300
        world.at(50, lambda: setattr(world, "behind", behind))
        world.at(50, lambda: [vars(each).update(ending=0.5) for pod in world.pods if pod.key[0] != machine.NN_WORKER for each in pod.commands])
        world.run()
        return world

    def test_a_drained_nn_worker_has_its_time_to_save(self):
        for jobset in True, False:
            for fault in "drained 0", "two drained":
                with self.subTest(fault, jobset=jobset), simulation.simulated():
                    world = self.scene((60, fault, 0.0, 0), jobset=jobset)
                    when, _, _, status, together = next(end for end in world.ends if end[1] == (machine.NN_WORKER, 0))
                    self.assertEqual((143, True), (status, together or fault != "drained 0"), world.ends)
                    self.assertGreater(when, 260)

    def test_the_time_to_save_ends_when_another_coordinator_has_the_run(self):
        with simulation.simulated():
            world = self.scene((59, "broken volume 0", 0, 30), (60, "drained 0", 0, 0))
            when, _, _, status, _ = next(end for end in world.ends if end[1] == (machine.NN_WORKER, 0))
            self.assertEqual(137, status, world.ends)
            self.assertLess(when, 180)

    def test_a_substitute_with_a_slow_clock(self):
        with simulation.simulated():
            world = self.scene((60, "drained", 0.3, 0), seconds=0.5, behind=-1000)
            self.assertLess(world.began[2], 100)

    def test_servers_keep_their_memory(self):
        for name, fault, kind, freeze, broken in (
            ("one is cut off, and frozen", (140, "server is lost", 0, 190), machine.Machine, FREEZE, ""),
            ("one is cut off, and answers in place of its substitute", (140, "server is lost", 0, 190), machine.Machine,
                lambda self, frozen: None, "while attempt 1 runs in embedding-ps-0"),
            ("that is older than the checkpoint", (128, "command fails", 0.9, 0), planted(begins_anew=ignore_checkpoints), FREEZE, "a checkpoint is newer"),
        ):
            with self.subTest(name), simulation.simulated(), mock.patch.object(processes.Command, "freeze", freeze):
                world = simulation.World(4, kind, faults=[fault])
                world.settings.partial, world.between = True, 85
                if broken:
                    self.assertRaisesRegex(simulation.Broken, broken, world.run)
                else:
                    world.run()
                    self.assertEqual(fault[1] == "server is lost", world.partial == 1)

    def test_the_end_is_not_recorded_before_all_containers_restart(self):
        """Pods of a JobSet that have ended would not come back for the attempt that the next coordinator starts."""
        with simulation.simulated():
            self.scene((60, "torn record", 0, 0), (61, "data ends", 0, 0), (120, "all restart", 0, 0), (121, "record is removed", 0, 0), seconds=0.5)


def breaks(seed):
    with simulation.simulated():
        return simulation.history(seed)


class Histories(unittest.TestCase):
    def test_nothing_breaks(self):
        seeds = range(SEED, SEED + HISTORIES)
        with concurrent.futures.ProcessPoolExecutor() as processors:
            for seed, broken in zip(seeds, processors.map(breaks, seeds, chunksize=10)):
                if broken:
                    with simulation.simulated():
                        why, faults, trace = simulation.shrink(seed)
                    self.fail(f"seed {seed}: {why}\nit needs {faults}\n" + "\n".join(trace[-60:]))

    def finds(self, first, kind=machine.Machine):
        """Assert that the simulation finds a fault: in histories from the first one on, or in one with some faults of its world."""
        with simulation.simulated():
            found = simulation.history(first[0], kind, list(first[1:])) if isinstance(first, tuple) else any(
                simulation.history(seed, kind) for seed in range(first, ENOUGH + 1))
        self.assertTrue(found, f"not in {ENOUGH} histories")

    def test_planted_faults_are_found(self):
        for fault, (first, kind) in PLANTED.items():
            with self.subTest(fault):
                self.finds(first, kind)
        for fault, (first, where, name, function) in BELOW.items():
            with self.subTest(fault), mock.patch.object(where, name, function):
                self.finds(first)
