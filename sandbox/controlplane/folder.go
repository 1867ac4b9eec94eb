package controlplane

import "path/filepath"

// folder is the folder of a cluster. It knows the path of each file, and by the paths in command
// lines which processes are the cluster's.
type folder struct{ dir, name string }

// Kubeconfig returns the path of the administrator's kubeconfig. It exists once [Cluster.Start] has succeeded.
func (f folder) Kubeconfig() string { return filepath.Join(f.dir, "kubeconfig") }

// AuditLog returns the path of the API server's audit log: one JSON event per line and request of a service account.
func (f folder) AuditLog() string { return filepath.Join(f.workdir(), "logs", "audit.log") }

// PKI returns the folder of the certificate authority.
func (f folder) PKI() string { return filepath.Join(f.workdir(), "pki") }

// Proxy returns the socket through which the API server reaches Services and nodes.
func (f folder) Proxy() string { return filepath.Join(f.dir, "proxy") }

func (f folder) lockFile() string   { return filepath.Join(f.dir, "lock") }
func (f folder) configFile() string { return filepath.Join(f.dir, "kwokctl.yaml") }

// stubs returns the only folder on kwokctl's PATH.
func (f folder) stubs() string { return filepath.Join(f.dir, "stubs") }

// kwokDir is kwokctl's folder, and workdir its folder of the cluster.
func (f folder) kwokDir() string { return filepath.Join(f.dir, "kwok") }
func (f folder) workdir() string { return filepath.Join(f.kwokDir(), "clusters", f.name) }

func (f folder) kwokctlKubeconfig() string { return filepath.Join(f.workdir(), "kubeconfig.yaml") }

func (f folder) binary(component string) string {
	return filepath.Join(f.workdir(), "bin", component)
}

func (f folder) log(component string) string {
	return filepath.Join(f.workdir(), "logs", component+".log")
}
