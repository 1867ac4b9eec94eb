package preflight

import (
	"cmp"
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
	checks := []Check{gcloudCheck(), authPluginCheck(), credentialsCheck(cmp.Or(p.file.providerCredentials(), providerVariable()))}
	project := p.projectCheck(ctx)
	checks = append(checks, project)
	if project.Status != OK {
		return append(checks, p.unasked(project)...)
	}
	checks = append(checks, p.servicesCheck(ctx))
	checks = append(checks, p.quotaChecks(ctx)...)
	checks = append(checks, p.machineChecks(ctx)...)
	checks = append(checks, p.bucketChecks(ctx)...)
	return append(checks, p.cacheChecks(ctx)...)
}

// unasked returns the unchecked checks of a project that did not answer. They still list the needs
// of the stack.
func (p *preflight) unasked(project Check) []Check {
	why := project.Detail
	if project.Status == Missing {
		why = "the project did not answer"
	}
	checks := []Check{unchecked(servicesName, why+"; needed: "+strings.Join(names(Services(p.stack)), ", "))}
	for _, quota := range p.stack.Plan().Quotas {
		checks = append(checks, unchecked(quotaName+quota.Name, fmt.Sprintf("%s; needed: %d, %s", why, quota.Amount, quota.Region)))
	}
	return append(checks, p.uncheckedPlaces(why)...)
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

// providerVariables are the variables with credentials that only the Google Cloud provider
// reads: gke-gcloud-auth-plugin looks for application-default credentials alone.
var providerVariables = []string{
	"GOOGLE_CREDENTIALS", "GOOGLE_CLOUD_KEYFILE_JSON", "GCLOUD_KEYFILE_JSON", "GOOGLE_OAUTH_ACCESS_TOKEN", "GOOGLE_IMPERSONATE_SERVICE_ACCOUNT",
}

// providerKeys are the keys of a stack file with such credentials (pulumi-gcp, "Installation and
// configuration").
var providerKeys = []string{"gcp:credentials", "gcp:accessToken", "gcp:impersonateServiceAccount"}

const (
	// credentialsName is the name of the check of the credentials that `up` uses.
	credentialsName = "credentials"
	// credentialsVariable names a file with application-default credentials.
	credentialsVariable = "GOOGLE_APPLICATION_CREDENTIALS"
	login               = "gcloud auth application-default login"
)

// credentialsCheck looks for the application-default credentials, which the provider and
// gke-gcloud-auth-plugin both read, and does not read them itself. Only names the setting with
// credentials that the provider alone reads, or is "".
func credentialsCheck(only string) Check {
	credentials := defaultCredentials()
	switch {
	case only == "":
		return credentials
	case credentials.Status == OK:
		return warning(credentialsName,
			fmt.Sprintf("Pulumi reaches Google Cloud with %s, and the cluster with other credentials: %s", only, credentials.Detail),
			"unset "+only+", or make sure that both belong to the same account")
	default:
		return missing(credentialsName,
			fmt.Sprintf("%s is set, but %s does not read it: Pulumi would create the cluster and no object in it; %s", only, gcp.AuthPlugin, credentials.Detail),
			fmt.Sprintf("unset %s, and set %s to the path of a credentials file, or run %s", only, credentialsVariable, login))
	}
}

// providerCredentials returns the first of the providerKeys that the stack file sets, or "".
func (f *stackFile) providerCredentials() string {
	for _, key := range providerKeys {
		if f.Config[key] != nil {
			return key
		}
	}
	return ""
}

// providerVariable returns the first of the providerVariables that is set, or "".
func providerVariable() string {
	for _, variable := range providerVariables {
		if os.Getenv(variable) != "" {
			return variable
		}
	}
	return ""
}

// defaultCredentials looks for application-default credentials in the same places as Google's
// libraries for Go (golang.org/x/oauth2/google, FindDefaultCredentials).
func defaultCredentials() Check {
	if file := os.Getenv(credentialsVariable); file != "" {
		if !exists(file) {
			return missing(credentialsName, credentialsVariable+" is "+file+", which does not exist", "correct it, or unset it and run "+login)
		}
		return ok(credentialsName, credentialsVariable+" is "+file)
	}
	const base = "application_default_credentials.json"
	if home, err := os.UserHomeDir(); err == nil {
		if file := filepath.Join(home, ".config", "gcloud", base); exists(file) {
			return ok(credentialsName, file)
		}
	}
	if onGoogleCloud() {
		return ok(credentialsName, "this machine's own service account")
	}
	if dir := os.Getenv("CLOUDSDK_CONFIG"); dir != "" && exists(filepath.Join(dir, base)) {
		return missing(credentialsName, filepath.Join(dir, base)+" is where only gcloud looks, because CLOUDSDK_CONFIG is set",
			"export "+credentialsVariable+"="+filepath.Join(dir, base))
	}
	return missing(credentialsName, "there are no application-default credentials", login)
}

// firmware is where Linux keeps the product name that the firmware gives. Tests set
// their own.
var firmware = "/sys/class/dmi/id/product_name"

// onGoogleCloud reports whether the firmware says that this machine is Google's.
func onGoogleCloud() bool {
	product, err := os.ReadFile(firmware)
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

// servicesCheck compares the enabled APIs with the APIs that the stack needs.
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
