package testkit

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/emptypb"
	"sigs.k8s.io/yaml"

	"persia/config/input"
)

// Recorder replaces the Pulumi engine and records the resources that the program registers.
type Recorder struct {
	// Cloud has the resources of Google Cloud before the program runs.
	Cloud Cloud
	// Resources are the registered resources, in the program's order.
	Resources []Resource
	// Calls are the tokens of the functions that the program called, in its order.
	Calls []string

	mu sync.Mutex
	// ended counts the components, with the stack, whose outputs are registered.
	ended int
}

// Run runs a program, all of whose components must register their outputs. What it needs of the engine is in info, but
// for the engine itself.
func Run(t testing.TB, info pulumi.RunInfo, cloud Cloud, program pulumi.RunFunc) (*Recorder, error) {
	t.Helper()
	r := &Recorder{Cloud: cloud}
	info.Mocks = r
	ctx := Must(pulumi.NewContext(t.Context(), info))(t)
	if err := pulumi.RunWithContext(ctx, program); err != nil {
		return r, err
	}
	components := slices.DeleteFunc(slices.Clone(r.Resources), func(r Resource) bool { return r.Custom })
	require.Equal(t, 1+len(components), r.ended, "components with outputs, and the stack")
	return r, nil
}

// NewResource records a resource. It refuses a URN that is registered already, which
// the engine would, but its mock does not.
func (r *Recorder) NewResource(args pulumi.MockResourceArgs) (string, resource.PropertyMap, error) {
	urn := urnOf(args)
	if err := ofStack(args.TypeToken, args.Provider); err != nil {
		return "", nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.ContainsFunc(r.Resources, func(other Resource) bool { return other.URN == urn }) {
		return "", nil, fmt.Errorf("%s is registered twice", urn)
	}
	r.Resources = append(r.Resources, Resource{args, urn})
	return args.Name + "-id", Outputs(args), nil
}

// RegisterResourceOutputs counts a component, when its outputs are known.
func (r *Recorder) RegisterResourceOutputs() (*emptypb.Empty, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended++
	return &emptypb.Empty{}, nil
}

// Call records and answers the functions that the program may call.
func (r *Recorder) Call(args pulumi.MockCallArgs) (resource.PropertyMap, error) {
	r.mu.Lock()
	r.Calls = append(r.Calls, args.Token)
	r.mu.Unlock()
	if err := ofStack(args.Token, args.Provider); err != nil {
		return nil, err
	}
	return r.Cloud.Call(args)
}

// ofStack refuses what goes to the default provider of Google Cloud, which has no project.
func ofStack(token, provider string) error {
	if strings.HasPrefix(token, "gcp:") && !strings.Contains(provider, GoogleProvider+"::") {
		return fmt.Errorf("%s goes to the provider %q", token, provider)
	}
	return nil
}

// GoogleProvider is the short URN of the provider of Google Cloud.
const GoogleProvider = "pulumi:providers:gcp::google"

// First is what the program registers before it looks at what Google Cloud has.
var First = []string{"pulumi:index:Stash::identity", GoogleProvider}

// urnOf is the URN that the engine gives: it holds the types of the parents.
func urnOf(args pulumi.MockResourceArgs) string {
	types := args.TypeToken
	if parent := args.RegisterRPC.GetParent(); parent != "" {
		if parentTypes := resource.URN(parent).QualifiedType(); parentTypes != "pulumi:pulumi:Stack" {
			types = string(parentTypes) + "$" + types
		}
	}
	return urnPrefix + types + "::" + args.Name
}

const urnPrefix = "urn:pulumi:stack::persia::"

// ShortURN returns a URN without the prefix that all URNs share.
func ShortURN(urn string) string { return strings.TrimPrefix(urn, urnPrefix) }

// One finds the resource of a type and name.
func (r *Recorder) One(t testing.TB, typeToken, name string) Resource {
	t.Helper()
	i := slices.IndexFunc(r.Resources, func(r Resource) bool { return r.TypeToken == typeToken && r.Name == name })
	require.GreaterOrEqual(t, i, 0, "no %s %s among:\n%s", typeToken, name, strings.Join(r.URNs(), "\n"))
	return r.Resources[i]
}

// All returns the resources of a type, and fails the test if there are none.
func (r *Recorder) All(t testing.TB, typeToken string) []Resource {
	t.Helper()
	found := r.Some(typeToken)
	require.NotEmpty(t, found, "no %s among:\n%s", typeToken, strings.Join(r.URNs(), "\n"))
	return found
}

// Some finds the resources of a type, if there are any.
func (r *Recorder) Some(typeToken string) []Resource {
	other := func(registered Resource) bool { return registered.TypeToken != typeToken }
	return slices.DeleteFunc(slices.Clone(r.Resources), other)
}

// Before returns the URNs of all resources that Pulumi creates before a resource: its dependencies
// and its provider, and their dependencies and providers in turn.
func (r *Recorder) Before(registered Resource) map[string]bool {
	byURN := map[string][]string{}
	for _, other := range r.Resources {
		byURN[other.URN] = other.needs()
	}
	before := map[string]bool{}
	for next := registered.needs(); len(next) > 0; {
		urn := next[0]
		next = next[1:]
		if !before[urn] {
			before[urn] = true
			next = append(next, byURN[urn]...)
		}
	}
	return before
}

// URNs are sorted, and short.
func (r *Recorder) URNs() []string {
	urns := input.Words(r.Resources, func(registered Resource) string { return ShortURN(registered.URN) })
	return slices.Sorted(slices.Values(urns))
}

// Resource is one resource that the program registered.
type Resource struct {
	pulumi.MockResourceArgs
	URN string
}

// Dependencies are the URNs of the resources that the resource depends on.
func (r Resource) Dependencies() []string { return r.RegisterRPC.GetDependencies() }

// needs are the URNs of the resources that the engine creates before the resource, except its parent.
func (r Resource) needs() []string {
	needs := r.Dependencies()
	if r.Provider != "" {
		// A provider's URN, and its id.
		needs = append(slices.Clip(needs), r.Provider[:strings.LastIndex(r.Provider, "::")])
	}
	return needs
}

// At is the input at a path of names and numbers, like nodeConfig.guestAccelerators[0].type.
func At(t testing.TB, r Resource, path string) any {
	t.Helper()
	value := Found(t, r, path)
	require.NotNil(t, value, "%s has no %s: %v", r.URN, path, r.Inputs)
	return value
}

// Found is the input at a path, or nil.
func Found(t testing.TB, r Resource, path string) any {
	t.Helper()
	value, _ := Must(resource.ParsePropertyPath(path))(t).Get(resource.NewObjectProperty(r.Inputs))
	return value.Mappable()
}

// Object decodes a resource's inputs, as the Kubernetes object that they are.
func Object[T any](t testing.TB, r Resource) T {
	t.Helper()
	require.False(t, r.Inputs.ContainsUnknowns(), "inputs of %s", r.URN)
	text := Must(json.Marshal(r.Inputs.Mappable()))(t)
	var object T
	require.NoError(t, yaml.UnmarshalStrict(text, &object), "inputs of %s", r.URN)
	return object
}

// Part decodes the input at a path. Fields that T lacks do not matter.
func Part[T any](t testing.TB, r Resource, path string) T {
	t.Helper()
	text := Must(json.Marshal(At(t, r, path)))(t)
	var part T
	require.NoError(t, json.Unmarshal(text, &part), "%s of %s", path, r.URN)
	return part
}

// The types of Kubernetes objects that tests look at.
const (
	AdmissionPolicy = "kubernetes:admissionregistration.k8s.io/v1:ValidatingAdmissionPolicy"
	Claim           = "kubernetes:core/v1:PersistentVolumeClaim"
	DaemonSet       = "kubernetes:apps/v1:DaemonSet"
	Deployment      = "kubernetes:apps/v1:Deployment"
	Ingress         = "kubernetes:networking.k8s.io/v1:Ingress"
	NATSCluster     = "kubernetes:nats.io/v1alpha2:NatsCluster"
	Namespace       = "kubernetes:core/v1:Namespace"
	NetworkPolicy   = "kubernetes:networking.k8s.io/v1:NetworkPolicy"
	Service         = "kubernetes:core/v1:Service"
	StatefulSet     = "kubernetes:apps/v1:StatefulSet"
	Volume          = "kubernetes:core/v1:PersistentVolume"
)

// The types of Google Cloud's resources that tests look at.
const (
	Bucket            = "gcp:storage/bucket:Bucket"
	BucketGrant       = "gcp:storage/bucketIAMMember:BucketIAMMember"
	Cluster           = "gcp:container/cluster:Cluster"
	Disk              = "gcp:compute/disk:Disk"
	FilestoreInstance = "gcp:filestore/instance:Instance"
	KeyGrant          = "gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember"
	Network           = "gcp:compute/network:Network"
	NodePool          = "gcp:container/nodePool:NodePool"
	RegionDisk        = "gcp:compute/regionDisk:RegionDisk"
	Repository        = "gcp:artifactregistry/repository:Repository"
	RepositoryReader  = "gcp:artifactregistry/repositoryIamMember:RepositoryIamMember"
	Subnetwork        = "gcp:compute/subnetwork:Subnetwork"
)
