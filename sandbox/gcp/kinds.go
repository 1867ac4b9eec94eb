package gcp

import (
	"os"
	"regexp"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"

	"persia/sandbox/gcp/google"
)

// kind is how the provider speaks to Google's API of one kind of resource.
type kind struct {
	// token is Pulumi's type.
	token tokens.Type
	// api is the API's name of the kind.
	api string
	// id is the identifier, with the names of fields in it.
	id string
	// paths are where fields are in a body, if not at their names in camel case. The path of a field inside blocks has
	// dots in it, and is inside the body of the block.
	paths map[string]string
	// local are fields that the API does not know.
	local []string
	// short are links that the provider keeps as the name at their end.
	short []string
	// inside are blocks whose fields are updated one by one.
	inside []string
	// silent are fields that an update does not name when they are taken away.
	silent []string
	// function is the function of Pulumi's that looks a resource up, if the program does.
	function tokens.ModuleMember
	// called is the common name of a resource that outlives stacks.
	called string
	// stays says that a deletion leaves the resource where it is.
	stays bool
	// finish completes what generic conversion makes of a body, given the identifier's values. Nil does nothing.
	finish func(object, body map[string]any, id map[string]string)
	// prepare completes a request. Nil does nothing.
	prepare func(body google.Body)
}

const (
	clusterKind  = "container.cluster"
	nodePoolKind = "container.nodePool"
)

