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

	clusterconfig "persia/config/cluster"
)

// kubeconfig is what is read of kubeconfig files: who enters where, by which
// program.
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

// kubeconfigChecks look for the context of a cluster that is there, and for the
// program that it gets its credentials by. The cluster is not asked.
func kubeconfigChecks(existing clusterconfig.Existing) []Check {
	const name = "kubeconfig"
	files := kubeconfigFiles(existing)
	merged, err := readKubeconfigs(files)
	if err != nil {
		return []Check{missing(name, err.Error(), "mend the file, or name another by persia:cluster.existing.kubeconfig")}
	}
	context := cmp.Or(existing.Context, merged.CurrentContext)
	for _, c := range merged.Contexts {
		if c.Name == context {
			return append([]Check{ok(name, "has the context "+context)}, merged.execCheck(c.Context.User)...)
		}
	}
	return []Check{missing(name, fmt.Sprintf("persia:cluster.existing.context: %q is not in %s, which has %s", context, strings.Join(files, ", "), merged.contexts()),
		"correct it; for a cluster of GKE: gcloud container clusters get-credentials NAME --region REGION --project PROJECT")}
}

// kubeconfigFiles are those that kubectl and the provider read.
func kubeconfigFiles(existing clusterconfig.Existing) []string {
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

// readKubeconfigs merges files. As for kubectl, one that is not there is empty.
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

// execCheck looks for the program that a user's credentials come from, if there is
// one.
func (k kubeconfig) execCheck(user string) []Check {
	for _, u := range k.Users {
		if u.Name != user || u.User.Exec == nil {
			continue
		}
		command := u.User.Exec.Command
		if !found(command) {
			hint := strings.Join(strings.Fields(u.User.Exec.InstallHint), " ")
			return []Check{missing(command, "it is not on the PATH, and the context gets its credentials by it", cmp.Or(hint, "install it"))}
		}
		return []Check{ok(command, "on the PATH")}
	}
	return nil
}
