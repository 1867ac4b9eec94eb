"""Checkpoints: everything that an attempt needs to continue."""

import json
import os

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
        ctx.load_torch_state_dict(ctx.model, os.path.join(folder, "dense.pt"), map_location=device)
        ctx.load_torch_state_dict(ctx.dense_optimizer, os.path.join(folder, "opt.pt"), map_location=device)
        if get_rank() == 0:
            ctx.load_embedding(folder)
    gather(())


def save(ctx, batches):
    """Write a checkpoint into a new folder. All nn-workers call this at the same step."""
    batches = gather(batches)
    if get_rank() == 0:
        folder = os.path.join(os.environ["PERSIA_CKPT_DIR"], f"batch-{len(batches):06d}")
        os.makedirs(folder)
        with open(os.path.join(folder, "progress.json"), "w") as file:
            json.dump({"trained": sorted(batches)}, file)
        ctx.dump_checkpoint(folder)
    gather(())


def gather(batches):
    """The batches of all nn-workers together, which wait here for each other."""
    if get_world_size() == 1:
        return set(batches)
    everyone = [None] * get_world_size()
    dist.all_gather_object(everyone, set(batches))
    return set().union(*everyone)
