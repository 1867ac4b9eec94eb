"""The dataloader: sends its share of the batches that are still to be trained.

PERSIA numbers the batches of all dataloaders in turn and deals them to the nn-workers
in turn, so each nn-worker gets as many as the others.
"""

import os

from persia.ctx import DataCtx
from persia.env import get_replica_index, get_replica_size
from persia.logger import get_default_logger

import clicks
import progress
from persia_batch import persia_batch

logger = get_default_logger("data_loader")


def main():
    data = clicks.Clicks()
    todo = progress.remaining(clicks.BATCHES, progress.load(os.environ.get("PERSIA_RESUME_DIR")))
    mine = todo[get_replica_index() :: get_replica_size()]
    if not todo:
        return  # nn-workers end before a DataCtx has found them
    with DataCtx() as ctx:
        for number in mine:
            ctx.send_data(persia_batch(data, number))
    logger.info(f"sent {len(mine)} of the {len(todo)} batches to train")


if __name__ == "__main__":
    main()
