package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"persia/sandbox"
	"persia/sandbox/images"
	"persia/sandbox/node"
	"persia/sandbox/toolchain"
)

// trainCommand returns up on a real node, with the images that the training jobs need.
func trainCommand(flags *flags) *cobra.Command {
	var pool string
	train := run("train", "Bring a stack up on a real node, and wait until its training jobs are complete", func(ctx context.Context) error {
		flags.Real = sandbox.RealNode{Pool: pool, Images: filepath.Join(flags.Dir, "images")}
		return flags.train(ctx)
	})
	train.Flags().StringVar(&pool, "real-node", "system", "node pool whose pods run in real containers")
	return train
}

func (f *flags) train(ctx context.Context) error {
	// Said before anything is compiled.
	if err := node.Missing(); err != nil {
		return err
	}
	started := time.Now()
	s, err := f.open(ctx, true)
	if err != nil {
		return err
	}
	jobSet := slices.Contains(s.Groups(), toolchain.OfJobSets)
	if jobSet {
		if err := f.build(ctx, toolchain.OfJobSetImage); err != nil {
			return err
		}
	}
	if err := images.Build(ctx, images.Args{
		Repository: f.Project, Dir: f.Real.Images, Tools: f.Tools, JobSet: jobSet, Progress: os.Stdout,
	}); err != nil {
		return err
	}
	prepared := time.Now()
	if _, err := s.Up(ctx); err != nil {
		return err
	}
	up := time.Now()
	if err := s.AwaitTrainings(ctx); err != nil {
		return err
	}
	fmt.Printf("\ntrained: programs and images %s, up %s, training %s\n",
		prepared.Sub(started).Round(time.Second), up.Sub(prepared).Round(time.Second), time.Since(up).Round(time.Second))
	return nil
}
