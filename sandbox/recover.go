package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/auto/optrefresh"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"

	"persia/sandbox/kubeprovider"
)

// recover clears the rest of a killed command: its update, and the operations with an unknown end.
// The caller holds the sandbox's lock, so the command that began the update is dead.
//
// It does the steps of docs/guides/operations.md for an operator: it waits for objects whose
// deletion has begun, and takes resources whose creation was interrupted into the state, because the
// providers refuse to create them again.
func (e *engine) recover(ctx context.Context) error {
	if err := e.cloud.Resume(ctx); err != nil {
		return err
	}
	state := e.sandbox.State()
	underWay := len(state.Locks()) > 0
	// A recovery may have been killed after it had ended the update.
	_, pending, err := state.Resources()
	if err != nil {
		return err
	}
	deletesFailed, err := state.deletesFailed()
	if err != nil || !underWay && pending == 0 && !deletesFailed {
		return err
	}
	fmt.Fprintf(e.sandbox.options.Out, "an earlier command was interrupted: reading what exists before going on\n")
	if err := e.endUpdate(ctx); err != nil {
		return err
	}
	exported, deployment, err := e.export(ctx)
	if err != nil {
		return err
	}
	if err := e.awaitDeletes(ctx, deployment); err != nil {
		return err
	}
	if err := e.importCreates(ctx, exported, deployment); err != nil {
		return fmt.Errorf("state of stack %s: %w", e.sandbox.options.Stack, err)
	}
	_, err = e.stack.Refresh(ctx, optrefresh.ClearPendingCreates(),
		optrefresh.ProgressStreams(e.sandbox.options.Out), optrefresh.ErrorProgressStreams(e.sandbox.options.Out))
	return err
}

// endUpdate ends the update of a killed command, if there is one.
func (e *engine) endUpdate(ctx context.Context) error {
	state := e.sandbox.State()
	if len(state.Locks()) == 0 {
		return nil
	}
	if err := errors.Join(state.endCLI(ctx, e.sandbox.options.Tools.Path("pulumi")), e.stack.Cancel(ctx)); err != nil {
		return fmt.Errorf("end the update of a killed command: %w", err)
	}
	return nil
}

// awaitDeletes waits for the objects that Kubernetes still deletes. A refresh would find them, and
// the next up would treat them as objects that stay.
func (e *engine) awaitDeletes(ctx context.Context, deployment *apitype.DeploymentV3) error {
	objects := slices.DeleteFunc(slices.Clone(deployment.Resources), func(r apitype.ResourceV3) bool {
		return r.ID == "" || r.URN.Type().Package() != "kubernetes"
	})
	if len(objects) == 0 {
		return nil
	}
	return withKubernetes(ctx, e.sandbox.Kubeconfig(), func(kube *kubeprovider.Provider) error {
		for _, o := range objects {
			request := plugin.DeleteRequest{URN: o.URN, ID: o.ID,
				Inputs: resource.NewPropertyMapFromMap(o.Inputs), Outputs: resource.NewPropertyMapFromMap(o.Outputs)}
			if err := kubeprovider.AwaitDeletion(ctx, kube, request, e.sandbox.options.Out); err != nil {
				return err
			}
		}
		return nil
	})
}

// importCreates takes what was being made, and exists, into the state.
func (e *engine) importCreates(ctx context.Context, exported apitype.UntypedDeployment, deployment *apitype.DeploymentV3) error {
	created := takeCreates(deployment)
	if len(created) == 0 {
		return nil
	}
	err := withKubernetes(ctx, e.sandbox.Kubeconfig(), func(kube *kubeprovider.Provider) error {
		return e.take(ctx, kube, deployment, created)
	})
	if err != nil {
		return err
	}
	if exported.Deployment, err = json.Marshal(deployment); err != nil {
		return err
	}
	return e.stack.Import(ctx, exported)
}

// takeCreates removes the creates of Kubernetes objects and of Google Cloud's resources from the pending
// operations, and returns what was being made.
func takeCreates(deployment *apitype.DeploymentV3) (created []apitype.ResourceV3) {
	deployment.PendingOperations = slices.DeleteFunc(deployment.PendingOperations, func(o apitype.OperationV2) bool {
		made := o.Type == apitype.OperationTypeCreating && slices.Contains([]string{"kubernetes", "gcp"}, string(o.Resource.URN.Type().Package()))
		if made {
			created = append(created, o.Resource)
		}
		return made
	})
	return created
}

// take takes the resources that exist into the state. It holds their inputs as outputs until a
// refresh, because no API knows some of them, such as the provider's own protection of a cluster.
func (e *engine) take(ctx context.Context, kube *kubeprovider.Provider, deployment *apitype.DeploymentV3, created []apitype.ResourceV3) error {
	for _, create := range created {
		var provider plugin.Provider = kube
		var err error
		inputs := resource.NewPropertyMapFromMap(create.Inputs)
		create.ID, err = kubeprovider.InputsID(inputs)
		if create.URN.Type().Package() == "gcp" {
			provider = e.cloud
			create.ID, err = e.cloud.ID(create.URN, inputs)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", create.URN, err)
		}
		found, err := provider.Read(ctx, plugin.ReadRequest{URN: create.URN, ID: create.ID, Inputs: inputs, State: inputs})
		// An error with an object is of one that is not ready.
		if err != nil && found.ID == "" {
			return fmt.Errorf("%s: %w", create.URN, err)
		}
		if found.ID != "" {
			create.Outputs = create.Inputs
			deployment.Resources = append(deployment.Resources, create)
		}
	}
	return nil
}

// export returns the state as the engine exports it, and as it is read here.
func (e *engine) export(ctx context.Context) (apitype.UntypedDeployment, *apitype.DeploymentV3, error) {
	exported, err := e.stack.Export(ctx)
	deployment := &apitype.DeploymentV3{}
	if err == nil {
		err = json.Unmarshal(exported.Deployment, deployment)
	}
	if err != nil {
		return exported, nil, fmt.Errorf("read the state of stack %s: %w", e.sandbox.options.Stack, err)
	}
	return exported, deployment, nil
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
