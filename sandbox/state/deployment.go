package state

import (
	"encoding/json"
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// Deployment is a stack's state, as far as recovering it is concerned. What it
// does not name stays as it is.
type Deployment struct {
	fields     map[string]json.RawMessage
	resources  []json.RawMessage
	operations []json.RawMessage
}

// pendingOperation is one that was under way when the engine was killed.
type pendingOperation struct {
	Type     string          `json:"type"`
	Resource json.RawMessage `json:"resource"`
}

// PendingCreate is a resource that was being made.
type PendingCreate struct {
	URN    resource.URN
	ID     resource.ID
	Inputs resource.PropertyMap
	fields map[string]any
}

// Resource is a resource of the state.
type Resource struct {
	URN             resource.URN
	ID              resource.ID
	Protect         bool
	Inputs, Outputs resource.PropertyMap
}

// IsObject reports whether the resource is a Kubernetes object, and not a component.
func (r Resource) IsObject() bool { return r.ID != "" && r.URN.Type().Package() == "kubernetes" }

// ReadDeployment reads a state from JSON, as the engine exports it.
func ReadDeployment(text json.RawMessage) (*Deployment, error) {
	d := &Deployment{}
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

// TakeCreates removes the creates of Kubernetes objects and of Google Cloud's
// resources from the pending operations, and returns them.
func (d *Deployment) TakeCreates() ([]PendingCreate, error) {
	var created []PendingCreate
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
		create := PendingCreate{URN: made.URN, Inputs: resource.NewPropertyMapFromMap(made.Inputs)}
		if err := json.Unmarshal(operation.Resource, &create.fields); err != nil {
			return nil, fmt.Errorf("%s: %w", made.URN, err)
		}
		created = append(created, create)
	}
	d.operations = others
	return created, nil
}

// Resources returns the resources.
func (d *Deployment) Resources() ([]Resource, error) {
	var all []Resource
	for _, text := range d.resources {
		var r struct {
			URN     resource.URN   `json:"urn"`
			ID      resource.ID    `json:"id"`
			Protect bool           `json:"protect"`
			Inputs  map[string]any `json:"inputs"`
			Outputs map[string]any `json:"outputs"`
		}
		if err := json.Unmarshal(text, &r); err != nil {
			return nil, fmt.Errorf("resources: %w", err)
		}
		all = append(all, Resource{r.URN, r.ID, r.Protect, resource.NewPropertyMapFromMap(r.Inputs), resource.NewPropertyMapFromMap(r.Outputs)})
	}
	return all, nil
}

// Add adds a created resource to the resources. The state holds its inputs as outputs until a
// refresh, because no API knows some of them, such as the provider's own protection of a cluster.
func (d *Deployment) Add(create PendingCreate) error {
	create.fields["id"], create.fields["outputs"] = create.ID, create.fields["inputs"]
	text, err := json.Marshal(create.fields)
	if err != nil {
		return fmt.Errorf("%s: %w", create.URN, err)
	}
	d.resources = append(d.resources, text)
	return nil
}

// Write returns the state as JSON.
func (d *Deployment) Write() (json.RawMessage, error) {
	for field, list := range map[string][]json.RawMessage{"resources": d.resources, "pending_operations": d.operations} {
		text, err := json.Marshal(list)
		if err != nil {
			return nil, err
		}
		d.fields[field] = text
	}
	return json.Marshal(d.fields)
}
