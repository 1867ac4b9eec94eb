// Package pedl is Determined AI's PEDL next to the training jobs: a master with its
// database in one namespace, and in another the agents, which have the Docker of
// their nodes start containers that Kubernetes does not see.
//
// PEDL's images are its customers' alone. What the program relies on is what its
// public documents say: the master reads a YAML file, and every option of an agent
// is an environment variable with the prefix PEDL_.
package pedl
