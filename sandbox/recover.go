package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/pulumi/pulumi/sdk/v3/go/auto/optrefresh"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientset "k8s.io/client-go/kubernetes"

	"persia/sandbox/kubernetes"
	"persia/sandbox/kubernetes/object"
)

// recover clears what a killed command left behind: the update that was under way,
// and the operations whose end the state does not know. The sandbox's own lock is
// held, so whoever began the update is dead, or has lost the service that stores its
// state.
//
// It does what docs/operations.md tells an operator: an object that was being made
// and exists is taken into the state, as pulumi refresh --import-pending-creates
// does, because the provider refuses to make it again.
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
	if err != nil || !underWay && !pending {
		return err
	}
	fmt.Fprintf(e.sandbox.options.Out, "an earlier command was killed: reading what exists before going on\n")
	if underWay {
		if err := e.stack.Cancel(ctx); err != nil {
			return fmt.Errorf("end the update of a killed command: %w", err)
		}
	}
	if err := e.importCreates(ctx); err != nil {
		return fmt.Errorf("state of stack %s: %w", e.sandbox.options.Stack, err)
	}
	_, err = e.stack.Refresh(ctx, optrefresh.ClearPendingCreates(),
		optrefresh.ProgressStreams(e.sandbox.options.Out), optrefresh.ErrorProgressStreams(e.sandbox.options.Out))
	return err
}

// deployment is a stack's state, as far as taking up creates concerns it. What it
// does not name stays as it is.
type deployment struct {
	fields     map[string]json.RawMessage
	resources  []json.RawMessage
	operations []json.RawMessage
}

// pendingOperation is one that was under way when the engine was killed.
type pendingOperation struct {
	Type     string          `json:"type"`
	Resource json.RawMessage `json:"resource"`
}

// importCreates takes what was being made, and exists, into the state.
func (e *engine) importCreates(ctx context.Context) error {
	exported, err := e.stack.Export(ctx)
	if err != nil {
		return err
	}
	state, err := readDeployment(exported.Deployment)
	if err != nil {
		return err
	}
	created, err := state.takeCreates()
	if err != nil || len(created) == 0 {
		return err
	}
	kube, err := e.sandbox.kubernetesProvider(ctx)
	if err != nil {
		return err
	}
	for _, create := range created {
		var provider plugin.Provider = kube
		create.id, err = object.InputsID(create.inputs)
		if create.urn.Type().Package() == "gcp" {
			provider = e.cloud
			create.id, err = e.cloud.ID(create.urn, create.inputs)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", create.urn, err)
		}
		found, err := provider.Read(ctx, plugin.ReadRequest{URN: create.urn, ID: create.id, Inputs: create.inputs, State: create.inputs})
		// An error with an object is of one that is not ready.
		if err != nil && found.ID == "" {
			return fmt.Errorf("%s: %w", create.urn, err)
		}
		if found.ID == "" {
			continue
		}
		if err := state.add(create); err != nil {
			return err
		}
	}
	if exported.Deployment, err = state.write(); err != nil {
		return err
	}
	return e.stack.Import(ctx, exported)
}

// pendingCreate is a resource that was being made.
type pendingCreate struct {
	urn    resource.URN
	id     resource.ID
	inputs resource.PropertyMap
	fields map[string]any
}

func readDeployment(text json.RawMessage) (*deployment, error) {
	d := &deployment{}
	if err := json.Unmarshal(text, &d.fields); err != nil {
		return nil, err
	}
	for field, list := range map[string]*[]json.RawMessage{"resources": &d.resources, "pending_operations": &d.operations} {
		if text, ok := d.fields[field]; ok {
			if err := json.Unmarshal(text, list); err != nil {
				return nil, fmt.Errorf("%s: %w", field, err)
			}
		}
	}
	return d, nil
}

// takeCreates removes the creates of Kubernetes objects and of Google Cloud's
// resources from the pending operations, and returns them.
func (d *deployment) takeCreates() ([]pendingCreate, error) {
	var created []pendingCreate
	var others []json.RawMessage
	for _, text := range d.operations {
		var operation pendingOperation
		if err := json.Unmarshal(text, &operation); err != nil {
			return nil, fmt.Errorf("pending_operations: %w", err)
		}
		var made struct {
			URN    resource.URN   `json:"urn"`
			Inputs map[string]any `json:"inputs"`
		}
		if err := json.Unmarshal(operation.Resource, &made); err != nil {
			return nil, fmt.Errorf("pending_operations: %w", err)
		}
		pkg := made.URN.Type().Package()
		if operation.Type != "creating" || pkg != "kubernetes" && pkg != "gcp" {
			others = append(others, text)
			continue
		}
		create := pendingCreate{urn: made.URN, inputs: resource.NewPropertyMapFromMap(made.Inputs)}
		if err := json.Unmarshal(operation.Resource, &create.fields); err != nil {
			return nil, fmt.Errorf("%s: %w", made.URN, err)
		}
		created = append(created, create)
	}
	d.operations = others
	return created, nil
}

// add puts a resource that was made into the resources. What it was asked to be
// stands for what it is until the state is refreshed: some of it no API knows, such as
// the provider's own protection of a cluster.
func (d *deployment) add(create pendingCreate) error {
	create.fields["id"], create.fields["outputs"] = create.id, create.fields["inputs"]
	text, err := json.Marshal(create.fields)
	if err != nil {
		return fmt.Errorf("%s: %w", create.urn, err)
	}
	d.resources = append(d.resources, text)
	return nil
}

func (d *deployment) write() (json.RawMessage, error) {
	for field, list := range map[string][]json.RawMessage{"resources": d.resources, "pending_operations": d.operations} {
		text, err := json.Marshal(list)
		if err != nil {
			return nil, err
		}
		d.fields[field] = text
	}
	return json.Marshal(d.fields)
}

// freeVolumes lets the volumes whose claims an interrupted destroy deleted bind
// again, as docs/storage.md tells an operator: a Released volume never does by
// itself. The data is not touched.
func (s *Sandbox) freeVolumes(ctx context.Context) error {
	if known, err := s.state().HasResources(); err != nil || !known {
		return err
	}
	config, err := s.restConfig(ctx)
	if err != nil || config == nil {
		return err
	}
	client, err := clientset.NewForConfig(config)
	if err != nil {
		return err
	}
	volumes, err := client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, volume := range volumes.Items {
		if volume.Status.Phase != corev1.VolumeReleased || volume.DeletionTimestamp != nil {
			continue
		}
		fmt.Fprintf(s.options.Out, "volume %s is Released: letting it bind to its claim again\n", volume.Name)
		if _, err := client.CoreV1().PersistentVolumes().Patch(ctx, volume.Name, types.JSONPatchType,
			[]byte(`[{"op": "remove", "path": "/spec/claimRef/uid"}]`), metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("volume %s: %w", volume.Name, err)
		}
	}
	return nil
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
