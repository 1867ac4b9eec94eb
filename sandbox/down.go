package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"persia/sandbox/gcp"
	"persia/sandbox/gcp/google"
)

// Down deletes the stack's resources, stops everything that Up started, and removes the
// stack's folder. It does nothing for a stack that is not up.
func (s *Sandbox) Down(ctx context.Context) error {
	if _, err := os.Stat(s.path()); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return s.locked(ctx, func() error { return s.down(ctx) })
}

func (s *Sandbox) down(ctx context.Context) error {
	resources, pending, err := s.State().Resources()
	if err != nil {
		return err
	}
	if resources+pending > 0 {
		lost, err := s.startOrReplace(ctx)
		if err != nil {
			return err
		}
		if err := s.destroy(ctx, lost); err != nil {
			return err
		}
	}
	if err := s.stop(ctx); err != nil {
		return err
	}
	return os.RemoveAll(s.path())
}

// Discard stops everything that Up started, and removes the stack's folder, and the storage of all stacks, without a destroy.
func (s *Sandbox) Discard(ctx context.Context) error {
	return s.locked(ctx, func() error {
		if err := s.stop(ctx); err != nil {
			return err
		}
		return errors.Join(os.RemoveAll(s.path()), os.RemoveAll(s.storage()))
	})
}

// startOrReplace starts the control plane, which shows when everything is gone. If it does not start, because its files
// are damaged or its ports are taken, startOrReplace replaces it by an empty one and returns lost: its Kubernetes
// objects are gone too. It never replaces the control plane of a protected stack.
func (s *Sandbox) startOrReplace(ctx context.Context) (lost bool, err error) {
	broken := s.start(ctx)
	if broken == nil || ctx.Err() != nil {
		return false, broken
	}
	if err := s.run(ctx, "destroy", func(ctx context.Context, engine *engine) error { return engine.checkUnprotected(ctx) }); err != nil {
		return false, errors.Join(broken, err)
	}
	fmt.Fprintf(s.options.Out, "%v\nreplacing the control plane by an empty one, to take down the rest of the stack\n", broken)
	if err := s.stop(ctx); err != nil {
		return false, err
	}
	return true, s.cluster.Start(ctx, s.options.Out)
}

// stop stops all processes.
func (s *Sandbox) stop(ctx context.Context) error {
	if err := s.agent().Stop(ctx); err != nil {
		return err
	}
	if err := stopNode(ctx, s.path("node")); err != nil {
		return err
	}
	return s.cluster.Stop(ctx)
}

// destroy takes the stack away. What is lost in Kubernetes, the engine need not delete.
func (s *Sandbox) destroy(ctx context.Context, lost bool) error {
	return s.run(ctx, "destroy", func(ctx context.Context, engine *engine) error {
		if lost {
			if err := engine.forgetKubernetes(ctx); err != nil {
				return err
			}
		}
		if err := engine.recover(ctx); err != nil {
			return err
		}
		if err := engine.checkUnprotected(ctx); err != nil {
			return err
		}
		if err := engine.pulumi(ctx, nil, engine.out, "destroy", "--yes", "--skip-preview", "--remove", "--parallel",
			strconv.Itoa(parallel)); err != nil {
			return err
		}
		return s.showKept()
	})
}

// forgetKubernetes removes the Kubernetes provider and all resources that depend on it from the
// state, as an operator does whose cluster is gone.
func (e *engine) forgetKubernetes(ctx context.Context) error {
	if err := e.endUpdate(ctx); err != nil {
		return err
	}
	deployment, err := e.export(ctx)
	if err != nil {
		return err
	}
	for _, r := range deployment.Resources {
		if r.URN.Type() != "pulumi:providers:kubernetes" {
			continue
		}
		if err := e.pulumi(ctx, nil, io.Discard, "state", "delete", string(r.URN), "--target-dependents", "--force", "--yes"); err != nil {
			return fmt.Errorf("forget %s: %w", r.URN.Name(), err)
		}
	}
	return nil
}

// Kept returns the resources with data that outlive the stacks that made them.
func (s *Sandbox) Kept() ([]string, error) { return gcp.Kept(google.New(s.storage())) }

// showKept prints them.
func (s *Sandbox) showKept() error {
	kept, err := s.Kept()
	if err != nil || len(kept) == 0 {
		return err
	}
	_, err = fmt.Fprintf(s.options.Out, "\nkept for the stacks that made it, until %s is removed:\n  %s\n",
		s.storage(), strings.Join(kept, "\n  "))
	return err
}
