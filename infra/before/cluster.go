package before

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/config"
	"persia/infra/admission"
)

// patience is how long a cluster may take to answer.
const patience = 15 * time.Second

// ErrUnknown is the error of a cluster that did not say what was asked. It may hold the
// stack all the same.
var ErrUnknown = errors.New("not known whether it can hold the stack")

// CheckCluster asks a cluster for the stack that it holds. A cluster holds
// one: the namespaces, priority classes and admission policies of a second would have
// the names of the first one's.
func CheckCluster(ctx context.Context, cluster config.Cluster, stack string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c, err := connect(*cluster.Existing)
	if err != nil {
		return unknown(cluster, err)
	}
	var policy metav1.PartialObjectMetadata
	err = c.get(ctx, "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/"+admission.Marker, &policy)
	if errors.Is(err, errNotFound) {
		return nil
	}
	if err != nil {
		return unknown(cluster, err)
	}
	if holds := policy.Annotations[admission.StackAnnotation]; holds != stack {
		return occupied(cluster, holds, stack)
	}
	return nil
}

func unknown(cluster config.Cluster, err error) error {
	return fmt.Errorf("persia:cluster.existing: the cluster %s: %w: %w", cluster.Name, ErrUnknown, err)
}

func occupied(cluster config.Cluster, holds, stack string) error {
	if holds == "" {
		holds = "that does not give its name"
	}
	return fmt.Errorf("persia:cluster.existing: the cluster %s holds the stack %s, and cannot hold %s too: both would use the namespaces persia and nats-io; "+
		"name another cluster, or list the jobs in persia:jobs of the other stack. If this is the same stack by a new name, run "+
		"kubectl annotate --overwrite validatingadmissionpolicy %s %s=%s", cluster.Name, holds, stack, admission.Marker, admission.StackAnnotation, stack)
}
