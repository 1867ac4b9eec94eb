package preflight

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"persia/gcp"
)

// The names of the checks that ask Google Cloud.
const (
	projectName  = "project"
	servicesName = "APIs"
	quotaName    = "quota "
)

// googleChecks check the account and the project.
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

// unasked returns the unchecked checks of a project that did not answer. They still
// say what the stack needs.
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
	if !found(gcp.AuthPlugin) {
		return missing(gcp.AuthPlugin, "it is not on the PATH, and Pulumi needs it to log in to the cluster",
			"run gcloud components install "+gcp.AuthPlugin+", or install the package google-cloud-cli-"+gcp.AuthPlugin)
	}
	return ok(gcp.AuthPlugin, "on the PATH")
}

// credentialVariables are the variables that the Google Cloud provider reads before it
// looks for application-default credentials.
var credentialVariables = []string{"GOOGLE_CREDENTIALS", "GOOGLE_CLOUD_KEYFILE_JSON", "GCLOUD_KEYFILE_JSON", "GOOGLE_OAUTH_ACCESS_TOKEN"}

// credentialsCheck looks for the credentials that `up` uses, and does not read them.
func credentialsCheck() Check {
	const name, remedy = "credentials", "gcloud auth application-default login"
	for _, variable := range credentialVariables {
		if os.Getenv(variable) != "" {
			return ok(name, variable+" is set")
		}
	}
	if file := os.Getenv("GOOGLE_APPLICATION_CREDENTIALS"); file != "" {
		if !exists(file) {
			return missing(name, "GOOGLE_APPLICATION_CREDENTIALS is "+file+", which does not exist", "correct it, or unset it and run "+remedy)
		}
		return ok(name, "GOOGLE_APPLICATION_CREDENTIALS is "+file)
	}
	if file := defaultCredentials(); exists(file) {
		return ok(name, file)
	}
	if onGoogleCloud() {
		return ok(name, "this machine's own service account")
	}
	return missing(name, "there are no application-default credentials", remedy)
}

// defaultCredentials returns the file that `gcloud auth application-default login`
// writes.
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

// onGoogleCloud reports whether the firmware says that this machine is Google's.
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
		return unchecked(projectName, "gcloud is not installed")
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
			"correct persia:project (`gcloud projects list` lists your projects), or ask for roles/browser in this project")
	case project.LifecycleState != "ACTIVE":
		return missing(projectName, fmt.Sprintf("%s is %s", id, project.LifecycleState), "choose another project, or run gcloud projects undelete "+id)
	}
	return ok(projectName, id)
}

// loggedOut reports whether gcloud is not logged in, or the login has expired.
func loggedOut(err error) bool {
	for _, sign := range []string{"active account", "auth tokens", "Reauthentication"} {
		if strings.Contains(err.Error(), sign) {
			return true
		}
	}
	return false
}

// servicesCheck compares the enabled APIs with those that the stack needs.
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
	return ok(servicesName, fmt.Sprintf("all %d that the stack needs are enabled", len(needed)))
}

func names(services []Service) []string {
	var names []string
	for _, service := range services {
		names = append(names, service.Name)
	}
	return names
}
