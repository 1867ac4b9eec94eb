"""Writes synthetic visits of a shop as CSV files: generate.py FOLDER [SEED]

The rule is known, so the best AUC that any model can reach is known, too. It needs no
packages.
"""

import csv
import math
import os
import random
import sys

FILES, ROWS = 20, 5120  # of train-000.csv, train-001.csv, …
TEST_ROWS = 10240  # of test.csv
VOCABULARY = {"user": 400, "item": 150, "category": 12, "recent": 150}
NUMBERS = ["price", "age", "hour"]
COLUMNS = list(VOCABULARY) + NUMBERS + ["bought", "rate"]


class Shop:
    """Who looks at what, and buys it or not."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        spread = {"user": 1.2, "item": 1.2, "category": 0.8, "recent": 0.6}
        self.appeal = {name: [self.random.gauss(0, spread[name]) for _ in range(size)] for name, size in VOCABULARY.items()}
        self.weight = [self.random.gauss(0, 0.5) for _ in NUMBERS]

    def row(self):
        """One visit. recent has the items looked at before: none, or up to three."""
        ids = {name: [self.random.randrange(size)] for name, size in VOCABULARY.items() if name != "recent"}
        ids["recent"] = [self.random.randrange(VOCABULARY["recent"]) for _ in range(self.random.randrange(4))]
        numbers = [self.random.gauss(0, 1) for _ in NUMBERS]
        appeal = sum(self.appeal[name][one] for name, several in ids.items() for one in several)
        appeal += sum(weight * number for weight, number in zip(self.weight, numbers))
        rate = 1 / (1 + math.exp(-appeal))
        return [" ".join(map(str, ids[name])) for name in VOCABULARY] + [f"{number:.4f}" for number in numbers] + [
            int(self.random.random() < rate), f"{rate:.4f}"]


def write(folder, name, shop, rows):
    with open(os.path.join(folder, name), "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(COLUMNS)
        table.writerows(shop.row() for _ in range(rows))


def main(folder, seed="1"):
    os.makedirs(folder, exist_ok=True)
    shop = Shop(int(seed))
    for number in range(FILES):
        write(folder, f"train-{number:03d}.csv", shop, ROWS)
    write(folder, "test.csv", shop, TEST_ROWS)
    print(f"{FILES} files of {ROWS} rows and test.csv are in {folder} (seed {seed})")


if __name__ == "__main__":
    main(*sys.argv[1:])
