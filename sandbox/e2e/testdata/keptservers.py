"""Disturbs trainings of the example with the project's launchers around PERSIA's processes: live servers keep their process and
embeddings, and others get those of the newest checkpoint. Run: keptservers.py FOLDER REPOSITORY IMAGES NATS SCENARIO RUNS SEED"""

import atexit
import contextlib
import glob
import itertools
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
import urllib.request

FOLDER, REPOSITORY, IMAGES, NATS, SCENARIO, RUNS, SEED = sys.argv[1:]
PYTHON = open(glob.glob(f"{IMAGES}/python*.stamp")[0]).read().split("\n")[1]
PATIENCE = 600
PORTS = map(str, itertools.count(12_000 + os.getpid() % 400 * 20))  # below those of outgoing connections
SIGNS = [*range(1 << 56, (1 << 56) + 1000), *range(2 << 56, (2 << 56) + 300)]  # users and items
LOOKUP = struct.pack("<I", len(SIGNS)) + b"".join(struct.pack("<QQ", sign, 8) for sign in SIGNS) + b"\0"
COMMANDS = {"embedding-ps": "embedding-parameter-server", "embedding-worker": "embedding-worker", "nn-worker": "nn-worker train.py",
            "dataloader": "data-loader data_loader.py"}
SERVER, WORKER, NN, LOADER = COMMANDS
# The dataloader waits until the test has looked at the servers. The nn-worker can spoil its model, and fails then.
GATE = """() as ctx:
        while not os.path.exists("gate-" + os.environ["PERSIA_ATTEMPT"]):
            __import__("time").sleep(0.02)
"""
SPOIL = """        if not torch.isfinite(loss):
            raise SystemExit("the loss is NaN")
        trained.add(number)
        if os.path.exists("spoil"):
            os.remove("spoil")
            ctx.model.load_state_dict({name: values * float("nan") for name, values in ctx.model.state_dict().items()})
            save_dense(ctx, trained)
"""


def wait(what, happens):
    for _ in range(50 * PATIENCE):
        with contextlib.suppress(OSError):  # files come and go, and so do servers
            if happens():
                return
        time.sleep(0.02)
    sys.exit(f"in vain: {what}")


def newest(files="run/attempt-*/*/opt.pt"):
    """Return the newest complete checkpoint, or the newest of other files, or ""."""
    return max(glob.glob(files), key=os.path.getmtime, default="")


def saved(vectors, parts):
    """Return whether parts of the newest checkpoint have these vectors, and no others."""
    files = [open(file, "rb").read() for file in glob.glob(f"{os.path.dirname(newest())}/{parts}/*.emb")]
    # A file begins with the number of its entries. These have the vector, what the optimizer adds, the dimension, and the sign.
    number, content = sum(int.from_bytes(file[:8], "little") for file in files), b"".join(files)
    entries = (re.escape(vector) + b".{8,80}?" + re.escape(struct.pack("<Q", sign)) for sign, vector in vectors.items())
    return len(vectors) == number and all(re.search(entry, content, re.DOTALL) for entry in entries)


