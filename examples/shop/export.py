"""Exports the model for serving: model.pt, the dense part, in TorchScript, embeddings.npz with the IDs and
vectors of each feature, and the predictions for test.csv to compare with."""

import os

import numpy as np
import torch

from persia.ctx import eval_ctx
from persia.data import DataLoader
from persia.embedding.data import IDTypeFeature, PersiaBatch

import visits

CHUNK = 4096


def lookups(vocabulary):
    """Batches that look up one ID in each row."""
    for name, ids in vocabulary.items():
        for start in range(0, len(ids), CHUNK):
            chunk = ids[start : start + CHUNK]
            yield PersiaBatch([IDTypeFeature(name, list(chunk.reshape(-1, 1)))], requires_grad=False, meta=f"{name} {start}".encode())


def write(folder, model, scores, dataset, tell):
    vocabulary = visits.vocabulary()
    vectors = {name: {} for name in vocabulary}
    with eval_ctx(model=model) as ctx, torch.no_grad():
        for batch in DataLoader(dataset(lookups(vocabulary))):
            name, start = batch.consume_all_meta_data().decode().split()
            _, embeddings, _ = ctx.prepare_features(batch)
            vectors[name][int(start)] = embeddings[0].float().cpu().numpy().copy()
            tell()
    os.makedirs(folder, exist_ok=True)
    arrays = {name + "_ids": ids for name, ids in vocabulary.items()}
    arrays.update({name: np.concatenate([chunks[start] for start in sorted(chunks)]) for name, chunks in vectors.items()})
    np.savez(os.path.join(folder, "embeddings.npz"), **arrays)
    np.save(os.path.join(folder, "predictions.npy"), scores)
    torch.jit.save(torch.jit.script(model.cpu().eval()), os.path.join(folder, "model.pt"))
