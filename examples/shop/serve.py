"""Predicts with an exported model, without PERSIA: serve.py EXPORT

It compares its predictions with the model's own at the end of the training.
"""

import os
import sys

import numpy as np
import torch

import visits


class Exported:
    """An exported model."""

    def __init__(self, folder):
        self.dense = torch.jit.load(os.path.join(folder, "model.pt"))
        arrays = np.load(os.path.join(folder, "embeddings.npz"))
        self.tables = {name: (arrays[name + "_ids"], arrays[name]) for name in visits.FEATURES}

    def embed(self, name, rows):
        """The sum of the vectors of each row's IDs. An ID that is not known counts nothing."""
        ids, vectors = self.tables[name]
        places = {int(one): place for place, one in enumerate(ids)}
        summed = np.zeros((len(rows), vectors.shape[1]), dtype=np.float32)
        for number, row in enumerate(rows):
            for one in row:
                if int(one) in places:
                    summed[number] += vectors[places[int(one)]]
        return torch.from_numpy(summed)

    def predict(self, ids, numbers):
        with torch.no_grad():
            embeddings = [self.embed(name, ids[name]) for name in visits.FEATURES]
            return torch.sigmoid(self.dense([torch.from_numpy(numbers)], embeddings)).numpy().ravel()


def main(folder):
    ids, numbers, bought, _ = visits.read(visits.test_file())
    scores = Exported(folder).predict(ids, numbers)
    difference = float(np.abs(scores - np.load(os.path.join(folder, "predictions.npy"))).max())
    print(f"{len(scores)} predictions, AUC {visits.auc(bought, scores):.4f}, at most {difference:.4f} away from the training's own")
    if difference > 0.005:
        raise SystemExit("the exported model is another one")


if __name__ == "__main__":
    main(*sys.argv[1:])
