"""The nn-worker of the click model.

It trains each batch once and then ends by itself, checks that no batch is missing and
that the model has learned the rule, and fails if not. Where PERSIA_CKPT_DIR is set it
writes checkpoints below it, and where PERSIA_RESUME_DIR is set it goes on from that
one. Where PERSIA_DENSE_DIR is set, servers can keep their memory when another replica
fails, and it saves the rest often.
"""

import json
import os
import shutil
import sys
import time

import numpy as np
import torch
import torch.distributed as dist

from persia.ctx import TrainCtx, eval_ctx
from persia.data import DataLoader, IterableDataset, StreamingDataset
from persia.distributed import DDPOption
from persia.embedding.optim import Adam
from persia.env import get_local_rank, get_rank, get_world_size
from persia.logger import get_default_logger

import clicks
import metrics
import progress
from model import ClickModel
from persia_batch import persia_batch

logger = get_default_logger("nn_worker")

EMBEDDING_DIM = 8  # as in embedding_config.yml
CHECKPOINTS = int(os.environ.get("CLICKS_CHECKPOINTS", "2"))
# About a minute: what is trained since is trained again when servers keep their memory.
STEPS_PER_DENSE_STATE = int(os.environ.get("CLICKS_STEPS_PER_DENSE_STATE", "50"))
# How far the model may stay behind one that knows the rule.
AUC_MARGIN = float(os.environ.get("CLICKS_AUC_MARGIN", "0.01"))


class TestClicks(IterableDataset):
    """The batches that the model is tested with, and never trained on."""

    def __init__(self, data):
        super().__init__()
        self.data = data

    def __iter__(self):
        for number in range(clicks.TEST_BATCHES):
            yield persia_batch(self.data, number, test=True)


def load(ctx, checkpoint):
    """Go on from a checkpoint. Every nn-worker loads the dense part, and one of them has the
    embedding parameter servers load theirs, unless they have kept them in memory."""
    device = None if torch.cuda.is_available() else "cpu"
    rates = [group["lr"] for group in ctx.dense_optimizer.param_groups]
    for part, file in ((ctx.model, "dense.pt"), (ctx.dense_optimizer, "opt.pt")):
        ctx.load_torch_state_dict(part, os.path.join(checkpoint, file), map_location=device)
    # The checkpoint has its own learning rate, and the one of this script applies.
    for group, rate in zip(ctx.dense_optimizer.param_groups, rates):
        group["lr"] = rate
    if get_rank() == 0 and "PERSIA_KEEP_EMBEDDINGS" not in os.environ:
        ctx.load_embedding(checkpoint)


def gather(trained):
    """The batches that all nn-workers together have trained. All must call it, and go
    on together."""
    if get_world_size() == 1:
        return set(trained)
    everyone = [None] * get_world_size()
    dist.all_gather_object(everyone, trained)
    return {number for one in everyone for number in one}


def save(ctx, trained):
    """Write a checkpoint of everything up to now, and wait until it is whole."""
    trained = gather(trained)
    if get_rank() == 0:
        checkpoint = os.path.join(os.environ["PERSIA_CKPT_DIR"], f"batch-{len(trained):06d}")
        progress.save(checkpoint, trained)
        write(ctx.model, checkpoint, "dense.pt")
        dump(ctx, checkpoint)
        write(ctx.dense_optimizer, checkpoint, "opt.pt")
        logger.info(f"wrote {checkpoint}")
    gather([])


def write(part, folder, file):
    """Write a state. PERSIA's dump_torch_state_dict creates the file before it writes it: a bucket takes one write a second."""
    torch.save(part.state_dict(), os.path.join(folder, file))


def dump(ctx, folder):
    """Write the embeddings, and wait for the file that completes them. A server of PERSIA 0.1 may say for ever that it
    writes, when it has written all. So PERSIA's own wait, which sees what fails, comes only after a minute."""
    ctx.dump_embedding(folder, blocking=False)
    for _ in range(600):
        if os.path.exists(os.path.join(folder, "embedding_dump_done")):
            return
        time.sleep(0.1)
    ctx.wait_for_dump_embedding()


def save_dense(ctx, trained):
    """Write what a checkpoint has besides the embeddings, which servers keep in memory: opt.pt
    comes last and completes it. The last two stay."""
    trained = gather(trained)
    if get_rank() == 0:
        states = os.environ["PERSIA_DENSE_DIR"]
        name = f"{int(os.environ['PERSIA_ATTEMPT']):06d}-{len(trained):06d}"
        progress.save(os.path.join(states, name), trained)
        write(ctx.model, os.path.join(states, name), "dense.pt")
        write(ctx.dense_optimizer, os.path.join(states, name), "opt.pt")
        for old in sorted(os.listdir(states))[:-2]:
            shutil.rmtree(os.path.join(states, old), ignore_errors=True)


