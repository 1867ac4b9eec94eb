package config

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/imagespec"
)

// mostUncached is the number of nodes that pull from Docker Hub without a warning. Docker
// Hub allows 100 anonymous pulls per address in six hours ("Docker Hub usage and limits"),
// and nodes behind Cloud NAT share few addresses.
const mostUncached = 50

func (s *Stack) imageContext() imagespec.Context {
	return imagespec.Context{
		Project: s.Project, Region: s.Cluster.Region, Cluster: s.Cluster.Name,
		Existing: s.Cluster.Existing != nil,
	}
}

// imageWarnings warns of nodes that Docker Hub may refuse. It leaves out existing clusters,
// because the stack file does not say how their nodes reach Docker Hub.
func (s *Stack) imageWarnings() []string {
	nodes := s.addresses().Nodes
	if s.Cluster.Existing != nil || !s.Cluster.PrivateNodes || nodes <= mostUncached || s.Images.CachesDockerHub() {
		return nil
	}
	return []string{s.warning(field.NewPath(imagesKey), "up to %d nodes pull from Docker Hub through the addresses of one NAT, and Docker Hub allows 100 anonymous pulls per address in six hours; write {caches: [{registry: docker.io}]} to pull through Artifact Registry", nodes)}
}
