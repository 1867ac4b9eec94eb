package google

import (
	"fmt"
	"strconv"
	"strings"

	"persia/sandbox/gcp/google/merge"
)

// bucketDefaults returns the defaults of the recorded bucket, which is in a multi-region.
func bucketDefaults(_ string, request Body) Body {
	body := serverSet("storage.bucket")
	fill(body, "softDeletePolicy", Body{})
	if location := strings.ToUpper(text(request, "location")); strings.Contains(location, "-") {
		body["locationType"] = "region"
		delete(body, "rpo")
	}
	if truth(request, "autoclass.enabled") {
		fill(body, "autoclass.terminalStorageClass", text(Answers()["storage.bucket.autoclass"].Get, "autoclass.terminalStorageClass"))
	}
	return body
}

func normalizeBucket(_ *Cloud, name string, body Body) error {
	body["name"] = name
	body["id"] = name
	body["location"] = strings.ToUpper(text(body, "location"))
	body["selfLink"] = "https://www.googleapis.com/storage/v1/b/" + name
	body["projectNumber"] = ProjectNumber
	fill(body, "storageClass", "STANDARD")
	uniform := truth(body, "iamConfiguration.uniformBucketLevelAccess.enabled")
	Set(body, "iamConfiguration.uniformBucketLevelAccess.enabled", uniform)
	Set(body, "iamConfiguration.bucketPolicyOnly.enabled", uniform)
	retention, _ := Lookup(body, "softDeletePolicy.retentionDurationSeconds")
	if retention == nil {
		retention = "0" // asked for 0, which is left out of a body
	}
	Set(body, "softDeletePolicy.retentionDurationSeconds", fmt.Sprint(retention))
	if number, isNumber := retention.(float64); isNumber {
		Set(body, "softDeletePolicy.retentionDurationSeconds", strconv.FormatFloat(number, 'f', -1, 64))
	}
	return nil
}

// normalizeInstance gives an instance an address in its network.
func normalizeInstance(_ *Cloud, name string, body Body) error {
	body["name"] = name
	networks := list(body, "networks")
	for i, of := range networks {
		network := of.(Body)
		if text(network, "network") != "" {
			network["network"] = segment(text(network, "network"))
		}
		fill(network, "reservedIpRange", "10.200.0.0/29")
		fill(network, "ipAddresses", []any{"10.200.0.2"})
		fill(network, "connectMode", "DIRECT_PEERING") // †
		networks[i] = network
	}
	for _, of := range list(body, "fileShares") {
		share := of.(Body)
		value, _ := Lookup(share, "capacityGb")
		share["capacityGb"] = fmt.Sprint(value)
		body["capacityGb"] = share["capacityGb"]
	}
	fill(body, "protocol", "NFS_V3") // †
	return nil
}

func normalizePlan(_ *Cloud, name string, body Body) error {
	body["name"] = name
	body["state"] = "READY"
	fill(body, "uid", hash(name))
	fill(body, "etag", hash(name))
	// Without a schedule there is no objective to be met.
	if has(body, "backupSchedule") {
		delete(body, "rpoRiskLevel")
		delete(body, "rpoRiskReason")
	}
	return nil
}

func normalizeRepository(_ *Cloud, name string, body Body) error {
	body["name"] = name
	fill(body, "mode", "STANDARD_REPOSITORY")
	return nil
}

// fileService is the service whose identity a project does not have before it is asked
// for.
const fileService = "file.googleapis.com"

// normalizeIdentity names the account that a service acts as in a project.
func normalizeIdentity(_ *Cloud, _ string, body Body) error {
	agent, known := map[string]string{fileService: "cloud-filer"}[text(body, "service")]
	if !known {
		return refuse(404, "notFound", "Service %s has no identity", text(body, "service")) // †
	}
	body["email"] = "service-" + ProjectNumber + "@" + agent + ".iam.gserviceaccount.com"
	return nil
}

// memberExists refuses to grant anything to a service agent or to a pod's identity that IAM does
// not know yet.
func memberExists(c *Cloud, _ string, body Body) error {
	member := text(body, "member")
	if account, ok := strings.CutPrefix(member, "serviceAccount:"); ok {
		return agentExists(c, account)
	}
	if pool := element(member, "workloadIdentityPools"); strings.HasSuffix(pool, ".svc.id.goog") {
		return workloadPoolExists(c, pool)
	}
	return nil
}

// agentExists refuses the service agent of Filestore before somebody asks for it†.
func agentExists(c *Cloud, account string) error {
	if !strings.Contains(account, "@cloud-filer.") {
		return nil
	}
	identities, err := c.kept.All("serviceusage.identity")
	if err != nil {
		return err
	}
	for _, identity := range identities {
		if identity["email"] == account {
			return nil
		}
	}
	return refuse(400, "badRequest", "Service account %s does not exist.", account)
}

// workloadPoolExists refuses a project's pool of Workload Identity while no cluster of the
// project uses it. IAM creates the pool with the first such cluster; that it keeps the pool
// after the last one is not simulated. The message is IAM's own
// (https://github.com/konstructio/kubefirst/issues/1760).
func workloadPoolExists(c *Cloud, pool string) error {
	cluster, err := user(c, "container.cluster", pool, "workloadIdentityConfig.workloadPool")
	if err == nil && cluster == "" {
		err = refuse(400, "badRequest", "Identity Pool does not exist (%s). Please check that you specified a valid resource name as returned in the `name` attribute in the configuration API.", pool)
	}
	return err
}

// accountDefaults returns the defaults of the recorded account. The request has the account in
// a field.
func accountDefaults(string, Body) Body {
	recorded := Answers()["iam.serviceAccount"]
	return withoutPlaceholders(merge.Beyond(Clone(recorded.Get), object(recorded.Request, "serviceAccount")))
}

func normalizeAccount(_ *Cloud, name string, body Body) error {
	email := segment(name)
	body["name"] = name
	body["email"] = email
	body["projectId"] = element(name, "projects")
	body["uniqueId"] = "1" + ProjectNumber + "00000000"
	body["oauth2ClientId"] = body["uniqueId"]
	fill(body, "etag", hash(name))
	delete(body, "accountId")
	return nil
}
