"""The dataloader: sends its share of the batches that are still to be trained."""

from persia.ctx import DataCtx
from persia.env import get_replica_index, get_replica_size

import checkpoint
import visits
from persia_batch import persia_batch

if __name__ == "__main__":
    left = [number for number in range(visits.count()) if number not in checkpoint.trained()]
    if left:  # otherwise nn-workers end before a DataCtx has found them
        with DataCtx() as ctx:
            for number in left[get_replica_index() :: get_replica_size()]:
                ctx.send_data(persia_batch(*visits.batch(number), number))