class Job:
    """A training. Each replica has a pod with a launcher and a port."""

    def __init__(self, name, batches, optimizer="Adam(lr=0.02)"):
        shutil.copytree(f"{REPOSITORY}/examples/training", f"{FOLDER}/{name}")
        os.chdir(f"{FOLDER}/{name}")
        for file, old, new in (
            ("data_loader.py", "() as ctx:\n", GATE), ("train.py", "        trained.add(number)\n", SPOIL),
            ("train.py", "import Adam", "import Adagrad, Adam"), ("train.py", "Adam(lr=0.02)", optimizer),
        ):
            text = open(file).read()
            open(file, "w").write(text.replace(old, new))
        self.replicas, self.launchers, self.ports = {SERVER: 3, WORKER: 2, NN: 1, LOADER: 1}, {}, {}
        nats, coordinator, master = itertools.islice(PORTS, 3)
        self.variables = dict(
            os.environ, PATH=f"{os.path.dirname(PYTHON)}:{os.environ['PATH']}", PYTHONPATH=glob.glob(f"{IMAGES}/python*/site-packages")[0],
            PYTHONUNBUFFERED="1", LOG_LEVEL="info", PERSIA_SOCKET_IFNAME="lo", PERSIA_GLOBAL_CONFIG="global_config.yml",
            PERSIA_EMBEDDING_CONFIG="embedding_config.yml", PERSIA_NATS_URL=f"nats://127.0.0.1:{nats}",
            PERSIA_COORDINATOR=f"127.0.0.1:{coordinator}", PERSIA_TOKEN="a secret", PERSIA_JOB="test/job", PERSIA_RUN="1",
            PERSIA_STATE_DIR=os.path.abspath(".persia"), PERSIA_CKPT_ROOT=os.path.abspath("run"), PERSIA_RECOVERY="partial",
            PERSIA_ATTEMPTS="99", PERSIA_BEAT_SECONDS="1", PERSIA_BACKOFF_SECONDS="1", PERSIA_REVISION="1", WORLD_SIZE="1",
            MASTER_ADDR="127.0.0.1", MASTER_PORT=master, PET_MASTER_ADDR="127.0.0.1", PET_MASTER_PORT=master,
            CLICKS_STEPS_PER_DENSE_STATE="20", CLICKS_AUC_MARGIN="1", CLICKS_BATCHES=str(batches), CLICKS_CHECKPOINTS=str(batches // 300))
        atexit.register(subprocess.Popen([NATS, "-a", "127.0.0.1", "-p", nats], stderr=open("nats.log", "w")).kill)
        atexit.register(lambda: self.strike("delete", *self.launchers))
        self.start(*self.names())
        self.entered(0)
        self.train()
        wait("a checkpoint", newest)

    def names(self, *roles):
        return [f"{role}-{number}" for role in roles or self.replicas for number in range(self.replicas[role])]

    def start(self, *names):
        """Start containers, in new pods for replicas that have none."""
        for name in names:
            role, number = name.rsplit("-", 1)
            port, size = self.ports.setdefault(name, next(PORTS)), str(self.replicas[role])
            environment = dict(
                self.variables, PERSIA_ROLE=role, REPLICA_INDEX=number, REPLICA_SIZE=size, PERSIA_POD_UID=port,
                PERSIA_SERVER=f"127.0.0.1:{port}", PERSIA_IDLE_FILE=f"{name}.idle", PERSIA_PROGRESS_FILE=f"{name}.progress",
                PERSIA_REPLICAS=",".join(f"{role}={count}" for role, count in self.replicas.items()))
            command = [PYTHON, "-B", f"{REPOSITORY}/workload/persia/launch.py", "python3", "-m", "persia.launcher", *COMMANDS[role].split()]
            if role in (SERVER, WORKER):
                command += ["--replica-index", number, "--replica-size", size, "--port", port]
            self.launchers[name] = subprocess.Popen(command, env=environment, stdout=open(f"{name}.log", "a"), stderr=subprocess.STDOUT)

    def command(self, name):
        """Return the processes of a replica's command."""
        pids = [self.launchers[name].pid]
        for pid in pids:
            with contextlib.suppress(OSError):
                pids += [int(child) for thread in glob.glob(f"/proc/{pid}/task/*/children") for child in open(thread).read().split()]
        return pids[1:]

    def attempt(self):
        """Return the number of the last attempt, and what nn-worker 0 has said in it, which begins with what it starts from."""
        number, said = ["0", "", *re.split("attempt ([0-9]+) starts from ", open("nn-worker-0.log").read())[1:]][-2:]
        return int(number), said

    def memory(self, name):
        """Return the vectors of a server's embeddings, once no late gradient changes them."""
        def ask(what, body=b""):
            return urllib.request.urlopen(f"http://127.0.0.1:{self.ports[name]}/{what}_web_api", body, PATIENCE).read()

        seen = [None]
        wait(f"{name} stands still", lambda: seen.append(ask("lookup_mixed", LOOKUP)) or seen[-1] == seen[-2])
        rows = zip(SIGNS, struct.iter_unpack("32s", seen[-1][5 : 5 + 32 * len(SIGNS)]))
        vectors = {sign: vector for sign, (vector,) in rows if any(vector)}
        assert struct.unpack("<xQ", ask("get_embedding_size"))[0] == len(vectors), f"the number of embeddings of {name}"
        return vectors

    def strike(self, how, *names):
        """Kill ("crash") the commands of replicas, lose their containers, or delete their pods."""
        for name in names:
            for pid in [self.launchers[name].pid] * (how == "lose") + self.command(name) * (how != "delete"):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if how == "delete":
                self.launchers[name].terminate()
                self.ports.pop(name, None)
        for name in names if how != "crash" else ():
            self.launchers[name].wait(PATIENCE)

    def interrupt(self, how, *names):
        """Disturb an attempt, and check the next one. Return whether servers keep their memory in it."""
        before, processes = self.attempt()[0], {name: self.command(name) for name in self.names()}
        self.strike(how, *names)
        self.start(*names if how != "crash" else ())
        others = self.names(WORKER, NN, LOADER)
        wait("all others end", lambda: not any(set(self.command(name)) & set(processes[name]) for name in others))
        kept = {name: self.memory(name) for name in self.names(SERVER) if name not in names}
        partial = self.entered(before)
        print(f"{how} {names}: {self.attempt()[1]}".split("\n")[0], flush=True)
        for name in self.names(SERVER):
            stays, memory = partial and name in kept, self.memory(name)
            assert (self.command(name) == processes[name]) == stays, f"the process of {name}"
            assert memory == kept[name] if stays else saved(memory, f"s{name[-1]}"), f"the embeddings of {name}"
        return partial

    def entered(self, after):
        """Wait until an attempt after another one is about to train. Return whether servers keep their memory."""
        wait("the next attempt", lambda: self.attempt()[0] > after and "initialize the streaming dataset" in self.attempt()[1])
        return "servers keep their memory" in self.attempt()[1].split("\n")[0]

    def train(self):
        """Let the attempt train until it has a dense state that is newer than all checkpoints."""
        number, _ = self.attempt()
        open(f"gate-{number}", "w").close()
        wait("a dense state", lambda: f"/{number:06d}-" in newest("run/*/*/opt.pt"))


def interruptions():
    """Disturb trainings at random moments, and compare them with as many undisturbed ones, unless there is one."""
    chance, runs, reached = random.Random(int(SEED)), int(RUNS), []
    for run in range(2 * runs if runs > 1 else 1):
        job = Job(f"run-{run}", 1400, SCENARIO)
        strikes = chance.sample([[chance.choice(job.names(role))] for role in job.replicas], 4) + [chance.sample(job.names(), 2)]
        for names, how in zip(strikes if run < runs else (), itertools.cycle(("delete", "crash", "lose"))):
            job.train()
            time.sleep(chance.uniform(0, 0.5))
            assert job.interrupt(how, *names) == (sum(name.startswith(SERVER) for name in names) < 2)
        job.train()
        wait("the job is complete", lambda job=job: "launch.py: finished in attempt" in job.attempt()[1])
        reached.append(float(re.findall('"auc": ([0-9.]+)', job.attempt()[1])[-1]))
        print("AUC:", reached[-1], flush=True)
        job.strike("delete", *job.launchers)
    assert runs == 1 or abs(sum(reached[:runs]) - sum(reached[runs:])) / runs <= 0.002, reached


def causes():
    """Have servers begin anew where their memory may be wrong."""
    job = Job("causes", 3000)
    dump = f"run/attempt-{job.attempt()[0]}/*"
    wait("a dump", lambda: len(glob.glob(f"{dump}/dense.pt")) > len(glob.glob(f"{dump}/opt.pt")))
    assert not job.interrupt("crash", "nn-worker-0"), "a dump"
    job.train()
    open("spoil", "w").close()
    wait("NaN", lambda: "the loss is NaN" in job.attempt()[1])
    for partial in True, False:  # from the dense state with NaN, and from the checkpoint
        assert job.entered(job.attempt()[0]) == partial, "NaN"
        open(f"gate-{job.attempt()[0]}", "w").close()
    for role, partial in (NN, True), (SERVER, False):
        job.train()
        job.variables["PERSIA_REVISION"] = role
        assert job.interrupt("delete", *job.names(role)) == partial, f"another revision of {role}"
    job.train()
    last, _ = job.attempt()
    job.strike("crash", "embedding-worker-0")
    wait("the next attempt", lambda: job.attempt()[0] > last)
    assert not job.interrupt("lose", "embedding-ps-1"), "a server that was lost before it had the order to start"


def frozen():
    """Freeze the machine of an embedding worker until the next attempt has begun without it, and let it wake up."""
    job = Job("frozen", 3000)
    for number in range(3):
        job.train()
        name, last = f"{WORKER}-{number % 2}", job.attempt()[0]
        job.launchers["old"] = job.launchers[name]
        pids = [*job.command("old"), job.launchers["old"].pid]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        del job.ports[name]
        job.start(name)
        assert job.entered(last), "all servers begin anew"
        before = {server: job.memory(server) for server in job.names(SERVER)}
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        wait("it has ended its command", lambda: not job.command("old"))
        after = [job.memory(server)[sign] == vector for server, vectors in before.items() for sign, vector in vectors.items()]
        print(f"{after.count(False)} of {len(after)} vectors have changed after {name} woke up", flush=True)
        job.strike("delete", "old")


def numbers():
    """Divide the embeddings of checkpoints among other numbers of servers."""
    job = Job("numbers", 1800)
    for count in 2, 4:
        last, checkpoint = job.attempt()[0], newest()
        job.strike("delete", *job.launchers)
        job.replicas[SERVER] = count
        job.start(*job.names())
        assert not job.entered(last)
        memories = [job.memory(name) for name in job.names(SERVER)]
        assert saved({sign: vector for memory in memories for sign, vector in memory.items()}, "s*")
        job.train()
        wait("another checkpoint", lambda old=checkpoint: newest() != old)


{"causes": causes, "frozen": frozen, "numbers": numbers}.get(SCENARIO, interruptions)()
