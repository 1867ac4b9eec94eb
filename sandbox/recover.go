package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/auto/optrefresh"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"golang.org/x/sync/errgroup"

	"persia/sandbox/kubernetes"
)

// recover clears what a killed command left behind: the lock on the state, and
// what the state does not know. The sandbox's own lock is held, so that whoever
// holds the state's is dead.
//
// An object that was being made may exist without the state knowing. Up applies
// it again, which does no harm to one that is there. Destroy would leave it
// behind, and wait for ever where it holds another: undo removes it first.
func (e *engine) recover(ctx context.Context, undo bool) error {
	locks, err := e.sandbox.stateLocks()
	if err != nil || len(locks) == 0 {
		return err
	}
	fmt.Fprintf(e.sandbox.options.Out, "an earlier command was killed: reading what exists before going on\n")
	if err := e.stack.Cancel(ctx); err != nil {
		return fmt.Errorf("clear the lock of a killed command: %w", err)
	}
	if undo {
		if err := e.undoCreates(ctx); err != nil {
			return err
		}
	}
	_, err = e.stack.Refresh(ctx, optrefresh.ClearPendingCreates(),
		optrefresh.ProgressStreams(e.sandbox.options.Out), optrefresh.ErrorProgressStreams(e.sandbox.options.Out))
	return err
}

// stateLocks are the lock files in the state's backend.
func (s *Sandbox) stateLocks() ([]string, error) {
	var locks []string
	err := filepath.WalkDir(s.path("state", ".pulumi", "locks"), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.HasSuffix(path, ".json") {
			locks = append(locks, path)
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return locks, err
}

// pendingCreate is a resource that was being made when the engine was killed.
type pendingCreate struct {
	URN    resource.URN   `json:"urn"`
	Inputs map[string]any `json:"inputs"`
}

// undoCreates removes the objects that were being made when the engine was
// killed. They depend on none of each other: a create is begun when what it needs
// is there. What is simulated of Google Cloud goes with the control plane, or is
// storage, which the next up finds.
func (e *engine) undoCreates(ctx context.Context) error {
	creates, err := e.pendingCreates(ctx)
	if err != nil || len(creates) == 0 {
		return err
	}
	provider, err := e.sandbox.kubernetesProvider(ctx)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, create := range creates {
		inputs := resource.NewPropertyMapFromMap(create.Inputs)
		id, err := kubernetes.ID(inputs)
		if err != nil {
			return err
		}
		group.Go(func() error {
			_, err := provider.Delete(ctx, plugin.DeleteRequest{URN: create.URN, ID: id, Inputs: inputs})
			return err
		})
	}
	return group.Wait()
}

// pendingCreates are the Kubernetes objects that were being made.
func (e *engine) pendingCreates(ctx context.Context) ([]pendingCreate, error) {
	exported, err := e.stack.Export(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the state of stack %s: %w", e.sandbox.options.Stack, err)
	}
	var deployment struct {
		PendingOperations []struct {
			Type     string        `json:"type"`
			Resource pendingCreate `json:"resource"`
		} `json:"pending_operations"`
	}
	if err := json.Unmarshal(exported.Deployment, &deployment); err != nil {
		return nil, fmt.Errorf("read the state of stack %s: %w", e.sandbox.options.Stack, err)
	}
	var creates []pendingCreate
	for _, operation := range deployment.PendingOperations {
		if operation.Type == "creating" && operation.Resource.URN.Type().Package() == "kubernetes" {
			creates = append(creates, operation.Resource)
		}
	}
	return creates, nil
}

// kubernetesProvider is the sandbox's own, ready to act on the control plane.
func (s *Sandbox) kubernetesProvider(ctx context.Context) (*kubernetes.Provider, error) {
	kubeconfig, err := os.ReadFile(s.Kubeconfig())
	if err != nil {
		return nil, err
	}
	provider := kubernetes.New(kubernetesVersion)
	_, err = provider.Configure(ctx, plugin.ConfigureRequest{Inputs: resource.PropertyMap{
		"kubeconfig": resource.NewStringProperty(string(kubeconfig)),
	}})
	return provider, err
}
