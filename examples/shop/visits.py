"""Reads the files of generate.py."""

import csv
import functools
import glob
import itertools
import os

import numpy as np

FOLDER = os.environ.get("SHOP_DATA", os.path.join(os.path.dirname(os.path.abspath(__file__)), "data"))
FEATURES = ["user", "item", "category", "recent"]
NUMBERS = ["price", "age", "hour"]
BATCH_SIZE = 512


@functools.lru_cache(maxsize=1)
def read(file):
    """The rows of a file: IDs by feature, a list for each row; numbers; and two columns."""
    with open(file, newline="") as rows:
        table = list(csv.DictReader(rows))
    ids = {name: [np.array(row[name].split(), dtype=np.uint64) for row in table] for name in FEATURES}
    numbers = np.array([[row[name] for name in NUMBERS] for row in table], dtype=np.float32)
    bought, rate = (np.array([row[name] for row in table], dtype=np.float32) for name in ("bought", "rate"))
    return ids, numbers, bought, rate


def files():
    return sorted(glob.glob(os.path.join(FOLDER, "train-*.csv")))


def count():
    """How many batches all files have. They are equally long."""
    return len(files()) * batches(files()[0])


def batches(file):
    return len(read(file)[2]) // BATCH_SIZE


def batch(number):
    """The IDs, numbers, and labels of a batch. The same number is always the same batch, so
    a job that resumes knows which batches are left."""
    file, part = divmod(number, batches(files()[0]))
    return part_of(files()[file], part)


def part_of(file, part):
    rows = slice(part * BATCH_SIZE, (part + 1) * BATCH_SIZE)
    ids, numbers, bought, _ = read(file)
    return {name: several[rows] for name, several in ids.items()}, numbers[rows], bought[rows].reshape(-1, 1)


def test_file():
    return os.path.join(FOLDER, "test.csv")


def vocabulary():
    """All IDs of each feature, in order."""
    seen = {name: set() for name in FEATURES}
    for file in files():
        for name, several in read(file)[0].items():
            seen[name].update(int(one) for row in several for one in row)
    return {name: np.array(sorted(ids), dtype=np.uint64) for name, ids in seen.items()}


def auc(labels, scores):
    """The area under the ROC curve: how often a purchase scores above another visit."""
    rows = sorted(zip(map(float, scores), (label > 0.5 for label in labels)))
    ranks, place = 0.0, 0
    for _, tied in itertools.groupby(rows, key=lambda row: row[0]):
        tied = [purchase for _, purchase in tied]
        ranks += sum(tied) * (place + (len(tied) + 1) / 2)  # equal scores share a rank
        place += len(tied)
    hits = sum(purchase for _, purchase in rows)
    return (ranks - hits * (hits + 1) / 2) / (hits * (len(rows) - hits))
