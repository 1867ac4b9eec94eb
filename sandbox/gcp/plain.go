package gcp

import (
	"errors"
	"net/netip"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
)

// projectNumber is the number of every simulated project.
const projectNumber = "123456789012"

// function answers one function.
type function func(args resource.PropertyMap) (resource.PropertyMap, error)

// functions are the functions that the program calls.
var functions = map[tokens.ModuleMember]function{
	"gcp:organizations/getProject:getProject": getProject,
}

func getProject(args resource.PropertyMap) (resource.PropertyMap, error) {
	project := text(args, "projectId")
	if project == "" {
		return nil, errors.New("projectId is required: the simulated Google Cloud has no default project")
	}
	return resource.NewPropertyMapFromMap(map[string]any{
		"id":        "projects/" + project,
		"projectId": project,
		"name":      project,
		"number":    projectNumber,
	}), nil
}

// plainKinds are the resources that nothing in the sandbox needs to stand for:
// their names and identifiers are all that others use of them.
func plainKinds() map[tokens.Type]kind {
	const (
		network    = "projects/${project}/global/networks/${name}"
		subnetwork = "projects/${project}/regions/${region}/subnetworks/${name}"
		router     = "projects/${project}/regions/${region}/routers/${name}"
		email      = "${accountId}@${project}.iam.gserviceaccount.com"
		account    = "projects/${project}/serviceAccounts/" + email
		backupPlan = "projects/${project}/locations/${location}/backupPlans/${name}"
	)
	return map[tokens.Type]kind{
		"gcp:compute/network:Network": {
			id:        network,
			replaceOn: []string{"autoCreateSubnetworks", "description", "mtu"},
			outputs:   selfLink(network),
		},
		"gcp:compute/subnetwork:Subnetwork": {
			id:        subnetwork,
			replaceOn: []string{"network", "ipCidrRange", "description"},
			inPlace:   widens,
			outputs:   selfLink(subnetwork),
		},
		"gcp:compute/router:Router": {
			id:        router,
			replaceOn: []string{"network"},
			outputs:   selfLink(router),
		},
		"gcp:compute/routerNat:RouterNat": {
			id: "${project}/${region}/${router}/${name}",
		},
		"gcp:projects/iAMMember:IAMMember": {
			id:        "${project}/${role}/${member}",
			replaceOn: []string{"condition"},
		},
		"gcp:storage/bucketIAMMember:BucketIAMMember": {
			id:        "b/${bucket}/${role}/${member}",
			replaceOn: []string{"condition"},
		},
		"gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember": {
			id:        "${cryptoKeyId}/${role}/${member}",
			replaceOn: []string{"condition"},
		},
		"gcp:gkebackup/backupPlan:BackupPlan": {
			id:        backupPlan,
			autoNamed: true,
			replaceOn: []string{"cluster"},
		},
		"gcp:serviceaccount/account:Account": {
			id: account,
			outputs: expandAll(map[string]string{
				"email":  email,
				"member": "serviceAccount:" + email,
				"name":   account,
			}),
		},
	}
}

func selfLink(id string) func(resource.PropertyMap) (map[string]any, error) {
	return expandAll(map[string]string{"selfLink": "https://www.googleapis.com/compute/v1/" + id})
}

// widens reports whether a subnetwork's range grows: Google Cloud extends a range
// in place, and takes no address back.
func widens(path string, old, new resource.PropertyMap) bool {
	if path != "ipCidrRange" {
		return false
	}
	from, fromErr := netip.ParsePrefix(text(old, path))
	to, toErr := netip.ParsePrefix(text(new, path))
	return fromErr == nil && toErr == nil && to.Bits() <= from.Bits() && to.Contains(from.Addr())
}
