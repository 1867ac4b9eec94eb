package config

import (
	"path"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
)

// existingCluster checks the settings of an existing cluster.
func (v *validator) existingCluster() {
	at, c := field.NewPath(clusterKey), v.stack.Cluster
	v.Name(at.Child("name"), c.Name, validation.IsDNS1035Label)
	check.OnlyFields(v.Problems, at, c, "of an existing cluster", "name", "existing")
	existing := at.Child("existing")
	if c.Existing.Kubeconfig == "" && c.Existing.Context == "" {
		v.Required(existing.Child("context"), "write a context of your kubeconfig, as `kubectl config get-contexts` lists them, or kubeconfig with the path of one")
	}
	if k := c.Existing.Kubeconfig; k != "" && !path.IsAbs(k) {
		v.Invalid(existing.Child("kubeconfig"), k, "must be the absolute path of a kubeconfig file, because Pulumi runs programs in other directories")
	}
	v.assignedPool(existing.Child("systemPool"), c.Existing.SystemPool, v.stack.poolNames())
	if v.stack.Project != "" {
		v.Invalid(field.NewPath(projectKey), v.stack.Project, "is not used, because the stack creates nothing in Google Cloud on an existing cluster; remove it")
	}
	for i, p := range v.stack.NodePools {
		check.OnlyFields(v.Problems, field.NewPath(nodePoolsKey).Index(i), p, "of an existing pool",
			"name", "machineType", "nodes", "autoscaling", "spot", "gpu", "maxPodsPerNode", "taints")
	}
}
