package config

import (
	"path"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// existingCluster checks what is said of a cluster that is there already.
func (v *validator) existingCluster() {
	at, c := field.NewPath(clusterKey), v.stack.Cluster
	v.name(at.Child("name"), c.Name, validation.IsDNS1035Label)
	v.onlyFields(at, c, "of a cluster that exists", "name", "existing")
	existing := at.Child("existing")
	if c.Existing.Kubeconfig == "" && c.Existing.Context == "" {
		v.required(existing.Child("context"), "write a context of your kubeconfig, as `kubectl config get-contexts` lists them, or kubeconfig with the path of one")
	}
	if k := c.Existing.Kubeconfig; k != "" && !path.IsAbs(k) {
		v.invalid(existing.Child("kubeconfig"), k, "must be the absolute path of a kubeconfig file, since Pulumi's programs run in other directories")
	}
	v.assignedPool(existing.Child("systemPool"), c.Existing.SystemPool, v.stack.poolNames())
	if v.stack.Project != "" {
		v.invalid(field.NewPath(projectKey), v.stack.Project, "is not used, as on an existing cluster nothing of Google Cloud is created; remove it")
	}
	for i, p := range v.stack.NodePools {
		v.onlyFields(field.NewPath(nodePoolsKey).Index(i), p, "of a pool that exists",
			"name", "machineType", "nodes", "autoscaling", "spot", "gpu", "maxPodsPerNode", "taints")
	}
}

// onlyFields refuses all fields of a struct but those that are allowed.
func (v *validator) onlyFields(path *field.Path, of any, what string, allowed ...string) {
	for _, f := range reflect.VisibleFields(reflect.TypeOf(of)) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if at := path.Child(name); v.Given(at) && !slices.Contains(allowed, name) {
			v.Forbidden(at, "nothing %s is created or changed; remove it, and write only %s", what, and(allowed))
		}
	}
}
