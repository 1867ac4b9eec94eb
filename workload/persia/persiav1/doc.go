// Package persiav1 holds the types of persia.com/v1, the API of PERSIA's own operator:
// the fields that it reads (k8s/src/crd.rs in PersiaML/PERSIA), by their names and
// with what it requires. controller-gen makes the CustomResourceDefinition of them.
//
// +groupName=persia.com
// +versionName=v1
package persiav1

// Names of the API of jobs.
const (
	Group   = "persia.com"
	Version = "v1"
	Kind    = "PersiaJob"
	Plural  = "persiajobs"
)
