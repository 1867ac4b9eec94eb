package config

import (
	"cmp"
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/cachespec"
	"persia/config/check"
)

// mostUncached is the number of nodes that pull from Docker Hub without a warning. Docker
// Hub allows 100 anonymous pulls per address in six hours ("Docker Hub usage and limits"),
// and nodes behind Cloud NAT share few addresses.
const mostUncached = 50

func (s *Stack) imageContext() cachespec.Context {
	return cachespec.Context{
		Project: s.Project, Region: s.Cluster.Region, Cluster: s.Cluster.Name,
		Existing: s.Cluster.Existing != nil,
	}
}

// warnOfImages warns of images that nodes may not pull, or pull slowly. It leaves out existing
// clusters, because the stack file does not say where their nodes are.
func (s *Stack) warnOfImages(p *check.Problems) {
	if s.Cluster.Existing != nil {
		return
	}
	s.warnOfImage(p, field.NewPath(natsKey, "image"), s.NATS.Image)
	s.warnOfImage(p, field.NewPath(operatorKey, "image"), s.Operator.Image)
	for i := range s.Jobs {
		at := s.Jobs[i].At()
		for _, role := range s.Jobs[i].Roles() {
			s.warnOfImage(p, at.Child(role.Field, "image"), role.Image)
		}
		for k, volume := range s.Jobs[i].Volumes {
			if volume.Image != nil {
				s.warnOfImage(p, at.Child("volumes").Index(k).Child("image", "reference"), volume.Image.Reference)
			}
		}
	}
	if pedl := s.PEDL; pedl != nil {
		at, database := field.NewPath(pedlKey), pedl.Postgres.Image
		s.warnOfImage(p, at.Child("masterImage"), pedl.MasterImage)
		s.warnOfImage(p, at.Child("agentImage"), pedl.AgentImage)
		s.warnOfImage(p, at.Child("postgresql", "image", "registry"), database.Registry+"/"+database.Repository)
	}
	nodes := s.addresses().Nodes
	if !s.Cluster.PrivateNodes || nodes <= mostUncached || s.Images.CachesDockerHub() {
		return
	}
	p.Warn(field.NewPath(imagesKey), "up to %d nodes pull from Docker Hub through the addresses of one NAT, and Docker Hub allows 100 anonymous pulls per address in six hours; write {caches: [{registry: docker.io}]} to pull through Artifact Registry", nodes)
}

// artifactRegistry matches images in Artifact Registry: their location and project. The names
// of Container Registry lead there too (Artifact Registry, "Transition from Container Registry").
var artifactRegistry = regexp.MustCompile(`^(?:([a-z0-9-]+)-docker\.pkg\.dev|(?:(us|eu|asia)\.)?gcr\.io)/([^/]+)/`)

// imageLocation returns the location and the project of an image in Artifact Registry.
func imageLocation(image string) (location, project string, ok bool) {
	of := artifactRegistry.FindStringSubmatch(image)
	if of == nil {
		return "", "", false
	}
	old := map[string]string{"": "us", "us": "us", "eu": "europe", "asia": "asia"}
	return cmp.Or(of[1], old[of[2]]), of[3], true
}

// warnOfImage warns of an image in Artifact Registry that is far away, or in a project in
// which the nodes have no rights.
func (s *Stack) warnOfImage(p *check.Problems, path *field.Path, image string) {
	location, project, ok := imageLocation(image)
	if !ok {
		return
	}
	cachespec.WarnOfLocation(p, path, location, s.Cluster.Region)
	if project != s.Project {
		p.Warn(path, "%s is in the project %s, and unless it is public, nodes may not pull it; grant %s-nodes@%s.iam.gserviceaccount.com roles/artifactregistry.reader there", image, project, s.Cluster.Name, s.Project)
	}
}
