package preflight

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"persia/capacity"
	"persia/config"
	"persia/gcp"
)

// row is one check that asks gcloud.
type row struct {
	name string
	// needs says what the stack needs. The report shows it if gcloud does not answer.
	needs string
	ask   []string
	// read judges what gcloud prints.
	read func(answer []byte) (Check, error)
	// refused are errors of gcloud that mean that something is missing, and what to do.
	refused []refusal
}

type refusal struct {
	texts          []string
	detail, remedy string
}

// absent are gcloud's messages about what does not exist.
var absent = []string{"was not found", "not found: 404", "NOT_FOUND"}

func (r row) check(ctx context.Context, gcloud Gcloud) Check {
	text, err := gcloud(ctx, r.ask...)
	for _, refusal := range r.refused {
		if says(err, refusal.texts...) {
			return Check{r.name, Missing, cmp.Or(refusal.detail, fmt.Sprint(err)), refusal.remedy}
		}
	}
	var c Check
	if err == nil {
		c, err = r.read(text)
	}
	if err != nil {
		return r.unchecked(err.Error())
	}
	c.Name = r.name
	return c
}

func (r row) unchecked(why string) Check {
	if r.needs != "" {
		why += "; needed: " + r.needs
	}
	return Check{r.name, Unchecked, why, ""}
}

// reads decodes what gcloud prints.
func reads[T any](judge func(answer T) Check) func([]byte) (Check, error) {
	return func(text []byte) (Check, error) {
		var answer T
		if err := json.Unmarshal(text, &answer); err != nil {
			return Check{}, fmt.Errorf("gcloud printed unexpected output: %w", err)
		}
		return judge(answer), nil
	}
}

// found judges anything that exists.
func found(detail string) func([]byte) (Check, error) {
	return func([]byte) (Check, error) { return Check{Status: OK, Detail: detail}, nil }
}

const projectName = "project"

// rows are the checks of a stack that creates its cluster. The project comes first, because the
// others ask for what is in it.
func rows(s *config.Stack) []row {
	return slices.Concat([]row{credentials(), project(s), apis(s)}, quotas(s), machines(s), buckets(s), caches(s))
}

// credentials looks for the application-default credentials. The provider may have others, and creates the
// cluster with them, but gke-gcloud-auth-plugin then has none for its objects.
func credentials() row {
	const login = "gcloud auth application-default login, or set GOOGLE_APPLICATION_CREDENTIALS to the path of a credentials file"
	return row{
		name: "credentials", ask: []string{"auth", "application-default", "print-access-token"},
		refused: []refusal{
			{texts: []string{"executable file not found"}, remedy: "install it: https://cloud.google.com/sdk/docs/install"},
			{texts: []string{"were not found", "was not found", "invalid_grant", "Reauthentication"}, remedy: login},
		},
		read: found("application-default credentials"),
	}
}

func project(s *config.Stack) row {
	return row{
		name: projectName, ask: []string{"projects", "describe", s.Project, "--format=json"},
		refused: []refusal{
			{texts: []string{"active account", "Reauthentication", "invalid_grant"}, remedy: "gcloud auth login"},
			{texts: append([]string{"not have permission"}, absent...), remedy: "correct persia:project (`gcloud projects list` lists your projects), or ask for roles/browser in this project"},
		},
		read: reads(func(answer struct{ LifecycleState string }) Check {
			if answer.LifecycleState != "ACTIVE" {
				return Check{Status: Missing, Detail: s.Project + " is " + answer.LifecycleState, Remedy: "choose another project, or run gcloud projects undelete " + s.Project}
			}
			return Check{Status: OK, Detail: s.Project}
		}),
	}
}

