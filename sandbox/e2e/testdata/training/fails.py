"""A training script that fails whenever it is run."""

raise SystemExit("this training cannot succeed")
