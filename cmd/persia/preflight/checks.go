package preflight

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"

	"persia/config"
	"persia/config/input"
	"persia/gcp"
)

// controlPlane says who can reach the control plane, as `up` must.
func (r *report) controlPlane() {
	for _, warning := range r.stack.FirstWarnings() {
		if strings.HasPrefix(warning, "persia:cluster.") {
			r.add("control plane", Warning, warning, "")
			return
		}
	}
	ranges := input.Words(r.stack.Cluster.AuthorizedNetworks, func(n config.AuthorizedNetwork) string { return n.CIDR })
	r.add("control plane", OK, "open to "+strings.Join(ranges, ", ")+": you must connect from there", "")
}

func (r *report) authPlugin() {
	if _, err := exec.LookPath(gcp.AuthPlugin); err != nil {
		r.add(gcp.AuthPlugin, Missing, "it is not on the PATH, and Pulumi needs it to log in to the cluster",
			"run gcloud components install "+gcp.AuthPlugin+", or install the package google-cloud-cli-"+gcp.AuthPlugin)
		return
	}
	r.add(gcp.AuthPlugin, OK, "on the PATH", "")
}

// Install tells users where to read how to install a missing program.
const Install = "install it as docs/start/google-cloud.md#1-programs says"

// otherCredentials are variables that give Google's provider other credentials than gke-gcloud-auth-plugin has: the
// cluster comes up, and none of its objects.
var otherCredentials = []string{"GOOGLE_CREDENTIALS", "GOOGLE_OAUTH_ACCESS_TOKEN", "GOOGLE_IMPERSONATE_SERVICE_ACCOUNT"}

// credentials looks for the application-default credentials.
func (r *report) credentials(ctx context.Context) {
	for _, name := range otherCredentials {
		if os.Getenv(name) != "" {
			r.add("credentials", Warning, name+" is set, which "+gcp.AuthPlugin+" does not read: `pulumi up` may have no access to its cluster",
				"unset it, and use application-default credentials, with --impersonate-service-account=ACCOUNT to act as an account")
		}
	}
	r.exists(ctx, question{name: "credentials", command: []string{"auth", "application-default", "print-access-token"}, refused: []refusal{
		{[]string{"executable file not found"}, "", Install},
		{[]string{"were not found", "was not found", "invalid_grant", "Reauthentication"}, "",
			"gcloud auth application-default login, or set GOOGLE_APPLICATION_CREDENTIALS to the path of a credentials file"},
	}}, "application-default credentials")
}

// project reports whether there is the project. Without it, gcloud cannot say more.
func (r *report) project(ctx context.Context) bool {
	return r.exists(ctx, question{name: "project", command: []string{"projects", "describe", r.stack.Project}, refused: []refusal{
		{[]string{"active account", "Reauthentication", "invalid_grant"}, "", "gcloud auth login"},
		{append([]string{"not have permission"}, absent...), "",
			"correct persia:project (`gcloud projects list` lists your projects), or ask for roles/browser in this project"},
	}}, r.stack.Project)
}

func (r *report) apis(ctx context.Context) {
	const name = "APIs"
	lacking := services(r.stack)
	maps.DeleteFunc(lacking, func(_ string, needs bool) bool { return !needs })
	needed := slices.Sorted(maps.Keys(lacking))
	var enabled []struct{ Config struct{ Name string } }
	if !r.ask(ctx, question{name: name, needs: strings.Join(needed, ", "),
		command: []string{"services", "list", "--enabled", "--project=" + r.stack.Project}}, &enabled) {
		return
	}
	for _, api := range enabled {
		delete(lacking, api.Config.Name)
	}
	if names := slices.Sorted(maps.Keys(lacking)); len(names) > 0 {
		r.add(name, Missing, "not enabled: "+strings.Join(names, ", "), fmt.Sprintf("gcloud services enable %s --project=%s",
			strings.Join(names, " "), r.stack.Project))
		return
	}
	r.add(name, OK, fmt.Sprintf("all %d that the stack needs are enabled", len(needed)), "")
}

// services are the APIs that a stack may need, and whether this one does.
func services(s *config.Stack) map[string]bool {
	volumes := s.StoredVolumes()
	services := map[string]bool{
		"compute.googleapis.com":              true,
		"container.googleapis.com":            true,
		"iam.googleapis.com":                  true,
		"cloudresourcemanager.googleapis.com": true,
		"dns.googleapis.com":                  true,
		"gkebackup.googleapis.com":            true,
		"binaryauthorization.googleapis.com":  true,
		"containersecurity.googleapis.com":    true,
		"containerfilesystem.googleapis.com":  s.Cluster.ImageStreaming,
		"artifactregistry.googleapis.com":     slices.ContainsFunc(s.Images.Caches, config.Cache.Created),
		"cloudkms.googleapis.com": s.Cluster.Encryption != config.Encryption{} || slices.ContainsFunc(volumes, func(v config.StoredVolume) bool {
			return v.Creation() != nil && v.Creation().KMSKey != ""
		}),
	}
	for _, api := range config.VolumeAPIs() {
		services[api] = services[api] || slices.ContainsFunc(volumes, func(v config.StoredVolume) bool { return v.API() == api })
	}
	return services
}

