// Package pedl is Determined AI's PEDL next to the training jobs: a master with its database in one namespace, and in
// another the agents, which have the Docker of their nodes start containers that Kubernetes does not see.
//
// Only customers have PEDL's images. The program relies on PEDL's public documents: the master reads a YAML file, and
// every option of an agent is an environment variable with the prefix PEDL_.
package pedl
