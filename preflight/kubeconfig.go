package preflight

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"persia/config/clusterspec"
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
				Command     string `json:"command"`
				InstallHint string `json:"installHint"`
			} `json:"exec"`
		} `json:"user"`
	} `json:"users"`
}

// kubeconfigChecks look for the context of an existing cluster, and for the program
// that the context gets credentials from. They do not contact the cluster.
func kubeconfigChecks(existing clusterspec.Existing) []Check {
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
func kubeconfigFiles(existing clusterspec.Existing) []string {
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
		return []Check{ok(command, "on the PATH")}
	}
	return nil
}
