// Package provisioner asks GKE for the nodes of pools with queued provisioning, when all other
// replicas of a job run. Kueue would ask when it reserves the quota of the job: see
// docs/contribute/decisions.md.
package provisioner
