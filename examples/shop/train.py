"""The nn-worker: trains each batch once, tests the model, and exports it."""

import json
import os
import pathlib
import sys
import time

import numpy as np
import torch

from persia.ctx import TrainCtx, eval_ctx
from persia.data import DataLoader, IterableDataset, StreamingDataset
from persia.distributed import DDPOption
from persia.embedding.optim import Adam
from persia.env import get_local_rank, get_rank, get_world_size

import checkpoint
import export
import metrics
import visits
from model import ShopModel
from persia_batch import persia_batch

STEPS_PER_CHECKPOINT = int(os.environ.get("SHOP_STEPS_PER_CHECKPOINT", "50"))
STEPS_PER_DENSE_STATE = int(os.environ.get("SHOP_STEPS_PER_DENSE_STATE", "20"))


class Batches(IterableDataset):
    """Batches that this nn-worker makes by itself."""

    def __init__(self, batches):
        super().__init__()
        self.batches = batches

    def __iter__(self):
        return iter(self.batches)


def tell():
    """Report progress: an attempt that stops doing so is ended."""
    if "PERSIA_PROGRESS_FILE" in os.environ:
        pathlib.Path(os.environ["PERSIA_PROGRESS_FILE"]).touch()


def train(ctx, trained):
    """Train this nn-worker's share of the remaining batches."""
    steps, odd = divmod(visits.count() - len(trained), get_world_size())
    if odd:
        raise SystemExit(f"{get_world_size()} nn-workers cannot share {visits.count() - len(trained)} batches evenly")
    loss_of, started = torch.nn.BCEWithLogitsLoss(), time.monotonic()
    loader = iter(DataLoader(StreamingDataset(), reproducible=True, embedding_staleness=8)) if steps else None
    for step in range(1, steps + 1):
        batch = next(loader, None)
        if batch is None:
            raise SystemExit(f"batches stopped coming after step {step - 1} of {steps}")
        number = int(batch.consume_all_meta_data())
        if number in trained:
            raise SystemExit(f"batch {number} came twice")
        began = time.monotonic()
        output, labels = ctx.forward(batch)
        loss = loss_of(output, labels[0])
        if step % 10 == 9:
            # A GPU works on when a call has returned. In the backward pass, all wait for the slowest.
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            metrics.push({"step_seconds": time.monotonic() - began}, f"/rank/{get_rank()}")
        loss = float(ctx.backward(loss))
        trained.add(number)
        tell()
        if step % 10 == 0 and get_rank() == 0:
            rate = step * visits.BATCH_SIZE * get_world_size() / (time.monotonic() - started)
            print(f"step {step} of {steps}, loss {loss:.4f}, {rate:.0f} rows per second", flush=True)
            metrics.push({"loss": loss, "rows_per_second": rate})
        if "PERSIA_CKPT_DIR" in os.environ and (step % STEPS_PER_CHECKPOINT == 0 or step == steps):
            checkpoint.save(ctx, trained)
        if "PERSIA_DENSE_DIR" in os.environ and step % STEPS_PER_DENSE_STATE == 0:
            checkpoint.save_dense(ctx, trained)


def predict(model):
    """The probabilities of the rows of test.csv."""
    parts = range(visits.batches(visits.test_file()))
    batches = (persia_batch(*visits.part_of(visits.test_file(), part), part, test=True) for part in parts)
    scores = {}
    with eval_ctx(model=model) as ctx, torch.no_grad():
        # The batches come in any order.
        for batch in DataLoader(Batches(batches)):
            part = int(batch.consume_all_meta_data())
            output, _ = ctx.forward(batch)
            scores[part] = torch.sigmoid(output).cpu().numpy().ravel().copy()
            tell()
    return np.concatenate([scores[part] for part in parts])


def finish(model, trained):
    """Test and export the model, and say how good it is."""
    scores = predict(model)
    _, _, bought, rate = visits.read(visits.test_file())
    result = {
        "trained_batches": len(trained), "batches": visits.count(),
        "auc": round(visits.auc(bought, scores), 4), "best_auc": round(visits.auc(bought, rate), 4),
    }
    metrics.push({"auc": result["auc"]})
    if "PERSIA_CKPT_DIR" in os.environ:
        export.write(os.path.join(os.environ["PERSIA_CKPT_DIR"], "export"), model, scores, Batches, tell)
    print("RESULT " + json.dumps(result), flush=True)
    if result["auc"] < result["best_auc"] - 0.02:
        raise SystemExit("the model has not learned the rule")


def main():
    cuda = torch.cuda.is_available()
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = ShopModel(len(visits.NUMBERS))
    if cuda:
        model.cuda(get_local_rank())
    trained = checkpoint.trained()
    tell()
    with TrainCtx(
        model=model,
        embedding_optimizer=Adam(lr=0.02),
        dense_optimizer=torch.optim.Adam(model.parameters(), lr=0.005),
        mixed_precision=cuda,
        device_id=get_local_rank() if cuda else None,
        # Otherwise the others ask NATS for the address, and wait for 10 s if nn-worker 0 has not started yet.
        distributed_option=DDPOption(backend="nccl" if cuda else "gloo", master_addr=os.environ.get("MASTER_ADDR")),
    ) as ctx:
        checkpoint.load(ctx)
        train(ctx, trained)
        trained = checkpoint.gather(trained)
        if get_rank() == 0:
            finish(model, trained)
        checkpoint.gather(())


if __name__ == "__main__":
    main()
    # Threads of PERSIA and PyTorch may hang a process that ends in the usual way.
    sys.stdout.flush()
    os._exit(0)
