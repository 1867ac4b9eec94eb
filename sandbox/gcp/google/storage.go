package google

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"persia/gcp"
)

// bucketDefaults returns the defaults of the recorded bucket, which is in a multi-region.
func bucketDefaults(request Body) Body {
	body := serverSet("storage.bucket")
	if strings.Contains(Text(request, "location"), "-") {
		body["locationType"] = "region"
		delete(body, "rpo")
	}
	return body
}

// checkBucket refuses what no bucket has. The messages about locations and domains are Cloud Storage's own.
func checkBucket(name, location string, body Body) error {
	inRegion := func(zones string) bool { return gcp.LocationHolds(location, zones[:strings.LastIndex(zones, "-")]) }
	days := Number(body, "softDeletePolicy.retentionDurationSeconds") / (24 * 60 * 60)
	switch {
	case !slices.ContainsFunc(strings.Fields(places().Regions), inRegion):
		return refuse(400, "invalid", "The specified location constraint is not valid.")
	case strings.Contains(name, "."):
		return refuse(403, "forbidden", "The bucket you tried to create requires domain ownership verification.")
	case days != 0 && (days < 7 || days > 90):
		return refuse(400, "invalid", "Soft delete retention of %d days is not 0, or from 7 to 90 days.", days) // †
	}
	keys := map[string]string{"EU": "europe"}
	in := cmp.Or(keys[location], strings.ToLower(location))
	return checkKey(Text(body, "encryption.defaultKmsKeyName"), []string{in})
}

func completeBucket(_ *Cloud, name string, body, _ Body) error {
	body["name"], body["id"] = name, name
	body["location"] = strings.ToUpper(Text(body, "location"))
	if err := checkBucket(name, Text(body, "location"), body); err != nil {
		return err
	}
	body["selfLink"] = "https://www.googleapis.com/storage/v1/b/" + name
	body["projectNumber"] = ProjectNumber
	fill(body, "storageClass", "STANDARD")
	uniform := Truth(body, "iamConfiguration.uniformBucketLevelAccess.enabled")
	Set(body, "iamConfiguration.uniformBucketLevelAccess.enabled", uniform)
	Set(body, "iamConfiguration.bucketPolicyOnly.enabled", uniform)
	const retention = "softDeletePolicy.retentionDurationSeconds"
	fill(body, retention, 0.0) // asked for 0, which is left out of a body
	if seconds, isNumber := at[any](body, retention).(float64); isNumber {
		Set(body, retention, fmt.Sprint(int(seconds)))
	}
	return nil
}

// shareForm is from Filestore, "Create an instance".
var shareForm = regexp.MustCompile(`^[a-z]([a-z0-9_]*[a-z0-9])?$`)

// completeInstance gives an instance an address in its network. It refuses capacities that the tier does not
// have, or to which the instance cannot grow†.
func completeInstance(_ *Cloud, name string, body, old Body) error {
	body["name"] = name
	capacity, was := capacityOf(body), capacityOf(old)
	next, _ := gcp.FilestoreSizes(Text(body, "tier"), capacity)
	_, most := gcp.FilestoreSizes(Text(old, "tier"), was)
	tier := places().Tiers[Text(body, "tier")]
	switch zonal := isZone(Element(name, "locations")); {
	case tier.In == "" || (tier.In == "zone") != zonal:
		return refuse(400, "badRequest", "Invalid tier %s in %s", Text(body, "tier"), Element(name, "locations"))
	case len(next) > 0 && !slices.Contains(next, capacity) || most > 0 && capacity > most:
		return refuse(400, "badRequest", "Invalid capacity %d GiB for tier %s", capacity, Text(body, "tier"))
	}
	shares := Objects(body, "fileShares")
	for _, share := range append(shares, Object(body, "fileShares")) { // like capacityOf
		if called := Text(share, "name"); len(called) > tier.Share || share != nil && !shareForm.MatchString(called) {
			return refuse(400, "badRequest", "Invalid name of a file share: %s", called)
		}
	}
	for _, network := range Objects(body, "networks") {
		network["network"] = Segment(Text(network, "network"))
		fill(network, "reservedIpRange", "10.200.0.0/29")
		fill(network, "ipAddresses", []any{"10.200.0.2"})
		fill(network, "connectMode", "DIRECT_PEERING") // †
	}
	for _, share := range Objects(body, "fileShares") {
		share["capacityGb"] = fmt.Sprint(share["capacityGb"])
		body["capacityGb"] = share["capacityGb"]
	}
	fill(body, "protocol", "NFS_V3") // †
	return nil
}

// capacityOf returns the capacity of an instance in GiB, or 0. The provider's request has its only share without a list.
func capacityOf(body Body) (gib int64) {
	for _, share := range append(Objects(body, "fileShares"), Object(body, "fileShares")) {
		_, _ = fmt.Sscan(fmt.Sprint(share["capacityGb"]), &gib)
	}
	return gib
}

func networkOfInstance(name string, body Body) string {
	return networkOf(name, Text(Objects(body, "networks")[0], "network"))
}

func completeRepository(_ *Cloud, name string, body, _ Body) error {
	body["name"] = name
	return nil
}

// completeIdentity names the account that Filestore acts as in a project. The project does not have it
// before it is asked for.
func completeIdentity(_ *Cloud, _ string, body, _ Body) error {
	if service := Text(body, "service"); service != "file.googleapis.com" {
		return refuse(404, "notFound", "Service %s has no identity", service) // †
	}
	body["email"] = "service-" + ProjectNumber + "@cloud-filer.iam.gserviceaccount.com"
	return nil
}

// checkMember refuses to grant anything to the service agent of Filestore before somebody asks for it†,
// or to a pod's identity while no cluster of the project uses Workload Identity. IAM creates the pool
// of identities with the first such cluster; that it keeps the pool after the last one is not
// simulated. The message is IAM's own (https://github.com/konstructio/kubefirst/issues/1760).
func checkMember(c *Cloud, _ string, body, _ Body) error {
	member := Text(body, "member")
	account, _ := strings.CutPrefix(member, "serviceAccount:")
	pool := Element(member, "workloadIdentityPools")
	switch {
	case strings.Contains(account, "@cloud-filer."):
		if exists, err := c.any("serviceusage.identity", "email", account); err != nil || exists {
			return err
		}
		return refuse(400, "badRequest", "Service account %s does not exist.", account)
	case strings.HasSuffix(pool, ".svc.id.goog"):
		if exists, err := c.any(Cluster, "workloadIdentityConfig.workloadPool", pool); err != nil || exists {
			return err
		}
		return refuse(400, "badRequest", "Identity Pool does not exist (%s). "+
			"Please check that you specified a valid resource name as returned in the `name` attribute in the configuration API.", pool)
	}
	return nil
}

// any reports whether a resource of a kind has a text at a path.
func (c *Cloud) any(kind, path, text string) (bool, error) {
	bodies, err := c.List(kind)
	for _, body := range bodies {
		if Text(body, path) == text {
			return true, nil
		}
	}
	return false, err
}

func completeAccount(_ *Cloud, name string, body, _ Body) error {
	email := Segment(name)
	body["name"], body["email"] = name, email
	body["projectId"] = Element(name, "projects")
	body["uniqueId"] = "1" + ProjectNumber + "00000000"
	body["oauth2ClientId"] = body["uniqueId"]
	fill(body, "etag", hash(name))
	delete(body, "accountId")
	return nil
}