func apis(s *config.Stack) row {
	needed := services(s)
	maps.DeleteFunc(needed, func(_ string, needs bool) bool { return !needs })
	return row{
		name: "APIs", needs: strings.Join(slices.Sorted(maps.Keys(needed)), ", "),
		ask: []string{"services", "list", "--enabled", "--project=" + s.Project, "--format=json"},
		read: reads(func(enabled []struct{ Config struct{ Name string } }) Check {
			lacking := maps.Clone(needed)
			for _, api := range enabled {
				delete(lacking, api.Config.Name)
			}
			if names := slices.Sorted(maps.Keys(lacking)); len(names) > 0 {
				return Check{Status: Missing, Detail: "not enabled: " + strings.Join(names, ", "),
					Remedy: fmt.Sprintf("gcloud services enable %s --project=%s", strings.Join(names, " "), s.Project)}
			}
			return Check{Status: OK, Detail: fmt.Sprintf("all %d that the stack needs are enabled", len(needed))}
		}),
	}
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

func quotas(s *config.Stack) []row {
	var rows []row
	for _, need := range s.Plan().Quotas {
		ask := []string{"compute", "regions", "describe", need.Region}
		if need.Region == "global" {
			ask = []string{"compute", "project-info", "describe"}
		}
		rows = append(rows, row{
			name: "quota " + need.Name, needs: fmt.Sprintf("%d, %s", need.Amount, need.Region),
			ask: append(ask, "--project="+s.Project, "--format=json"), read: readsQuota(need, s.Project),
		})
	}
	return rows
}

func readsQuota(need capacity.Quota, project string) func([]byte) (Check, error) {
	console := "https://console.cloud.google.com/iam-admin/quotas?project=" + project
	return reads(func(answer struct {
		Quotas []struct {
			Metric       string
			Limit, Usage float64
		}
	}) Check {
		for _, q := range answer.Quotas {
			if q.Metric != need.Name {
				continue
			}
			amount := float64(need.Amount)
			detail := fmt.Sprintf("%d needed, %s: limit %.0f, %.0f of it used", need.Amount, need.Region, q.Limit, q.Usage)
			remedy := fmt.Sprintf("request %.0f of %s in %s at %s, which can take days", q.Usage+amount, need.Name, need.Region, console)
			switch {
			case q.Limit == 0 && strings.HasPrefix(need.Name, "PREEMPTIBLE_"):
				return Check{Status: Warning, Detail: detail + "; with a limit of 0, spot machines use the ordinary quota", Remedy: remedy}
			case amount <= q.Limit-q.Usage:
				return Check{Status: OK, Detail: detail}
			case amount <= q.Limit:
				return Check{Status: Warning, Detail: detail + ", maybe by this stack", Remedy: "if others use it: " + remedy}
			}
			return Check{Status: Missing, Detail: detail, Remedy: remedy}
		}
		return Check{Status: Unchecked, Detail: fmt.Sprintf("gcloud does not list this quota; needed: %d, %s; see %s", need.Amount, need.Region, console)}
	})
}

// machines asks whether the zones have the machines and GPUs of all pools. No table of the program can
// know that, because Google adds machines to zones every month.
func machines(s *config.Stack) []row {
	var rows []row
	add := func(kind, name, zone string) {
		command := []string{"compute", kind, "describe", name, "--zone=" + zone, "--project=" + s.Project, "--format=json"}
		if slices.ContainsFunc(rows, func(r row) bool { return slices.Equal(r.ask, command) }) {
			return
		}
		rows = append(rows, row{
			name: "machine " + name, needs: "in " + zone, ask: command, read: found("in " + zone),
			refused: []refusal{{absent, zone + " has none", fmt.Sprintf("write other zones or another machine type; this lists the zones that have it: "+
				"gcloud compute %s list --filter=name=%s --project=%s", kind, name, s.Project)}},
		})
	}
	for _, pool := range s.Pools() {
		m, known := gcp.Lookup(pool.MachineType)
		for _, zone := range pool.Zones {
			add("machine-types", pool.MachineType, zone)
			if pool.GPU != nil && known && m.GPUs == 0 { // attached to the machine
				add("accelerator-types", pool.GPU.Type, zone)
			}
		}
	}
	return rows
}

// buckets looks for the buckets that volumes mount and the stack does not create.
func buckets(s *config.Stack) []row {
	var names []string
	for _, v := range s.StoredVolumes() {
		if v.GCSFuse != nil && !v.Creates() {
			names = append(names, v.GCSFuse.Bucket)
		}
	}
	slices.Sort(names)
	var rows []row
	region := s.Cluster.Region
	for _, bucket := range slices.Compact(names) {
		rows = append(rows, row{
			name: "bucket " + bucket, ask: []string{"storage", "buckets", "describe", "gs://" + bucket, "--format=json"},
			refused: []refusal{{absent, "it does not exist, so no pod that mounts it starts", fmt.Sprintf("correct the name, write create: {} next to it, or run "+
				"gcloud storage buckets create gs://%s --location=%s --project=%s", bucket, region, s.Project)}},
			read: reads(func(answer struct{ Location string }) Check {
				location := strings.ToUpper(answer.Location)
				if !gcp.LocationHolds(location, region) {
					return Check{Status: Warning, Detail: fmt.Sprintf("%s is far from the cluster in %s, so checkpoints are slow and their traffic is billed", location, region),
						Remedy: "use a bucket in " + region}
				}
				return Check{Status: OK, Detail: "in " + location}
			}),
		})
	}
	return rows
}

// caches looks for the repositories of image caches that the stack does not create.
func caches(s *config.Stack) []row {
	var rows []row
	for _, cache := range s.Images.Caches {
		if cache.Created() {
			continue
		}
		rows = append(rows, row{
			name: "image cache " + cache.Repository,
			ask:  []string{"artifacts", "repositories", "describe", cache.Name(), "--location=" + cache.Location(), "--project=" + cache.Project(), "--format=json"},
			refused: []refusal{{absent, "it does not exist, so no node can pull an image of " + cache.Registry,
				fmt.Sprintf("gcloud artifacts repositories create %s --repository-format=docker --mode=remote-repository --remote-docker-repo=https://%s --location=%s --project=%s",
					cache.Name(), cache.Registry, cache.Location(), cache.Project())}},
			read: found("for " + cache.Registry),
		})
	}
	return rows
}
