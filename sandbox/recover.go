package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/auto/optrefresh"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"

	"persia/sandbox/kubeprovider"
	"persia/sandbox/kubeprovider/object"
	"persia/sandbox/state"
)

// recover clears the rest of a killed command: its update, and the operations with an unknown end.
// The caller holds the sandbox's lock, so the command that began the update is dead, or has lost
// the service that stores its state.
//
// It does the steps of docs/guides/operations.md for an operator: it waits for objects whose
// deletion has begun, and takes objects whose creation was interrupted into the state, as pulumi
// refresh --import-pending-creates does, because the provider refuses to create them again.
func (e *engine) recover(ctx context.Context) error {
	if err := e.cloud.Resume(ctx); err != nil {
		return err
	}
	underWay, err := e.sandbox.state().UnderWay()
	if err != nil {
		return err
	}
	// A recovery may have been killed after it had ended the update.
	pending, err := e.sandbox.state().Pending()
	if err != nil {
		return err
	}
	deletesFailed, err := e.sandbox.state().DeletesFailed()
	if err != nil || !underWay && !pending && !deletesFailed {
		return err
	}
	fmt.Fprintf(e.sandbox.options.Out, "an earlier command was interrupted: reading what exists before going on\n")
	if underWay {
		if err := e.stack.Cancel(ctx); err != nil {
			return fmt.Errorf("end the update of a killed command: %w", err)
		}
	}
	if err := e.awaitDeletes(ctx); err != nil {
		return err
	}
	if err := e.importCreates(ctx); err != nil {
		return fmt.Errorf("state of stack %s: %w", e.sandbox.options.Stack, err)
	}
	_, err = e.stack.Refresh(ctx, optrefresh.ClearPendingCreates(),
		optrefresh.ProgressStreams(e.sandbox.options.Out), optrefresh.ErrorProgressStreams(e.sandbox.options.Out))
	return err
}

// awaitDeletes waits for the objects that Kubernetes still deletes. A refresh would find them, and
// the next up would treat them as objects that stay.
func (e *engine) awaitDeletes(ctx context.Context) error {
	_, deployment, err := e.export(ctx)
	if err != nil {
		return err
	}
	resources, err := deployment.Resources()
	if err != nil {
		return err
	}
	objects := slices.DeleteFunc(resources, func(r state.Resource) bool { return !r.IsObject() })
	if len(objects) == 0 {
		return nil
	}
	return withKubernetes(ctx, e.sandbox.Kubeconfig(), func(kube *kubeprovider.Provider) error {
		for _, o := range objects {
			request := plugin.DeleteRequest{URN: o.URN, ID: o.ID, Inputs: o.Inputs, Outputs: o.Outputs}
			if err := kubeprovider.AwaitDeletion(ctx, kube, request, e.sandbox.options.Out); err != nil {
				return err
			}
		}
		return nil
	})
}

// importCreates takes what was being made, and exists, into the state.
func (e *engine) importCreates(ctx context.Context) error {
	exported, deployment, err := e.export(ctx)
	if err != nil {
		return err
	}
	created, err := deployment.TakeCreates()
	if err != nil || len(created) == 0 {
		return err
	}
	err = withKubernetes(ctx, e.sandbox.Kubeconfig(), func(kube *kubeprovider.Provider) error {
		return e.take(ctx, kube, deployment, created)
	})
	if err != nil {
		return err
	}
	if exported.Deployment, err = deployment.Write(); err != nil {
		return err
	}
	return e.stack.Import(ctx, exported)
}

// take takes the resources that exist into the state.
func (e *engine) take(ctx context.Context, kube *kubeprovider.Provider, deployment *state.Deployment, created []state.PendingCreate) error {
	for _, create := range created {
		var provider plugin.Provider = kube
		var err error
		create.ID, err = object.InputsID(create.Inputs)
		if create.URN.Type().Package() == "gcp" {
			provider = e.cloud
			create.ID, err = e.cloud.ID(create.URN, create.Inputs)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", create.URN, err)
		}
		found, err := provider.Read(ctx, plugin.ReadRequest{URN: create.URN, ID: create.ID, Inputs: create.Inputs, State: create.Inputs})
		// An error with an object is of one that is not ready.
		if err != nil && found.ID == "" {
			return fmt.Errorf("%s: %w", create.URN, err)
		}
		if found.ID == "" {
			continue
		}
		if err := deployment.Add(create); err != nil {
			return err
		}
	}
	return nil
}

// export returns the state as the engine exports it, and the part that needs recovery.
func (e *engine) export(ctx context.Context) (apitype.UntypedDeployment, *state.Deployment, error) {
	exported, err := e.stack.Export(ctx)
	if err != nil {
		return exported, nil, err
	}
	deployment, err := state.ReadDeployment(exported.Deployment)
	return exported, deployment, err
}

// withKubernetes does something with the sandbox's own provider, ready to act on the
// control plane.
func withKubernetes(ctx context.Context, kubeconfigFile string, do func(*kubeprovider.Provider) error) (err error) {
	kubeconfig, err := os.ReadFile(kubeconfigFile)
	if err != nil {
		return err
	}
	provider := kubeprovider.New(kubernetesVersion, "")
	defer func() { err = errors.Join(err, provider.Close()) }()
	_, err = provider.Configure(ctx, plugin.ConfigureRequest{Inputs: resource.PropertyMap{
		"kubeconfig": resource.NewStringProperty(string(kubeconfig)),
	}})
	if err != nil {
		return err
	}
	return do(provider)
}
