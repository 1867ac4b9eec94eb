package kubeprovider

import (
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// replaceOn lists, by kind, the fields for whose change the official provider
// replaces an object (provider/pkg/provider/diff.go). A change of any other field
// is sent as an update, which the API server refuses if the field is immutable.
var replaceOn = map[schema.GroupKind][]string{
	{Group: "apps", Kind: "DaemonSet"}:  {"spec.selector"},
	{Group: "apps", Kind: "Deployment"}: {"spec.selector"},
	{Group: "apps", Kind: "StatefulSet"}: {
		"spec.podManagementPolicy", "spec.revisionHistoryLimit", "spec.selector",
		"spec.serviceName", "spec.volumeClaimTemplates",
	},
	{Group: "batch", Kind: "Job"}: {
		"spec.completions", "spec.parallelism", "spec.selector", "spec.template",
	},
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}: {"roleRef"},
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:        {"roleRef"},
	{Group: "storage.k8s.io", Kind: "StorageClass"}:                  {"parameters", "provisioner"},
	{Kind: "PersistentVolume"}: {
		"spec.csi", "spec.gcePersistentDisk", "spec.hostPath", "spec.iscsi", "spec.local", "spec.nfs",
	},
	{Kind: "PersistentVolumeClaim"}: {
		"spec.accessModes", "spec.selector", "spec.storageClassName", "spec.volumeName",
	},
	// More of a Pod can change in place there; here all of its specification
	// replaces it.
	{Kind: "Pod"}:           {"spec"},
	{Kind: "ResourceQuota"}: {"spec.scopes"},
	{Kind: "Service"}:       {"spec.clusterIP"},
}

// replacing lists the paths of a resource for whose change it is replaced.
func replacing(inputs resource.PropertyMap, config config) []string {
	paths := []string{"metadata.name", "metadata.namespace", "kind"}
	if !inputs["apiVersion"].IsString() || !inputs["kind"].IsString() {
		return paths
	}
	gvk := schema.FromAPIVersionAndKind(inputs["apiVersion"].StringValue(), inputs["kind"].StringValue())
	immutable := inputs["immutable"]
	frozen := immutable.IsBool() && immutable.BoolValue()
	switch gvk {
	case schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}:
		if frozen || !config.configMapMutable {
			paths = append(paths, "data", "binaryData")
		}
	case schema.GroupVersionKind{Version: "v1", Kind: "Secret"}:
		paths = append(paths, "type")
		if frozen || !config.secretMutable {
			paths = append(paths, "data", "stringData")
		}
	}
	return append(paths, replaceOn[gvk.GroupKind()]...)
}
