package config

import (
	"fmt"

	"persia/config/imagespec"
)

// mostUncached is how many nodes pull from Docker Hub without a warning. It answers an
// address without an account with 100 pulls in six hours ("Docker Hub usage and
// limits"), and nodes behind Cloud NAT share few addresses.
const mostUncached = 50

// imageContext is what the caches of images have to know of the rest of the stack file.
func (s *Stack) imageContext() imagespec.Context {
	return imagespec.Context{
		Project: s.Project, Region: s.Cluster.Region, Cluster: s.Cluster.Name,
		Existing: s.Cluster.Existing != nil,
	}
}

// imageWarnings are about nodes that Docker Hub may refuse. How the nodes of an
// existing cluster reach it is not known.
func (s warner) imageWarnings() []string {
	nodes := s.addresses().Nodes
	if s.Cluster.Existing != nil || !s.Cluster.PrivateNodes || nodes <= mostUncached || s.Images.CachesDockerHub() {
		return nil
	}
	return []string{fmt.Sprintf("%s: up to %d nodes pull from Docker Hub through the addresses of one NAT, and Docker Hub allows 100 anonymous pulls per address in six hours; write {caches: [{registry: docker.io}]} to pull through Artifact Registry", imagesKey, nodes)}
}
