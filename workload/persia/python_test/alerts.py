"""Writes tests for promtool, of QUIET histories without a fault, and some with, by a SEED: alerts.py RULES

The coordinator, the gateway's client, and the example's own code push what happens in histories of a job. The
tests say which alerts fire in them. Only PERSIA's servers, which are not in Python, are played."""

import json
import os
import random
import sys
import urllib.request

import gateway
import metrics
import test_ledger
from ledger import WAITING

# How often replicas report and push, the coordinator looks for checkpoints, and Prometheus scrapes, in seconds.
SCRAPE = test_ledger.BEAT = test_ledger.WORK = 30


class History(test_ledger.Ledgers):
    """A history of a job, with what its metrics gateway has at each scrape."""

    def __init__(self, chance, job):
        super().__init__("setUp")
        self.setUp()
        self.series, self.scrapes, self.groups, self.chance, self.played = {}, 0, {}, chance, job
        self.loss, self.memory = lambda: chance.uniform(0.4, 0.7), chance.uniform(0.3, 0.9)
        # PERSIA's servers and embedding workers, what they take, whether the job waits for data, and what is wrong with the second of each.
        self.servers, self.workers = chance.randint(2, 3), chance.choice((1, 2, 3, 5))
        self.table, self.prepares, self.network = (10 ** chance.uniform(-3, -0.5) for _ in range(3))
        self.waits, self.waits_until, self.slow, self.starved, self.late, self.misses = 0.01, 0, 1, 1, 0, 0
        self.slow_machines, self.slow_rank = {}, 1
        self.most, self.period, self.begin = 1000, chance.uniform(600, 1800), chance.uniform(20, 400)
        self.reports_progress = chance.random() < 0.5
        self.coordinates, self.others, self.pending = True, True, 0  # whether nn-worker 0 pushes, others do, and how many have no node
        urllib.request.OpenerDirector.open = self.take

    def take(self, request, timeout):
        """Be the gateway, which has the last push of each group. Managed Prometheus renames labels that it sets itself."""
        parts = ["exported_" + part if part in ("job", "instance") else part for part in request.selector.split("/")[2:]]
        group = ", ".join(f'{name}="{value}"' for name, value in [("persia_job", self.played), *zip(parts[::2], parts[1::2])])
        self.groups[group] = {f"push_time_seconds{{{group}}}": self.scrapes * SCRAPE}
        for line in (line for line in request.data.decode().splitlines() if not line.startswith("#")):
            name, value = line.rsplit(" ", 1)
            name, _, own = name.rstrip("}").partition("{")
            self.groups[group][f"{name}{{{', '.join(filter(None, (group, own)))}}}"] = value
        return open(os.devnull)

    def push(self, path, values):
        gateway.Gateway("gateway", "/metrics/job/clicks" + path, SCRAPE, self.fail).push(values)

    def go(self, activity, seconds, *arguments, **named):
        end = self.now + seconds
        while self.now < end:
            super().go(activity, min(SCRAPE, end - self.now), *arguments, **named)
            if self.now >= (self.scrapes + 1) * SCRAPE:
                self.scrape()

    def scrape(self):
        if self.coordinates:
            self.job.machine.slow = self.slow_machines
            self.push("", self.job.metrics)
            self.push("/run/1/role/nn-worker/replica/0", lambda: {"persia_replica_memory_ratio": self.memory})
        if self.others:
            self.push("/run/1/role/dataloader/replica/0", lambda: {"persia_replica_alive": 1})
            self.groups["kube-state-metrics"] = {f'kube_pod_status_unschedulable{{namespace="persia", pod="{self.played}-nn-worker-{number}-0-x7k2p"}}': 1 for number in range(self.pending or self.scrapes % 40 < 20)}
        else:
            self.groups.pop("kube-state-metrics", None)
        if self.job.machine.phase == "start" and self.coordinates:
            metrics.push({"loss": self.loss()})
            self.look_up()
            for rank in range(3):
                metrics.push({"step_seconds": 0.1 * self.chance.uniform(0.9, 1.1) * (self.slow_rank if rank == 2 else 1)}, f"/rank/{rank}")
        for name, value in (sample for group in self.groups.values() for sample in group.items()):
            self.series.setdefault(name, {})[self.scrapes] = str(value)
        self.scrapes += 1

    def look_up(self):
        """Be PERSIA's programs, which push what the last lookup took, again and again while no other comes."""
        self.waits_until = max(self.waits_until, self.now + self.chance.uniform(60, 3600) * (self.chance.random() < self.waits))
        if self.now < self.waits_until:
            return

        def took(seconds):
            return seconds * self.chance.lognormvariate(0, 0.5) * (self.chance.uniform(5, 50) if self.chance.random() < 0.01 else 1)

        tables = [self.table * (self.slow if server == 1 else 1) for server in range(self.servers)]
        for role, number in [*((1, server) for server in range(self.servers)), *((2, worker) for worker in range(self.workers))]:
            starved, late = (self.starved, self.late) if number == 1 else (1, 0)
            labels = f'persia_job="{self.played}", exported_instance="rep_{number}", ip_addr="10.{role}.{self.job.machine.attempt // 3}.{number}"'
            self.groups[labels] = {f"{name}{{{labels}}}": value for name, value in (
                {"lookup_hashmap_time_cost_sec": took(tables[number]), "gradient_id_miss_count": self.misses * self.scrapes} if role == 1 else
                {"lookup_rpc_time_cost_sec": max(map(took, tables)) + starved * took(self.network) + late, **{f"lookup_{part}process_time_cost_sec": starved * took(self.prepares) for part in ("pre", "post")}}).items()}

    def attempt(self, checkpoints, end, rest=0.5):
        """Live through an attempt that trains on for a part of its usual time after its last checkpoint."""
        trainings = [self.period * self.chance.uniform(0.8, 1.2) for _ in range(checkpoints)]
        self.job.settings.attempts = self.most
        self.live(self.chance.uniform(0, 600), self.begin, trainings, self.period * rest, end)
        self.go(WAITING, 120, roles=())

    def leave(self, others, seconds):
        """Have nn-worker 0 go, or all replicas. The gateway keeps what they have pushed."""
        self.coordinates, self.others = False, others
        for _ in range(int(seconds) // SCRAPE):
            self.now += SCRAPE
            self.scrape()

    def test(self, alert):
        """Return a test that the alert fires, and no other, none in the quiet part before, and none while the job is
        suspended."""
        second = 'exported_instance="rep_1", ' if alert.startswith("PersiaSlow") and alert[10:] not in ("Machine", "NNWorker") else ""
        samples = [{"labels": f'{{alertname="{alert}", {second}persia_job="{self.played}"}}', "value": 1}] if alert else []
        fired = self.scrapes
        self.leave(False, 4500)
        return {"interval": f"{SCRAPE}s", "input_series": [{"series": series, "values": " ".join(known.get(scrape, "_") for scrape in range(self.scrapes))} for series, known in self.series.items()],
                "promql_expr_test": [{"expr": 'group by (alertname, persia_job, exported_instance) (count_over_time(ALERTS{alertstate="firing"}[1w]))', "eval_time": f"{scrape * SCRAPE}s", "exp_samples": expected}
                                     for scrape, expected in ((max(0, self.calm - 1), []), (fired, samples))] + [
                    {"expr": 'ALERTS{alertstate="firing"}', "eval_time": f"{self.scrapes * SCRAPE}s", "exp_samples": []}]}


# Alerts, what a fault changes, and the attempts that follow, each with its checkpoints, end, and rest. A job that never
# saves has never saved. "away" is how long nn-worker 0 is away then.
COMPLETE = [(3, "the job is complete")]
FAULTS = [
    ("PersiaJobFailed", {"most": 1}, [(0, "a command fails")]),
    ("PersiaNoProgress", {"reports_progress": True}, [(1, "progress ends")]),
    ("PersiaCheckpointOverdue", {}, [(3, "the coordinator's pod leaves", 0), (0, "the job is complete", 5)]),
    ("PersiaNothingSaved", {"upgrades": 0, "period": 7200}, [(0, "a pod leaves")] * 4),
    ("PersiaNothingSaved", {"upgrades": 0, "reports_progress": False, "period": 13 * 3600}, [(0, "the job is complete", 1)]),
    ("PersiaReplicaEndsAttempts", {}, [(1, "a command fails"), (1, "the coordinator's pod leaves")] * 3),
    ("PersiaReplicaUnreachable", {}, [(1, "a replica is silent")] * 2),
    ("PersiaNoMachines", {"pending": 2}, COMPLETE),
    ("PersiaCoordinatorLost", {"away": 1800}, [(1, "the coordinator's node is lost")]),
    ("PersiaSlowServer", {"slow": 8, "table": 0.02, "waits": 0}, COMPLETE),
    ("PersiaSlowEmbeddingWorker", {"starved": 5, "prepares": 0.01, "workers": 2, "waits": 0}, COMPLETE),
    ("PersiaSlowNetwork", {"late": 0.05, "network": 0.003, "table": 0.02, "workers": 2, "waits": 0}, COMPLETE),
    ("PersiaSpoiledGradients", {"misses": 3}, COMPLETE),
    ("PersiaSlowMachine", {"slow_machines": {("embedding-ps-1", "node-1", "pod", "memory"): 0.4}}, COMPLETE),
    ("PersiaSlowNNWorker", {"slow_rank": 2}, COMPLETE),
    ("PersiaLossIsNaN", {"loss": lambda: float("nan")}, COMPLETE),
    ("PersiaMemoryNearLimit", {"memory": 0.95}, COMPLETE),
]


def main(rules):
    seed, quiet, tests = os.environ.get("SEED") or os.urandom(4).hex(), int(os.environ.get("QUIET") or 1), []
    chance = random.Random(seed)
    for alert, change, attempts in [("", {"away": 300}, COMPLETE)] * quiet + FAULTS:
        history = History(chance, f"{alert or 'quiet'} {len(tests)} of seed {seed}")
        for _ in range(min(chance.randint(0, 2), change.get("upgrades", 2))):  # of nodes
            history.attempt(chance.randint(1, 3), chance.choice(("a pod leaves", "the coordinator's pod leaves")))
        history.calm = history.scrapes
        vars(history).update(change)
        for attempt in attempts:
            history.attempt(*attempt)
        history.leave(True, change.get("away", 0))
        tests.append(history.test(alert))
        history.doCleanups()
    json.dump({"rule_files": [os.path.abspath(rules)], "evaluation_interval": f"{SCRAPE}s", "tests": tests}, sys.stdout)


main(sys.argv[1])
