package operator

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	rbacv1 "k8s.io/api/rbac/v1"

	"persia/kube"
	v1 "persia/workload/persia/operator/api/v1"
)

// grantRights lets the operator see the jobs of all namespaces, which it lists, and
// make pods of those in one.
func grantRights(ctx *pulumi.Context, name, jobNamespace string, child, inNamespace pulumi.ResourceOption) ([]pulumi.CustomResource, error) {
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: Namespace, Name: operatorName}}

	role, err := kube.Register(ctx, name, &rbacv1.Role{
		ObjectMeta: operatorMeta(jobNamespace),
		Rules:      podRules(),
	}, child)
	if err != nil {
		return nil, err
	}
	binding, err := kube.Register(ctx, name, &rbacv1.RoleBinding{
		ObjectMeta: operatorMeta(jobNamespace),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: operatorName},
		Subjects:   subjects,
	}, child, inNamespace, kube.After([]pulumi.CustomResource{role}))
	if err != nil {
		return nil, err
	}
	clusterRole, err := kube.Register(ctx, name, &rbacv1.ClusterRole{
		ObjectMeta: operatorMeta(""),
		Rules:      jobRules(),
	}, child)
	if err != nil {
		return nil, err
	}
	clusterBinding, err := kube.Register(ctx, name, &rbacv1.ClusterRoleBinding{
		ObjectMeta: operatorMeta(""),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: operatorName},
		Subjects:   subjects,
	}, child, inNamespace, kube.After([]pulumi.CustomResource{clusterRole}))
	if err != nil {
		return nil, err
	}
	return []pulumi.CustomResource{binding, clusterBinding}, nil
}

// jobRules let the operator follow jobs, and hold and release them by a finalizer.
func jobRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{
		APIGroups: []string{v1.Group},
		Resources: []string{v1.Plural},
		Verbs:     []string{"list", "patch", "watch"},
	}}
}

// podRules let the operator make and delete what a job consists of.
func podRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{
		APIGroups: []string{""},
		Resources: []string{"pods", "services"},
		Verbs:     []string{"create", "delete", "list"},
	}}
}
