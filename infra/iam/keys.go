// Package iam grants Google's services the use of keys, and the pods of jobs the use of buckets.
package iam

import (
	"fmt"

	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/kms"
	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/organizations"
	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/projects"
	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/storage"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/gcp"
)

// Service is a Google service that encrypts with keys of Cloud KMS. In each project it acts as its service agent.
type Service string

// Services, by the names of their agents ("Service agents" in the documentation of IAM).
const (
	ComputeEngine    Service = "compute-system"
	KubernetesEngine Service = "container-engine-robot"
	Filestore        Service = "cloud-filer"
	CloudStorage     Service = "gs-project-accounts"
)

// Keys grants services the use of keys in a project. It has one resource for each key and service, however many disks
// or buckets need it. Destroy keeps the grants: a disk or a bucket that outlives the stack cannot be read without its
// key, and another stack of the project may hold the same grant, which IAM stores only once.
type Keys struct {
	pulumi.ResourceState

	name, project string
	opts          []pulumi.ResourceOption
	// grants are by the key and the service. The first one registers the component.
	grants map[string][]pulumi.CustomResource
	// filestore is the identity of Filestore, once a key needs it.
	filestore *projects.ServiceIdentity
}

// NewKeys returns keys without a grant. A stack that uses no key has no component for them.
func NewKeys(name, project string, opts ...pulumi.ResourceOption) *Keys {
	return &Keys{name: name, project: project, opts: opts, grants: map[string][]pulumi.CustomResource{}}
}

// Grant lets a service encrypt and decrypt with a key, if it is not "". It returns the grant, on which the encrypted
// resource must depend.
func (k *Keys) Grant(ctx *pulumi.Context, key string, service Service) ([]pulumi.CustomResource, error) {
	name := key + "/" + string(service)
	if grant, ok := k.grants[name]; ok || key == "" {
		return grant, nil
	}
	if len(k.grants) == 0 {
		if err := ctx.RegisterComponentResource("persia:iam:Keys", k.name, k, k.opts...); err != nil {
			return nil, err
		}
	}
	account, opts, err := k.agent(ctx, service)
	if err != nil {
		return nil, err
	}
	grant, err := kms.NewCryptoKeyIAMMember(ctx, name, &kms.CryptoKeyIAMMemberArgs{
		CryptoKeyId: pulumi.String(key),
		Role:        pulumi.String(gcp.RoleKeyUser),
		Member:      pulumi.String("serviceAccount:" + account),
	}, append(opts, pulumi.Parent(k), pulumi.RetainOnDelete(true))...)
	if err != nil {
		return nil, err
	}
	k.grants[name] = []pulumi.CustomResource{grant}
	return k.grants[name], nil
}

// End says that there is no other grant.
func (k *Keys) End(ctx *pulumi.Context) error {
	if len(k.grants) == 0 {
		return nil
	}
	return ctx.RegisterResourceOutputs(k, pulumi.Map{})
}

// agent returns the service agent of a service, and what a grant to it needs. In a project that has never
// used Filestore or Cloud Storage their agents do not exist yet, and IAM refuses to grant anything to an
// account that does not exist.
func (k *Keys) agent(ctx *pulumi.Context, service Service) (account string, needs []pulumi.ResourceOption, err error) {
	if service == CloudStorage {
		// The request creates the agent.
		agent, err := storage.GetProjectServiceAccount(ctx, &storage.GetProjectServiceAccountArgs{Project: &k.project}, pulumi.Parent(k))
		if err != nil {
			return "", nil, fmt.Errorf("service agent of Cloud Storage in project %s: %w", k.project, err)
		}
		return agent.EmailAddress, nil, nil
	}
	if service == Filestore {
		if k.filestore == nil {
			// This does nothing where the agent exists. Google never deletes it.
			k.filestore, err = projects.NewServiceIdentity(ctx, "filestore", &projects.ServiceIdentityArgs{
				Project: pulumi.String(k.project),
				Service: pulumi.String("file.googleapis.com"),
			}, pulumi.Parent(k))
			if err != nil {
				return "", nil, err
			}
		}
		needs = append(needs, pulumi.DependsOn([]pulumi.Resource{k.filestore}))
	}
	number, err := projectNumber(ctx, k.project, pulumi.Parent(k))
	return fmt.Sprintf("service-%s@%s.iam.gserviceaccount.com", number, service), needs, err
}

// projectNumber asks the provider of a component for the number of a project. IAM names a project by its number.
func projectNumber(ctx *pulumi.Context, project string, component pulumi.InvokeOption) (string, error) {
	found, err := organizations.LookupProject(ctx, &organizations.LookupProjectArgs{ProjectId: &project}, component)
	if err != nil {
		return "", fmt.Errorf("project %s: %w", project, err)
	}
	return found.Number, nil
}
