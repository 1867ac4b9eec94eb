package before

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"persia/config"
	"persia/infra/admission"
)

// patience is how long a cluster may take to answer.
const patience = 15 * time.Second

// ErrUnknown is the error of a cluster that did not say what was asked. It may hold the stack all the same.
var ErrUnknown = errors.New("not known whether it can hold the stack")

// CheckCluster asks a cluster for the stack that it holds. A cluster holds one: the namespaces, priority classes and
// admission policies of a second would have the names of the first one's.
func CheckCluster(ctx context.Context, cluster config.Cluster, state State) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c, err := connect(*cluster.Existing)
	if err != nil {
		return unknown(cluster, err)
	}
	var policy metav1.PartialObjectMetadata
	err = get(ctx, c, "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/"+admission.Marker, &policy)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return unknown(cluster, err)
	}
	switch holds, stack := policy.Annotations[admission.StackAnnotation], state.ID.String(); {
	case holds != stack:
		return occupied(cluster, holds, stack)
	case state.annotated() == "":
		return unknown(cluster, fmt.Errorf("it holds the stack %s already, and the state does not have that, "+
			"as where the stack is in another backend, too", stack))
	}
	return nil
}

func unknown(cluster config.Cluster, err error) error {
	return fmt.Errorf("persia:cluster.existing: the cluster %s: %w: %w", cluster.Name, ErrUnknown, err)
}

func occupied(cluster config.Cluster, holds, stack string) error {
	return fmt.Errorf("persia:cluster.existing: the cluster %s holds the stack %s, and cannot hold %s too: "+
		"both would use the namespaces persia and nats-io; "+
		"name another cluster, or list the jobs in persia:jobs of the other stack. If this is the same stack by a new name, run "+
		"kubectl annotate --overwrite validatingadmissionpolicy %s %s=%s", cluster.Name, cmp.Or(holds, "that does not give its name"), stack,
		admission.Marker, admission.StackAnnotation, stack)
}

// connect reads the kubeconfig that the provider reads, and by the same rules.
func connect(existing config.ExistingCluster) (rest.Interface, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = existing.Kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: existing.Context}).ClientConfig()
	if err != nil {
		return nil, err
	}
	statuses := runtime.NewScheme()
	metav1.AddToGroupVersion(statuses, metav1.Unversioned)
	config.NegotiatedSerializer = serializer.NewCodecFactory(statuses).WithoutConversion()
	return rest.UnversionedRESTClientFor(config)
}

// get reads the object at a path.
func get(ctx context.Context, from rest.Interface, path string, into any) error {
	answer := from.Get().AbsPath(path).Do(ctx)
	if err := answer.Error(); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	text, err := answer.Raw()
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}
