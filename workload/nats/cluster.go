package nats

import (
	"fmt"

	sdkkubernetes "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes"
	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/apiextensions"
	sdkmeta "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/meta/v1"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"persia/config"
	"persia/kube"
)

const (
	clientPort  = 4222
	serverImage = "nats"
)

// ClusterArgs describes a NATS cluster.
type ClusterArgs struct {
	NATS config.NATS
	// Placement is where the servers run.
	Placement kube.Placement
	// Needs come before the NatsCluster: the operator and its kinds.
	Needs []pulumi.Resource
}

// Cluster is a NATS cluster with all of its servers up.
type Cluster struct {
	pulumi.ResourceState

	// URL is where clients inside the Kubernetes cluster connect.
	URL pulumi.StringOutput `pulumi:"url"`
}

// NewCluster registers a NatsCluster.
func NewCluster(ctx *pulumi.Context, name string, args ClusterArgs, opts ...pulumi.ResourceOption) (*Cluster, error) {
	cluster := &Cluster{}
	if err := ctx.RegisterComponentResource("persia:nats:Cluster", name, cluster, opts...); err != nil {
		return nil, err
	}
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(clusterSpec(args))
	if err != nil {
		return nil, fmt.Errorf("NatsCluster %s: %w", args.NATS.Name, err)
	}
	if _, err := apiextensions.NewCustomResource(ctx, name, &apiextensions.CustomResourceArgs{
		ApiVersion: pulumi.String(group + "/" + version),
		Kind:       pulumi.String(clusterKind.name),
		Metadata: sdkmeta.ObjectMetaArgs{
			Namespace:   pulumi.String(Namespace),
			Name:        pulumi.String(args.NATS.Name),
			Labels:      pulumi.ToStringMap(kube.Labels("nats", args.NATS.Name)),
			Annotations: pulumi.ToStringMap(awaitServers(args.NATS.Size)),
		},
		OtherFields: sdkkubernetes.UntypedArgs{"spec": spec},
	}, kube.Child(cluster, args.Needs), kube.WorkloadTimeouts()); err != nil {
		return nil, err
	}
	cluster.URL = pulumi.String(URL(args.NATS.Name)).ToStringOutput()
	return cluster, ctx.RegisterResourceOutputs(cluster, pulumi.Map{"url": cluster.URL})
}

// URL is the client URL of the NatsCluster called name.
func URL(name string) string {
	return fmt.Sprintf("nats://%s.%s.svc:%d", name, Namespace, clientPort)
}

// awaitServers makes the Kubernetes provider wait for the servers. The operator
// writes the size into the status once the last of them is ready.
func awaitServers(size int) map[string]string {
	return map[string]string{"pulumi.com/waitFor": fmt.Sprintf("jsonpath={.status.size}=%d", size)}
}

// spec is what the operator reads of a NatsCluster (pkg/apis/nats/v1alpha2 of
// v0.8.3), as far as the program writes it. Whatever stands elsewhere, like
// resources directly in a spec, the operator ignores without a word.
type spec struct {
	Size        int        `json:"size"`
	Version     string     `json:"version"`
	ServerImage string     `json:"serverImage"`
	NatsConfig  natsConfig `json:"natsConfig"`
	Pod         podPolicy  `json:"pod"`
	Template    template   `json:"template"`
}

type natsConfig struct {
	MaxPayload int `json:"maxPayload"`
}

type podPolicy struct {
	AntiAffinity bool                        `json:"antiAffinity,omitempty"`
	NodeSelector map[string]string           `json:"nodeSelector,omitempty"`
	Tolerations  []corev1.Toleration         `json:"tolerations,omitempty"`
	Resources    corev1.ResourceRequirements `json:"resources"`
}

// template is what the operator begins a pod with, before it adds its own.
type template struct {
	Spec templateSpec `json:"spec"`
}

type templateSpec struct {
	PriorityClassName string `json:"priorityClassName"`
}

func clusterSpec(args ClusterArgs) *spec {
	return &spec{
		Size:        args.NATS.Size,
		Version:     args.NATS.Version,
		ServerImage: serverImage,
		NatsConfig:  natsConfig{MaxPayload: args.NATS.MaxPayload},
		Pod: podPolicy{
			AntiAffinity: args.NATS.AntiAffinity,
			NodeSelector: args.Placement.NodeSelector,
			Tolerations:  args.Placement.Tolerations,
			Resources:    args.NATS.Resources,
		},
		Template: template{Spec: templateSpec{PriorityClassName: config.PriorityNATS.Name}},
	}
}
