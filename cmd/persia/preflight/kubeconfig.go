package preflight

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"persia/config"
	"persia/gcp"
)

// kubeconfig is the part of a kubeconfig file that the checks read: its contexts, and
// the programs that its users get credentials from.
type kubeconfig struct {
	CurrentContext string `json:"current-context"`
	Contexts       []struct {
		Name    string `json:"name"`
		Context struct {
			User string `json:"user"`
		} `json:"context"`
	} `json:"contexts"`
	Users []struct {
		Name string `json:"name"`
		User struct {
			Exec *struct {
				Command     string   `json:"command"`
				Args        []string `json:"args"`
				InstallHint string   `json:"installHint"`
			} `json:"exec"`
		} `json:"user"`
	} `json:"users"`
}

// kubeconfigChecks look for the context of an existing cluster, and for the program
// that the context gets credentials from. They do not contact the cluster.
func kubeconfigChecks(existing config.ExistingCluster) []Check {
	const name = "kubeconfig"
	files := kubeconfigFiles(existing)
	merged, err := readKubeconfigs(files)
	if err != nil {
		return []Check{missing(name, err.Error(), "correct the file, or name another one in persia:cluster.existing.kubeconfig")}
	}
	context := cmp.Or(existing.Context, merged.CurrentContext)
	for _, c := range merged.Contexts {
		if c.Name == context {
			return append([]Check{ok(name, "has the context "+context)}, merged.execCheck(c.Context.User)...)
		}
	}
	return []Check{missing(name, fmt.Sprintf("persia:cluster.existing.context: %q is not in %s, which contains %s", context, strings.Join(files, ", "), merged.contexts()),
		"correct it; for a GKE cluster, run gcloud container clusters get-credentials NAME --region REGION --project PROJECT")}
}

// kubeconfigFiles returns the files that kubectl and the provider read.
func kubeconfigFiles(existing config.ExistingCluster) []string {
	if existing.Kubeconfig != "" {
		return []string{existing.Kubeconfig}
	}
	if list := os.Getenv("KUBECONFIG"); list != "" {
		return filepath.SplitList(list)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return nil
	}
	return []string{filepath.Join(home, ".kube", "config")}
}

// readKubeconfigs merges files. Like kubectl, it treats a missing file as empty.
func readKubeconfigs(files []string) (kubeconfig, error) {
	var merged kubeconfig
	for _, file := range files {
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return merged, err
		}
		var one kubeconfig
		if err := yaml.Unmarshal(text, &one); err != nil {
			return merged, fmt.Errorf("%s: %w", file, err)
		}
		merged.CurrentContext = cmp.Or(merged.CurrentContext, one.CurrentContext)
		merged.Contexts = append(merged.Contexts, one.Contexts...)
		merged.Users = append(merged.Users, one.Users...)
	}
	return merged, nil
}

func (k kubeconfig) contexts() string {
	if len(k.Contexts) == 0 {
		return "none"
	}
	var names []string
	for _, c := range k.Contexts {
		names = append(names, c.Name)
	}
	return strings.Join(names, ", ")
}

// execCheck looks for the program that a user gets credentials from, if there is one.
func (k kubeconfig) execCheck(user string) []Check {
	for _, u := range k.Users {
		if u.Name != user || u.User.Exec == nil {
			continue
		}
		command := u.User.Exec.Command
		if !found(command) {
			hint := strings.Join(strings.Fields(u.User.Exec.InstallHint), " ")
			return []Check{missing(command, "it is not on the PATH, and the context needs it to get credentials", cmp.Or(hint, "install it"))}
		}
		checks := []Check{ok(command, "on the PATH")}
		if filepath.Base(command) == gcp.AuthPlugin {
			checks = append(checks, pluginCredentialsCheck(u.User.Exec.Args))
		}
		return checks
	}
	return nil
}

// pluginCredentialsCheck looks for the credentials that gke-gcloud-auth-plugin uses with the
// arguments of a context: the application-default ones, or the login of gcloud.
func pluginCredentialsCheck(args []string) Check {
	if slices.ContainsFunc(args, asksForDefaultCredentials) {
		return credentialsCheck(providerVariable())
	}
	if !found("gcloud") {
		return missing(credentialsName, gcp.AuthPlugin+" asks gcloud for credentials, which is not on the PATH",
			"install it: https://cloud.google.com/sdk/docs/install")
	}
	if variable := providerVariable(); variable != "" {
		return warning(credentialsName, variable+" does not reach the cluster: "+gcp.AuthPlugin+" uses the account that gcloud is logged in with",
			"make sure that `gcloud auth list` shows the right account as active")
	}
	return ok(credentialsName, gcp.AuthPlugin+" uses the account that gcloud is logged in with")
}

// asksForDefaultCredentials reports whether an argument of gke-gcloud-auth-plugin is
// --use_application_default_credentials in one of the forms of Go's flag package.
func asksForDefaultCredentials(arg string) bool {
	name, value, given := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	if name != "use_application_default_credentials" {
		return false
	}
	on, err := strconv.ParseBool(value)
	return !given || (err == nil && on)
}
