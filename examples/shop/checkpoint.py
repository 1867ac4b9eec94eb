"""Checkpoints: everything that an attempt needs to continue."""

import json
import os
import shutil
import time

import torch
import torch.distributed as dist

from persia.env import get_rank, get_world_size


def trained():
    """The numbers of the batches that the checkpoint to resume from has seen."""
    folder = os.environ.get("PERSIA_RESUME_DIR")
    if not folder:
        return set()
    with open(os.path.join(folder, "progress.json")) as file:
        return set(json.load(file)["trained"])


def load(ctx):
    """Resume, if there is a checkpoint. Every nn-worker loads the dense part, and one has
    the embedding parameter servers load theirs."""
    folder = os.environ.get("PERSIA_RESUME_DIR")
    if folder:
        device = None if torch.cuda.is_available() else "cpu"
        rates = [group["lr"] for group in ctx.dense_optimizer.param_groups]
        ctx.load_torch_state_dict(ctx.model, os.path.join(folder, "dense.pt"), map_location=device)
        ctx.load_torch_state_dict(ctx.dense_optimizer, os.path.join(folder, "opt.pt"), map_location=device)
        # The checkpoint has its own learning rate, and the one of train.py applies.
        for group, rate in zip(ctx.dense_optimizer.param_groups, rates):
            group["lr"] = rate
        if get_rank() == 0 and "PERSIA_KEEP_EMBEDDINGS" not in os.environ:
            ctx.load_embedding(folder)
    gather(())


def save(ctx, batches):
    """Write a checkpoint into a new folder. All nn-workers call this at the same step."""
    batches = gather(batches)
    if get_rank() == 0:
        folder = folder_of(batches, os.environ["PERSIA_CKPT_DIR"], f"batch-{len(batches):06d}")
        write(ctx.model, folder, "dense.pt")
        dump(ctx, folder)
        write(ctx.dense_optimizer, folder, "opt.pt")
    gather(())


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


def save_dense(ctx, batches):
    """Write what a checkpoint has besides the embeddings, which servers keep in memory when another replica
    fails. opt.pt comes last and completes it. The last two stay. All nn-workers call this at the same step."""
    batches = gather(batches)
    if get_rank() == 0:
        states = os.environ["PERSIA_DENSE_DIR"]
        folder = folder_of(batches, states, f"{int(os.environ['PERSIA_ATTEMPT']):06d}-{len(batches):06d}")
        write(ctx.model, folder, "dense.pt")
        write(ctx.dense_optimizer, folder, "opt.pt")
        for old in sorted(os.listdir(states))[:-2]:
            shutil.rmtree(os.path.join(states, old), ignore_errors=True)


def folder_of(batches, *parts):
    """Make a folder with the numbers of the batches that are trained, and return it."""
    folder = os.path.join(*parts)
    os.makedirs(folder)
    with open(os.path.join(folder, "progress.json"), "w") as file:
        json.dump({"trained": sorted(batches)}, file)
    return folder


def gather(batches):
    """The batches of all nn-workers together, which wait here for each other."""
    if get_world_size() == 1:
        return set(batches)
    everyone = [None] * get_world_size()
    dist.all_gather_object(everyone, set(batches))
    return set().union(*everyone)
