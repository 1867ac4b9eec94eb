package iam

import (
	"fmt"

	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/kms"
	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/projects"
	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/storage"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/gcp"
)

// Service is a Google service that encrypts with keys of Cloud KMS. In each project it acts as its
// service agent.
type Service string

// Services, by the names of their agents ("Service agents" in the documentation of IAM).
const (
	ComputeEngine    Service = "compute-system"
	KubernetesEngine Service = "container-engine-robot"
	Filestore        Service = "cloud-filer"
	CloudStorage     Service = "gs-project-accounts"
)

// Keys grants services the use of keys in a project. It has one resource for each key and service,
// however many disks or buckets need it. Destroy keeps the grants: a disk or a bucket that outlives
// the stack cannot be read without its key, and another stack of the project may hold the same
// grant, which IAM stores only once.
type Keys struct {
	pulumi.ResourceState

	name, project string
	opts          []pulumi.ResourceOption
	grants        map[use]*kms.CryptoKeyIAMMember
	// child are the options of all that Keys registers, once a key is in use.
	child pulumi.ResourceOption
	// filestore is the identity of Filestore, once a key needs it.
	filestore *projects.ServiceIdentity
}

type use struct {
	key     string
	service Service
}

// NewKeys returns keys without a grant. A stack that uses no key has no component for them.
func NewKeys(name, project string, opts ...pulumi.ResourceOption) *Keys {
	return &Keys{name: name, project: project, opts: opts, grants: map[use]*kms.CryptoKeyIAMMember{}}
}

// Grant lets a service encrypt and decrypt with a key. It returns the grant, on which the encrypted
// resource must depend.
func (k *Keys) Grant(ctx *pulumi.Context, key string, service Service) (pulumi.CustomResource, error) {
	if grant, ok := k.grants[use{key, service}]; ok {
		return grant, nil
	}
	if err := k.register(ctx); err != nil {
		return nil, err
	}
	account, identity, err := k.agent(ctx, service)
	if err != nil {
		return nil, err
	}
	opts := []pulumi.ResourceOption{k.child, pulumi.RetainOnDelete(true)}
	if identity != nil {
		opts = append(opts, pulumi.DependsOn([]pulumi.Resource{identity}))
	}
	grant, err := kms.NewCryptoKeyIAMMember(ctx, key+"/"+string(service), &kms.CryptoKeyIAMMemberArgs{
		CryptoKeyId: pulumi.String(key),
		Role:        pulumi.String(gcp.RoleKeyUser),
		Member:      pulumi.String("serviceAccount:" + account),
	}, opts...)
	if err != nil {
		return nil, err
	}
	k.grants[use{key, service}] = grant
	return grant, nil
}

// register registers the component with the first grant.
func (k *Keys) register(ctx *pulumi.Context) error {
	if k.child != nil {
		return nil
	}
	if err := ctx.RegisterComponentResource("persia:iam:Keys", k.name, k, k.opts...); err != nil {
		return err
	}
	k.child = pulumi.Parent(k)
	return ctx.RegisterResourceOutputs(k, pulumi.Map{})
}

// agent returns the service agent of a service, and the resource that creates it. In a project
// that has never used Filestore or Cloud Storage their agents do not exist yet, and IAM refuses
// to grant anything to an account that does not exist.
func (k *Keys) agent(ctx *pulumi.Context, service Service) (string, pulumi.Resource, error) {
	switch service {
	case CloudStorage:
		// The request creates the agent.
		agent, err := storage.GetProjectServiceAccount(ctx, &storage.GetProjectServiceAccountArgs{Project: &k.project}, pulumi.Parent(k))
		if err != nil {
			return "", nil, fmt.Errorf("service agent of Cloud Storage in project %s: %w", k.project, err)
		}
		return agent.EmailAddress, nil, nil
	case Filestore:
		if err := k.identifyFilestore(ctx); err != nil {
			return "", nil, err
		}
		account, err := k.account(ctx, service)
		return account, k.filestore, err
	default:
		account, err := k.account(ctx, service)
		return account, nil, err
	}
}

// identifyFilestore creates the service agent of Filestore, which does nothing where
// it exists. Google never deletes it.
func (k *Keys) identifyFilestore(ctx *pulumi.Context) (err error) {
	if k.filestore == nil {
		k.filestore, err = projects.NewServiceIdentity(ctx, "filestore", &projects.ServiceIdentityArgs{
			Project: pulumi.String(k.project),
			Service: pulumi.String("file.googleapis.com"),
		}, k.child)
	}
	return err
}

func (k *Keys) account(ctx *pulumi.Context, service Service) (string, error) {
	number, err := projectNumber(ctx, k.project, k)
	return fmt.Sprintf("service-%s@%s.iam.gserviceaccount.com", number, service), err
}
