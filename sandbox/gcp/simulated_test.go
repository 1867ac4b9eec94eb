package gcp

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	"github.com/stretchr/testify/require"
	extensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	fakeextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/fake"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"persia/sandbox/gcp/gke"
	"persia/sandbox/gcp/google"
)

const (
	bucketType     = "gcp:storage/bucket:Bucket"
	instanceType   = "gcp:filestore/instance:Instance"
	diskType       = "gcp:compute/disk:Disk"
	regionDiskType = "gcp:compute/regionDisk:RegionDisk"
	clusterType    = "gcp:container/cluster:Cluster"
	nodePoolType   = "gcp:container/nodePool:NodePool"
	networkType    = "gcp:compute/network:Network"
	subnetworkType = "gcp:compute/subnetwork:Subnetwork"
	accountType    = "gcp:serviceaccount/account:Account"
	iamMemberType  = "gcp:projects/iAMMember:IAMMember"
	keyGrantType   = "gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember"
	routerType     = "gcp:compute/router:Router"
	natType        = "gcp:compute/routerNat:RouterNat"
)

type values = map[string]any

// unknownValue is a value that a preview does not know.
var unknownValue = resource.MakeComputed(resource.NewStringProperty(""))

// simulated is a provider whose control plane is client-go's fake, with the calls of
// the engine on single resources.
type simulated struct {
	*testing.T
	*Provider
	cloud      *google.Cloud
	gke        gke.Engine
	client     *fake.Clientset
	extensions *fakeextensions.Clientset
	states     map[string]held
}

// held is the state of a resource in a stack.
type held struct {
	id              resource.ID
	inputs, outputs resource.PropertyMap
}

func newGoogle(t *testing.T) simulated {
	client, extensions := fake.NewSimpleClientset(), newExtensions()
	g := simulated{T: t, client: client, extensions: extensions, states: map[string]held{}, gke: gke.Engine{
		Client:     func() (kubernetes.Interface, error) { return client, nil },
		Extensions: func() (extensionsclient.Interface, error) { return extensions, nil },
		Config:     &rest.Config{Host: "https://127.0.0.1:6443", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("certificate")}},
		Quotas:     gke.Quotas{},
	}, cloud: google.New(filepath.Join(t.TempDir(), "storage"))}
	provider, err := New("7.38.0", g.gke, g.cloud)
	require.NoError(t, err)
	g.Provider = provider
	return g
}

// planned are the plans of resources that some test has planned before, by the request: whole stacks of
// many tests have the same resources, and most do not change.
var planned sync.Map

// Diff plans a change once.
func (g simulated) Diff(ctx context.Context, req plugin.DiffRequest) (plugin.DiffResponse, error) {
	key := fmt.Sprintf("%s %s %#v %#v %v", req.URN.Type(), req.ID, req.OldOutputs, req.NewInputs, req.IgnoreChanges)
	if resp, known := planned.Load(key); known {
		return resp.(plugin.DiffResponse), nil
	}
	resp, err := g.Provider.Diff(ctx, req)
	if err == nil {
		planned.Store(key, resp)
	}
	return resp, err
}

func urn(token string) resource.URN {
	return resource.NewURN("dev", "persia", "", tokens.Type(token), "main")
}

func properties(inputs values) resource.PropertyMap { return resource.NewPropertyMapFromMap(inputs) }

// expand puts inputs into a template.
func expand(template string, inputs resource.PropertyMap) string {
	return os.Expand(template, func(field string) string { return textOf(inputs, field) })
}

// key identifies a resource of a test.
func key(token string, inputs resource.PropertyMap) string {
	return token + expand(" ${name} ${accountId} ${role} ${member}", inputs)
}

func (g simulated) check(token string, inputs resource.PropertyMap) resource.PropertyMap {
	g.Helper()
	resp, err := g.Check(g.Context(), plugin.CheckRequest{URN: urn(token), News: inputs})
	require.NoError(g, err)
	require.Empty(g, resp.Failures)
	return resp.Properties
}

// parent is a resource that contains another one. ${FIELD} in its name is an input of the
// other.
type parent struct {
	kind, name string
	body       google.Body
}

