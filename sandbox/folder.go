package sandbox

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientauth "k8s.io/client-go/pkg/apis/clientauthentication/v1beta1"
	"k8s.io/client-go/rest"

	"persia/sandbox/files"
)

// folder has the paths of the files of a stack's sandbox.
type folder struct {
	// dir contains the folders of all stacks.
	dir   string
	stack string
}

// reserved lists the folders next to the stacks' own. Down removes the folder of a stack,
// which must not be one of these.
var reserved = []string{"bin", "e2e", "images", "rehearsal", "storage"}

// path returns a path in the stack's own folder.
func (f folder) path(elements ...string) string {
	return filepath.Join(append([]string{f.dir, f.stack}, elements...)...)
}

// storage returns the folder of the simulated Google Cloud's resources that outlive their
// stacks. It exists while there are any.
func (f folder) storage() string { return filepath.Join(f.dir, "storage") }

// State returns the state of the stack.
func (f folder) State() State { return State{f.path("state"), f.stack} }

// realNode returns the file that names the real node's pool.
func (f folder) realNode() string { return f.path("real-node.json") }

// passphrase returns the secret that encrypts the stack's state, and creates it the first time.
func (f folder) passphrase() (string, error) {
	path := f.path("passphrase")
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		text = []byte(rand.Text())
		err = files.Write(path, text, 0o600)
	}
	return string(text), err
}

// bin returns the folder of the programs that replace the user's.
func (f folder) bin() string { return f.path("bin") }

// writeAuthPlugin writes a gke-gcloud-auth-plugin that prints the administrator's credential for the control plane.
func (f folder) writeAuthPlugin(cluster *rest.Config) error {
	path := filepath.Join(f.bin(), "credential.json")
	if err := files.WriteJSON(path, clientauth.ExecCredential{
		TypeMeta: metav1.TypeMeta{APIVersion: clientauth.SchemeGroupVersion.String(), Kind: "ExecCredential"},
		Status: &clientauth.ExecCredentialStatus{
			ClientCertificateData: string(cluster.CertData),
			ClientKeyData:         string(cluster.KeyData),
		},
	}, 0o600); err != nil {
		return err
	}
	script := fmt.Sprintf("#!/bin/sh\nexec cat '%s'\n", path)
	return files.Write(filepath.Join(f.bin(), "gke-gcloud-auth-plugin"), []byte(script), 0o700)
}

// withoutLogs writes a file where Pulumi would create the folder of its logs. Pulumi then
// writes no logs, which take half of the engine's processor time to compress and encrypt.
// No setting turns them off (pkg/logging/encrypted.go of Pulumi 3.250).
func (f folder) withoutLogs() error {
	path := f.path("pulumi", "logs")
	if info, err := os.Lstat(path); err == nil && info.IsDir() {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return files.Write(path, []byte("The sandbox keeps no logs of Pulumi.\n"), 0o600)
}
