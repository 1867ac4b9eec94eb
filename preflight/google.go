package preflight

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const authPlugin = "gke-gcloud-auth-plugin"

// The names of the checks that need an answer of Google Cloud.
const (
	projectName  = "project"
	servicesName = "APIs"
	quotaName    = "quota "
)

// googleChecks are those of the account and of the project.
func (p *preflight) googleChecks(ctx context.Context) []Check {
	checks := []Check{gcloudCheck(), authPluginCheck(), credentialsCheck()}
	project := p.projectCheck(ctx)
	checks = append(checks, project)
	if project.Status != OK {
		return append(checks, p.unasked(project)...)
	}
	checks = append(checks, p.servicesCheck(ctx))
	return append(checks, p.quotaChecks(ctx)...)
}

// unasked are the checks of a project that cannot be asked: they say what the stack
// needs nevertheless.
func (p *preflight) unasked(project Check) []Check {
	why := project.Detail
	if project.Status == Missing {
		why = "the project did not answer"
	}
	checks := []Check{unchecked(servicesName, why+"; needed: "+strings.Join(names(Services(p.stack)), ", "))}
	for _, quota := range p.stack.Plan().Quotas {
		checks = append(checks, unchecked(quotaName+quota.Name, fmt.Sprintf("%s; needed: %d, %s", why, quota.Amount, quota.Region)))
	}
	return checks
}

func gcloudCheck() Check {
	const name = "gcloud"
	if !found("gcloud") {
		return missing(name, "gcloud is not on the PATH", "install it: https://cloud.google.com/sdk/docs/install")
	}
	return ok(name, "on the PATH")
}

func authPluginCheck() Check {
	if !found(authPlugin) {
		return missing(authPlugin, "it is not on the PATH, and Pulumi enters the cluster by it",
			"gcloud components install gke-gcloud-auth-plugin, or the package google-cloud-cli-gke-gcloud-auth-plugin")
	}
	return ok(authPlugin, "on the PATH")
}

// credentialVariables are what the program's provider takes credentials from before
// it looks for the application-default ones.
var credentialVariables = []string{"GOOGLE_CREDENTIALS", "GOOGLE_CLOUD_KEYFILE_JSON", "GCLOUD_KEYFILE_JSON", "GOOGLE_OAUTH_ACCESS_TOKEN"}

// credentialsCheck looks for the credentials that `up` uses. They are not opened.
func credentialsCheck() Check {
	const name, remedy = "credentials", "gcloud auth application-default login"
	for _, variable := range credentialVariables {
		if os.Getenv(variable) != "" {
			return ok(name, variable+" is set")
		}
	}
	if file := os.Getenv("GOOGLE_APPLICATION_CREDENTIALS"); file != "" {
		if !exists(file) {
			return missing(name, "GOOGLE_APPLICATION_CREDENTIALS names "+file+", which is not there", "correct it, or unset it and run "+remedy)
		}
		return ok(name, "GOOGLE_APPLICATION_CREDENTIALS names "+file)
	}
	if file := defaultCredentials(); exists(file) {
		return ok(name, file)
	}
	if onGoogleCloud() {
		return ok(name, "this machine's own service account")
	}
	return missing(name, "there are no application-default credentials", remedy)
}

// defaultCredentials is the file that `gcloud auth application-default login` writes.
func defaultCredentials() string {
	dir := os.Getenv("CLOUDSDK_CONFIG")
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		dir = filepath.Join(home, ".config", "gcloud")
	}
	return filepath.Join(dir, "application_default_credentials.json")
}

// onGoogleCloud goes by what the firmware says.
func onGoogleCloud() bool {
	product, err := os.ReadFile("/sys/class/dmi/id/product_name")
	return err == nil && strings.HasPrefix(string(product), "Google")
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return path != "" && err == nil
}

func (p *preflight) projectCheck(ctx context.Context) Check {
	id := p.stack.Project
	switch {
	case p.Offline:
		return unchecked(projectName, "offline")
	case !found("gcloud"):
		return unchecked(projectName, "there is no gcloud")
	}
	var project struct{ LifecycleState string }
	err := p.ask(ctx, &project, "gcloud", "projects", "describe", id, "--format=json")
	switch {
	case unreachable(err):
		return unchecked(projectName, err.Error())
	case err != nil && loggedOut(err):
		return missing(projectName, err.Error(), "gcloud auth login")
	case err != nil:
		return missing(projectName, id+": "+err.Error(),
			"correct persia:project, `gcloud projects list` shows yours; or have yourself granted roles/browser in it")
	case project.LifecycleState != "ACTIVE":
		return missing(projectName, fmt.Sprintf("%s is %s", id, project.LifecycleState), "choose another, or: gcloud projects undelete "+id)
	}
	return ok(projectName, id)
}

// loggedOut reports whether gcloud has no login, or one that has ended.
func loggedOut(err error) bool {
	for _, sign := range []string{"active account", "auth tokens", "Reauthentication"} {
		if strings.Contains(err.Error(), sign) {
			return true
		}
	}
	return false
}

// servicesCheck compares the APIs that are enabled with those that the stack needs.
func (p *preflight) servicesCheck(ctx context.Context) Check {
	needed := names(Services(p.stack))
	var enabled []struct {
		Config struct{ Name string }
	}
	err := p.ask(ctx, &enabled, "gcloud", "services", "list", "--enabled", "--project="+p.stack.Project, "--format=json")
	if err != nil {
		return unchecked(servicesName, err.Error()+"; needed: "+strings.Join(needed, ", "))
	}
	there := map[string]bool{}
	for _, service := range enabled {
		there[service.Config.Name] = true
	}
	var lacking []string
	for _, name := range needed {
		if !there[name] {
			lacking = append(lacking, name)
		}
	}
	if len(lacking) > 0 {
		return missing(servicesName, "not enabled: "+strings.Join(lacking, ", "),
			fmt.Sprintf("gcloud services enable %s --project=%s", strings.Join(lacking, " "), p.stack.Project))
	}
	return ok(servicesName, fmt.Sprintf("the %d that the stack needs are enabled", len(needed)))
}

func names(services []Service) []string {
	var names []string
	for _, service := range services {
		names = append(names, service.Name)
	}
	return names
}