def train(ctx, trained):
    """Train this nn-worker's share of the remaining batches, and add it to trained."""
    left = clicks.BATCHES - len(trained)
    steps, odd = divmod(left, get_world_size())
    if odd:
        raise SystemExit(f"{left} batches are left, which {get_world_size()} nn-workers cannot share evenly")
    interval = max(1, clicks.BATCHES // get_world_size() // CHECKPOINTS)
    loss_of = torch.nn.BCEWithLogitsLoss()
    done, started = 0, time.monotonic()
    loader = DataLoader(StreamingDataset(), reproducible=True, embedding_staleness=8)
    for batch in loader if steps else []:
        number = int(batch.consume_all_meta_data())
        # PERSIA sends a batch again when NATS does not say that it has arrived. Trained
        # twice, it would take the place of another one in every checkpoint from now on.
        if number in trained:
            raise SystemExit(f"batch {number} came twice")
        began = time.monotonic()
        output, labels = ctx.forward(batch)
        loss = loss_of(output, labels[0])
        if done % 10 == 9:
            # A GPU works on when a call has returned. In the backward pass, all wait for the slowest.
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            metrics.push({"step_seconds": time.monotonic() - began}, f"/rank/{get_rank()}")
        loss = ctx.backward(loss)
        trained.add(number)
        progress.tell()
        done += 1
        if done == 1 or done % 50 == 0:
            logger.info(f"step {done} of {steps}, loss {float(loss):.4f}")
        if done % 10 == 0 and get_rank() == 0:
            rate = done * clicks.BATCH_SIZE * get_world_size() / (time.monotonic() - started)
            metrics.push({"loss": float(loss), "rows_per_second": rate})
        if "PERSIA_CKPT_DIR" in os.environ and (done % interval == 0 or done == steps):
            save(ctx, trained)
        if "PERSIA_DENSE_DIR" in os.environ and done % STEPS_PER_DENSE_STATE == 0:
            save_dense(ctx, trained)
        # The stream itself has no end: PERSIA would wait ten minutes for more.
        if done == steps:
            return
    # PERSIA ends the loop in the same quiet way when batches stay away.
    if done < steps:
        raise SystemExit(f"batches stopped coming after step {done} of {steps}")


def test(model, data):
    """The AUC of the model on batches that it has not seen."""
    hits, scores = [], []
    with eval_ctx(model=model) as ctx, torch.no_grad():
        for batch in DataLoader(TestClicks(data)):
            output, labels = ctx.forward(batch)
            scores.append(output.cpu().numpy().copy())
            hits.append(labels[0].cpu().numpy().copy())
            progress.tell()
    return clicks.auc(np.concatenate(hits).ravel(), np.concatenate(scores).ravel())


def main():
    cuda = torch.cuda.is_available()
    device = get_local_rank() if cuda else None
    torch.manual_seed(clicks.RULE)
    torch.set_num_threads(1)
    data = clicks.Clicks()
    model = ClickModel(clicks.DENSE, EMBEDDING_DIM)
    if cuda:
        model.cuda(device)
    resume = os.environ.get("PERSIA_RESUME_DIR")
    trained = progress.load(resume)
    progress.tell()
    with TrainCtx(
        model=model,
        embedding_optimizer=Adam(lr=0.02),
        dense_optimizer=torch.optim.Adam(model.parameters(), lr=0.005),
        mixed_precision=cuda,
        device_id=device,
        # Otherwise the others ask NATS for the address, and wait for 10 s if nn-worker 0 has not started yet.
        distributed_option=DDPOption(backend="nccl" if cuda else "gloo", master_addr=os.environ.get("MASTER_ADDR")),
    ) as ctx:
        if resume:
            load(ctx, resume)
            logger.info(f"going on from {resume}, which has seen {len(trained)} batches")
        gather([])
        train(ctx, trained)
        seen = gather(trained)
        if get_rank() == 0:
            report(seen, test(model, data), data.best_auc())
        gather([])


def report(seen, auc, best):
    """Say what has been reached, and fail if it is not enough."""
    result = {"trained_batches": len(seen), "batches": clicks.BATCHES, "auc": round(auc, 4), "best_auc": round(best, 4)}
    metrics.push({"auc": result["auc"]})
    print("RESULT " + json.dumps(result), flush=True)
    if seen != set(range(clicks.BATCHES)):
        raise SystemExit(f"trained on {len(seen)} of {clicks.BATCHES} batches")
    if auc < best - AUC_MARGIN:
        raise SystemExit(f"the model reaches an AUC of {auc:.4f}, the rule allows {best:.4f}")


if __name__ == "__main__":
    main()
    # All is saved and said. The threads of PERSIA and PyTorch may abort or hang a
    # process that tears them down, after which the job would not be complete.
    sys.stdout.flush()
    os._exit(0)
