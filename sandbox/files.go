package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
	"github.com/pulumi/pulumi/sdk/v3/go/auto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientauth "k8s.io/client-go/pkg/apis/clientauthentication/v1beta1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"persia/config/nodepool"
	"persia/sandbox/gcp"
)

const projectFile = "Pulumi.yaml"

func stackFile(stack string) string { return "Pulumi." + stack + ".yaml" }

// project is the folder that Pulumi works in.
type project struct {
	dir string
	// secrets are the values of the encrypted parts of the stack file, by their paths.
	secrets auto.ConfigMap
}

// writeProject copies the project's files for Pulumi, which writes into its
// stack file.
func (s *Sandbox) writeProject() (project, error) {
	p := project{dir: s.path("project")}
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return p, err
	}
	text, err := os.ReadFile(filepath.Join(s.options.Project, projectFile))
	if err != nil {
		return p, err
	}
	if err := renameio.WriteFile(filepath.Join(p.dir, projectFile), text, 0o600); err != nil {
		return p, err
	}
	p.secrets, err = s.writeStackFile(p.dir)
	return p, err
}

// writeStackFile copies the stack file without its secrets, and returns what takes their
// place. It keeps the salt that Pulumi has added to the last copy: it belongs to this
// sandbox's passphrase.
func (s *Sandbox) writeStackFile(dir string) (auto.ConfigMap, error) {
	const saltKey = "encryptionsalt"
	name := stackFile(s.options.Stack)
	settings, err := readYAML(filepath.Join(s.options.Stacks, name))
	if err != nil {
		return nil, err
	}
	last, err := readYAML(filepath.Join(dir, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	// How the stack's owner encrypts it says nothing here.
	for _, key := range []string{saltKey, "secretsprovider", "encryptedkey"} {
		delete(settings, key)
	}
	config, _ := settings["config"].(map[string]any)
	secrets := takeSecrets(config)
	if salt, ok := last[saltKey]; ok {
		settings[saltKey] = salt
	}
	text, err := yaml.Marshal(settings)
	if err != nil {
		return nil, err
	}
	return secrets, renameio.WriteFile(filepath.Join(dir, name), text, 0o600)
}

// machines are the machine types that the stack file describes. What is wrong with
// the description is the program's to say.
func (s *Sandbox) machines() (gcp.Machines, error) {
	text, err := os.ReadFile(filepath.Join(s.options.Stacks, stackFile(s.options.Stack)))
	if err != nil {
		return nil, err
	}
	var file struct {
		Config struct {
			MachineTypes map[string]nodepool.MachineType `json:"persia:machineTypes"`
		} `json:"config"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		return nil, nil
	}
	machines := gcp.Machines{}
	for name, described := range file.Config.MachineTypes {
		machines[name] = described.Machine(name)
	}
	return machines, nil
}

func readYAML(path string) (map[string]any, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var values map[string]any
	if err := yaml.Unmarshal(text, &values); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return values, nil
}

// prepareEnvironment puts the sandbox's programs first on this process's PATH,
// where the providers look for gke-gcloud-auth-plugin, and takes away what would
// make Pulumi use the user's own passphrase.
func (s *Sandbox) prepareEnvironment(cluster *rest.Config) error {
	if err := os.Unsetenv("PULUMI_CONFIG_PASSPHRASE"); err != nil {
		return err
	}
	bin := s.path("bin")
	if err := os.MkdirAll(bin, 0o700); err != nil {
		return err
	}
	if cluster != nil {
		if err := writeAuthPlugin(bin, cluster); err != nil {
			return err
		}
	}
	if err := os.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH")); err != nil {
		return err
	}
	if officialKubernetes() {
		return s.linkPluginCache()
	}
	return nil
}

// writeAuthPlugin stands in for GKE's credential plugin: it prints the control
// plane's administrator credential.
func writeAuthPlugin(bin string, cluster *rest.Config) error {
	config := rest.CopyConfig(cluster)
	if err := rest.LoadTLSFiles(config); err != nil {
		return err
	}
	credential, err := json.Marshal(clientauth.ExecCredential{
		TypeMeta: metav1.TypeMeta{APIVersion: clientauth.SchemeGroupVersion.String(), Kind: "ExecCredential"},
		Status: &clientauth.ExecCredentialStatus{
			ClientCertificateData: string(config.CertData),
			ClientKeyData:         string(config.KeyData),
		},
	})
	if err != nil {
		return err
	}
	path := filepath.Join(bin, "credential.json")
	if err := renameio.WriteFile(path, credential, 0o600); err != nil {
		return err
	}
	script := fmt.Sprintf("#!/bin/sh\nexec cat '%s'\n", path)
	return renameio.WriteFile(filepath.Join(bin, "gke-gcloud-auth-plugin"), []byte(script), 0o700)
}

// linkPluginCache lets the engine find the plugins that the user's Pulumi has
// installed.
func (s *Sandbox) linkPluginCache() error {
	home := os.Getenv("PULUMI_HOME")
	if home == "" {
		user, err := os.UserHomeDir()
		if err != nil {
			return err
		}
		home = filepath.Join(user, ".pulumi")
	}
	if err := os.MkdirAll(s.path("pulumi"), 0o700); err != nil {
		return err
	}
	err := os.Symlink(filepath.Join(home, "plugins"), s.path("pulumi", "plugins"))
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}