// parents returns the resources that tests do not make by themselves, in the order of their creation.
func parents() map[string][]parent {
	network := parent{"compute.network", "projects/${project}/global/networks/persia", google.Body{}}
	return map[string][]parent{
		subnetworkType: {network},
		routerType:     {network},
		natType:        {{"compute.router", "projects/${project}/regions/${region}/routers/${router}", google.Body{"network": "default"}}},
		clusterType: {network, {"compute.subnetwork", "projects/${project}/regions/us-central1/subnetworks/persia", google.Body{
			"network": "persia", "ipCidrRange": "10.0.0.0/20",
			"secondaryIpRanges": []any{
				google.Body{"rangeName": "pods", "ipCidrRange": "10.4.0.0/14"},
				google.Body{"rangeName": "services", "ipCidrRange": "10.8.0.0/20"},
			},
		}}},
		// GKE taints GPU pools only next to a pool without GPUs.
		nodePoolType: {
			{clusterKind, "projects/${project}/locations/${location}/clusters/${cluster}", google.Body{}},
			{nodePoolKind, "projects/${project}/locations/${location}/clusters/${cluster}/nodePools/system",
				google.Body{"config": google.Body{"machineType": "e2-standard-4"}}},
		},
	}
}

// tryCreate creates a resource, and before it its parents.
func (g simulated) tryCreate(token string, inputs resource.PropertyMap) (plugin.CreateResponse, error) {
	g.Helper()
	for _, parent := range parents()[token] {
		name := expand(parent.name, inputs)
		if body, err := g.cloud.Get(parent.kind, name); err == nil && body == nil {
			require.NoError(g, g.cloud.Create(parent.kind, name, parent.body))
		}
	}
	resp, err := g.Create(g.Context(), plugin.CreateRequest{URN: urn(token), Properties: inputs})
	if err == nil {
		g.states[key(token, inputs)] = held{resp.ID, inputs, resp.Properties}
	}
	return resp, err
}

func (g simulated) create(token string, inputs resource.PropertyMap) plugin.CreateResponse {
	g.Helper()
	resp, err := g.tryCreate(token, inputs)
	require.NoError(g, err)
	return resp
}

func (g simulated) update(token string, old, new resource.PropertyMap) plugin.UpdateResponse {
	g.Helper()
	state := g.states[key(token, old)]
	resp, err := g.Update(g.Context(), plugin.UpdateRequest{
		URN: urn(token), ID: state.id, OldInputs: state.inputs, OldOutputs: state.outputs, NewInputs: new, IgnoreChanges: answered[token],
	})
	require.NoError(g, err)
	g.states[key(token, new)] = held{state.id, new, resp.Properties}
	return resp
}

func (g simulated) delete(token string, inputs resource.PropertyMap) error {
	state := g.states[key(token, inputs)]
	_, err := g.Delete(g.Context(), plugin.DeleteRequest{URN: urn(token), ID: state.id, Outputs: state.outputs})
	return err
}

// answered lists the fields that GKE sets by itself and the provider does not compute. The
// program ignores them.
var answered = map[string][]string{
	nodePoolType: {"nodeConfig.kubeletConfig", "nodeConfig.resourceLabels"},
}

// diff plans an edit of a resource that is there.
func (g simulated) diff(token string, old, new resource.PropertyMap) plugin.DiffResponse {
	g.Helper()
	state, exists := g.states[key(token, old)]
	if !exists {
		g.create(token, g.check(token, old))
		state = g.states[key(token, old)]
	}
	resp, err := g.Diff(g.Context(), plugin.DiffRequest{
		URN: urn(token), ID: state.id, OldInputs: state.inputs, OldOutputs: state.outputs, NewInputs: new, IgnoreChanges: answered[token],
	})
	require.NoError(g, err)
	return resp
}

// change returns a copy of inputs with another value at a path, or none if it is nil.
func change(t *testing.T, inputs resource.PropertyMap, path string, value any) resource.PropertyMap {
	t.Helper()
	at, err := resource.ParsePropertyPath(path)
	require.NoError(t, err)
	changed := resource.NewObjectProperty(properties(inputs.Mappable()))
	if value == nil {
		require.True(t, at.Delete(changed), path)
	} else {
		_, ok := at.Add(changed, resource.NewPropertyValue(value))
		require.True(t, ok, path)
	}
	return changed.ObjectValue()
}
