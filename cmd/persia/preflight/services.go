package preflight

import (
	"maps"
	"slices"
	"strings"

	"persia/config"
)

// Service is a Google Cloud API that a stack uses.
type Service struct {
	// Name is the API's name, like compute.googleapis.com.
	Name string
	// For names the part of the stack that needs the API.
	For string

	needed func(*config.Stack) bool
}

// services are the APIs that a stack can need, except the APIs of its volumes.
var services = []Service{
	{"compute.googleapis.com", "network, nodes, disks", always},
	{"container.googleapis.com", "the cluster", always},
	{"iam.googleapis.com", "the identities of nodes", always},
	{"cloudresourcemanager.googleapis.com", "the roles of these identities", always},
	{"dns.googleapis.com", "cluster.dns: CLOUD_DNS, the default", func(s *config.Stack) bool {
		return s.Cluster.DNS == "CLOUD_DNS"
	}},
	{"gkebackup.googleapis.com", "cluster.backup: the agent is on by default", func(s *config.Stack) bool {
		return s.Cluster.Backup.Agent || s.Cluster.Backup.Plan != nil
	}},
	{"binaryauthorization.googleapis.com", "cluster.binaryAuthorization, on by default", func(s *config.Stack) bool {
		return s.Cluster.BinaryAuthorization
	}},
	{"containersecurity.googleapis.com", "cluster.securityPosture: BASIC, the default", func(s *config.Stack) bool {
		return s.Cluster.SecurityPosture != "DISABLED"
	}},
	{"containerfilesystem.googleapis.com", "cluster.imageStreaming, on by default", func(s *config.Stack) bool {
		return s.Cluster.ImageStreaming
	}},
	{"artifactregistry.googleapis.com", "images.caches that the stack creates", func(s *config.Stack) bool {
		return slices.ContainsFunc(s.Images.Caches, config.Cache.Created)
	}},
	{"cloudkms.googleapis.com", "keys: cluster.encryption, and kmsKey of volumes", func(s *config.Stack) bool {
		return s.Cluster.Encryption != config.Encryption{} || anyVolume(s, hasKey)
	}},
}

// allServices returns the APIs that a stack can need.
func allServices() []Service {
	all := slices.Clone(services)
	fields := config.VolumeFields()
	for _, api := range slices.Sorted(maps.Keys(fields)) {
		listed := slices.ContainsFunc(services, func(s Service) bool { return s.Name == api })
		if api != "" && !listed {
			all = append(all, Service{api, "volumes with " + strings.Join(fields[api], ", "), func(s *config.Stack) bool {
				return anyVolume(s, needsAPI(api))
			}})
		}
	}
	return all
}

// Services returns the APIs that a stack needs: none on an existing cluster.
func Services(s *config.Stack) []Service {
	if s.Cluster.Existing != nil {
		return nil
	}
	return slices.DeleteFunc(allServices(), func(service Service) bool { return !service.needed(s) })
}

func always(*config.Stack) bool { return true }

// anyVolume reports whether a volume of the jobs, or the volume of PEDL's database, matches.
func anyVolume(s *config.Stack, is func(config.StoredVolume) bool) bool {
	return slices.ContainsFunc(s.StoredVolumes(), is)
}

func needsAPI(name string) func(config.StoredVolume) bool {
	return func(v config.StoredVolume) bool { return v.Source().API() == name }
}

// hasKey reports whether the stack creates storage with a Cloud KMS key.
func hasKey(v config.StoredVolume) bool {
	creation := v.Creation()
	return creation != nil && creation.KMSKey != ""
}