// kinds are the resources that the program uses, by their Terraform names.
var kinds = map[string]kind{
	"google_container_cluster": {
		token: "gcp:container/cluster:Cluster",
		api:   clusterKind,
		id:    "projects/${project}/locations/${location}/clusters/${name}",
		paths: map[string]string{
			"cluster_autoscaling":                                        "autoscaling",
			"cluster_autoscaling.enabled":                                "enableNodeAutoprovisioning",
			"datapath_provider":                                          "networkConfig.datapathProvider",
			"dns_config":                                                 "networkConfig.dnsConfig",
			"enable_intranode_visibility":                                "networkConfig.enableIntraNodeVisibility",
			"enable_l4_ilb_subsetting":                                   "networkConfig.enableL4ilbSubsetting",
			"enable_shielded_nodes":                                      "shieldedNodes.enabled",
			"logging_config.enable_components":                           "componentConfig.enableComponents",
			"maintenance_policy":                                         "maintenancePolicy.window",
			"maintenance_policy.maintenance_exclusion":                   "exclusions",
			"maintenance_policy.maintenance_exclusion.exclusion_options": "maintenanceExclusionOptions",
			"master_version":                                             "currentMasterVersion",
			"monitoring_config.enable_components":                        "componentConfig.enableComponents",
			"monitoring_config.managed_prometheus":                       "managedPrometheusConfig",
			"node_locations":                                             "locations",
			"service_external_ips_config":                                "networkConfig.serviceExternalIpsConfig",
		},
		local:    []string{"deletion_protection", "remove_default_node_pool", "networking_mode", "node_config"},
		silent:   []string{"dns_config"},
		prepare:  prepareCluster,
		finish:   finishCluster,
		function: "gcp:container/getCluster:getCluster",
	},
	"google_container_node_pool": {
		token: "gcp:container/nodePool:NodePool",
		api:   nodePoolKind,
		id:    "projects/${project}/locations/${location}/clusters/${cluster}/nodePools/${name}",
		paths: map[string]string{
			"node_config":                         "config",
			"max_pods_per_node":                   "maxPodsConstraint.maxPodsPerNode",
			"node_locations":                      "locations",
			"node_config.guest_accelerator":       "accelerators",
			"node_config.guest_accelerator.type":  "acceleratorType",
			"node_config.guest_accelerator.count": "acceleratorCount",
			"node_config.taint":                   "taints",
		},
		inside:  []string{"node_config"},
		silent:  []string{"node_config.kubelet_config", "node_config.resource_labels", "node_config.labels", "node_config.fast_socket"},
		prepare: preparePool,
		finish:  finishPool,
	},
	"google_compute_network": {
		token:    "gcp:compute/network:Network",
		api:      "compute.network",
		id:       "projects/${project}/global/networks/${name}",
		paths:    map[string]string{"routing_mode": "routingConfig.routingMode"},
		local:    []string{"delete_default_routes_on_create"},
		function: "gcp:compute/getNetwork:getNetwork",
		called:   "network",
	},
	"google_compute_subnetwork": {
		token: "gcp:compute/subnetwork:Subnetwork",
		api:   "compute.subnetwork",
		id:    "projects/${project}/regions/${region}/subnetworks/${name}",
		paths: map[string]string{"secondary_ip_range": "secondaryIpRanges"},
		short: []string{"region"},
	},
	"google_compute_router": {
		token: "gcp:compute/router:Router",
		api:   "compute.router",
		id:    "projects/${project}/regions/${region}/routers/${name}",
		short: []string{"region"},
	},
	"google_compute_router_nat": {
		token: "gcp:compute/routerNat:RouterNat",
		api:   "compute.router.nat",
		id:    "${project}/${region}/${router}/${name}",
	},
	"google_compute_disk": {
		token:    "gcp:compute/disk:Disk",
		api:      "compute.disk",
		id:       "projects/${project}/zones/${zone}/disks/${name}",
		paths:    map[string]string{"size": "sizeGb", "disk_encryption_key.kms_key_self_link": "kmsKeyName"},
		short:    []string{"zone", "type"},
		finish:   finishDisk,
		function: "gcp:compute/getDisk:getDisk",
		called:   "disk",
	},
	"google_compute_region_disk": {
		token:    "gcp:compute/regionDisk:RegionDisk",
		api:      "compute.regionDisk",
		id:       "projects/${project}/regions/${region}/disks/${name}",
		paths:    map[string]string{"size": "sizeGb"},
		short:    []string{"region", "type", "replica_zones"},
		finish:   finishDisk,
		function: "gcp:compute/getRegionDisk:getRegionDisk",
		called:   "regional disk",
	},
	"google_filestore_instance": {
		token:    "gcp:filestore/instance:Instance",
		api:      "file.instance",
		id:       "projects/${project}/locations/${location}/instances/${name}",
		function: "gcp:filestore/getInstance:getInstance",
		called:   "Filestore instance",
	},
	"google_storage_bucket": {
		token: "gcp:storage/bucket:Bucket",
		api:   "storage.bucket",
		id:    "${name}",
		paths: map[string]string{
			"uniform_bucket_level_access": "iamConfiguration.uniformBucketLevelAccess.enabled",
			"public_access_prevention":    "iamConfiguration.publicAccessPrevention",
			"lifecycle_rule":              "lifecycle.rule",
		},
		local:  []string{"force_destroy"},
		finish: finishBucket,
		called: "bucket",
	},
	"google_service_account": {
		token:  "gcp:serviceaccount/account:Account",
		api:    "iam.serviceAccount",
		id:     "projects/${project}/serviceAccounts/${account_id}@${project}.iam.gserviceaccount.com",
		finish: finishAccount,
	},
	"google_artifact_registry_repository": {
		token:  "gcp:artifactregistry/repository:Repository",
		api:    "artifactregistry.repository",
		id:     "projects/${project}/locations/${location}/repositories/${repository_id}",
		finish: func(object, _ map[string]any, id map[string]string) { object["name"] = id["repository_id"] },
	},
	"google_project_service_identity": {
		token:  "gcp:projects/serviceIdentity:ServiceIdentity",
		api:    "serviceusage.identity",
		id:     "projects/${project}/services/${service}",
		stays:  true,
		finish: finishIdentity,
	},
	"google_artifact_registry_repository_iam_member": member("gcp:artifactregistry/repositoryIamMember:RepositoryIamMember", "${repository}"),
	"google_project_iam_member":                      member("gcp:projects/iAMMember:IAMMember", "${project}"),
	"google_storage_bucket_iam_member":               member("gcp:storage/bucketIAMMember:BucketIAMMember", "b/${bucket}"),
	"google_kms_crypto_key_iam_member":               member("gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember", "${crypto_key_id}"),
	"google_service_account_iam_member":              member("gcp:serviceaccount/iAMMember:IAMMember", "${service_account_id}"),
}

// member returns an entry of a resource's policy.
func member(token tokens.Type, of string) kind {
	return kind{token: token, api: "iam.member", id: of + "/${role}/${member}"}
}

var placeholder = regexp.MustCompile(`\$\{[a-z_]+\}`)

// values returns the fields in an identifier, and whether it is one of the kind's.
func (k kind) values(id string) (map[string]string, bool) {
	var names []string
	pattern := placeholder.ReplaceAllStringFunc(k.id, func(marked string) string {
		names = append(names, strings.Trim(marked, "${}"))
		if marked == "${role}" {
			return "((?:projects/[^/]+/|organizations/[^/]+/)?roles/[^/]+)"
		}
		return "(.+)"
	})
	found := regexp.MustCompile("^" + pattern + "$").FindStringSubmatch(id)
	if found == nil {
		return nil, false
	}
	values := map[string]string{}
	for i, name := range names {
		values[name] = found[i+1]
	}
	return values, true
}

// identifier fills the values of fields into the identifier. A reference to another resource
// contributes the name at its end.
func (k kind) identifier(value func(field string) string) string {
	return os.Expand(k.id, func(field string) string {
		if text := value(field); field == "cluster" || field == "router" || field == "region" || field == "zone" {
			return google.Segment(text)
		}
		return value(field)
	})
}