func (r *report) quotas(ctx context.Context) {
	console := "https://console.cloud.google.com/iam-admin/quotas?project=" + r.stack.Project
	type quota struct {
		Metric       string
		Limit, Usage float64
	}
	for _, need := range r.stack.Plan().Quotas {
		name, needs := "quota "+need.Name, fmt.Sprintf("%d, %s", need.Amount, need.Region)
		command := []string{"compute", "regions", "describe", need.Region}
		if need.Region == "global" {
			command = []string{"compute", "project-info", "describe"}
		}
		var answer struct{ Quotas []quota }
		if !r.ask(ctx, question{name: name, needs: needs, command: append(command, "--project="+r.stack.Project)}, &answer) {
			continue
		}
		i := slices.IndexFunc(answer.Quotas, func(q quota) bool { return q.Metric == need.Name })
		if i < 0 {
			r.add(name, Unchecked, fmt.Sprintf("gcloud does not list this quota; needed: %s; see %s", needs, console), "")
			continue
		}
		limit, usage, amount := answer.Quotas[i].Limit, answer.Quotas[i].Usage, float64(need.Amount)
		detail := fmt.Sprintf("%d needed, %s: limit %.0f, %.0f of it used", need.Amount, need.Region, limit, usage)
		remedy := fmt.Sprintf("request %.0f of %s in %s at %s, which can take days", usage+amount, need.Name, need.Region, console)
		switch {
		case limit == 0 && strings.HasPrefix(need.Name, "PREEMPTIBLE_"):
			r.add(name, Warning, detail+"; with a limit of 0, spot machines use the ordinary quota", remedy)
		case amount <= limit-usage:
			r.add(name, OK, detail, "")
		case amount <= limit:
			r.add(name, Warning, detail+", maybe by this stack", "if others use it: "+remedy)
		default:
			r.add(name, Missing, detail, remedy)
		}
	}
}

// machines asks whether the zones have the machines and GPUs of all pools. No table of the program can know that,
// because Google adds machines to zones every month.
func (r *report) machines(ctx context.Context) {
	asked := map[string]bool{}
	ask := func(kind, name, zone string) {
		if asked[zone+name] {
			return
		}
		asked[zone+name] = true
		remedy := fmt.Sprintf("write other zones or another machine type; this lists the zones that have it: "+
			"gcloud compute %s list --filter=name=%s --project=%s", kind, name, r.stack.Project)
		r.exists(ctx, question{name: "machine " + name, needs: "in " + zone, refused: []refusal{{absent, zone + " has none", remedy}},
			command: []string{"compute", kind, "describe", name, "--zone=" + zone, "--project=" + r.stack.Project}}, "in "+zone)
	}
	for _, pool := range r.stack.Pools() {
		m, known := gcp.Lookup(pool.MachineType)
		for _, zone := range pool.Zones {
			ask("machine-types", pool.MachineType, zone)
			if pool.GPU != nil && known && m.GPUs == 0 { // attached to the machine
				ask("accelerator-types", pool.GPU.Type, zone)
			}
		}
	}
}

// buckets looks for the buckets that volumes mount and the stack does not create.
func (r *report) buckets(ctx context.Context) {
	var names []string
	for _, v := range r.stack.StoredVolumes() {
		if v.GCSFuse != nil && !v.Creates() {
			names = append(names, v.GCSFuse.Bucket)
		}
	}
	slices.Sort(names)
	region := r.stack.Cluster.Region
	for _, bucket := range slices.Compact(names) {
		name := "bucket " + bucket
		remedy := fmt.Sprintf("correct the name, write create: {} next to it, or run "+
			"gcloud storage buckets create gs://%s --location=%s --project=%s", bucket, region, r.stack.Project)
		var answer struct{ Location string }
		if !r.ask(ctx, question{name: name, command: []string{"storage", "buckets", "describe", "gs://" + bucket},
			refused: []refusal{{absent, "it does not exist, so no pod that mounts it starts", remedy}}}, &answer) {
			continue
		}
		location := strings.ToUpper(answer.Location)
		if !gcp.LocationHolds(location, region) {
			r.add(name, Warning, fmt.Sprintf("%s is far from the cluster in %s, "+
				"so checkpoints are slow and their traffic is billed", location, region),
				"use a bucket in "+region)
			continue
		}
		r.add(name, OK, "in "+location, "")
	}
}

// caches looks for the repositories of image caches that the stack does not create.
func (r *report) caches(ctx context.Context) {
	for _, cache := range r.stack.Images.Caches {
		if cache.Created() {
			continue
		}
		remedy := fmt.Sprintf("gcloud artifacts repositories create %s --repository-format=docker --mode=remote-repository "+
			"--remote-docker-repo=https://%s --location=%s --project=%s",
			cache.Name(), cache.Registry, cache.Location(), cache.Project())
		command := []string{"artifacts", "repositories", "describe", cache.Name(),
			"--location=" + cache.Location(), "--project=" + cache.Project()}
		missing := refusal{absent, "it does not exist, so no node can pull an image of " + cache.Registry, remedy}
		r.exists(ctx, question{name: "image cache " + cache.Repository, refused: []refusal{missing}, command: command}, "for "+cache.Registry)
	}
}
