package persia

import (
	"embed"
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"persia/config"
	"persia/kube"
)

// scriptFiles are the files that every replica starts with: launch.py, the modules that it imports, and the script
// that starts the roles of releases without persia-launcher.
//
//go:embed launch.py entry.py settings.py coordinator.py machine.py memory.py speed.py events.py roster.py record.py ledger.py
//go:embed checkpoints.py server.py link.py checks.py gateway.py processes.py roles.sh
var scriptFiles embed.FS

const (
	launchDirectory = config.LaunchDirectory
	launchFile      = "launch.py"
	// entryFile runs the script of an nn-worker or a dataloader whose pod PERSIA's operator makes.
	entryFile = launchDirectory + "/entry.py"
	rolesFile = "roles.sh"
	// podState keeps the state of a replica for as long as its pod lives.
	podState = config.StateDirectory
	// coordinatorPort is the port of the coordinator, on the first nn-worker. PERSIA's own servers listen on the next
	// two.
	coordinatorPort = 8886
)

// scripts returns the scripts that containers start with, by file name.
func scripts() map[string]string {
	files := map[string]string{}
	entries, _ := scriptFiles.ReadDir(".") // they are part of the program
	for _, entry := range entries {
		content, _ := scriptFiles.ReadFile(entry.Name())
		files[entry.Name()] = string(content)
	}
	return files
}

// launchCommand runs a command through the start script. Older is nil if images have persia-launcher.
func launchCommand(older *config.Script) []string {
	python := "python3"
	if older != nil {
		python = older.Python
	}
	return []string{python, path.Join(launchDirectory, launchFile)}
}

// startCommand returns the command that the start script runs. $(NAME) comes from the environment.
func startCommand(older *config.Script, kind config.Kind) []string {
	if older != nil {
		return []string{"/bin/bash", path.Join(launchDirectory, rolesFile), kind.Older}
	}
	command := []string{"persia-launcher", kind.Command}
	switch {
	case kind.Server:
		return append(command, "--embedding-config", "$(PERSIA_EMBEDDING_CONFIG)", "--global-config", "$(PERSIA_GLOBAL_CONFIG)",
			"--replica-index", "$(REPLICA_INDEX)", "--replica-size", "$(REPLICA_SIZE)")
	case kind.Name == nnWorker:
		return append(command, "$(PERSIA_NN_WORKER_ENTRY)",
			"--nproc-per-node", "$(NPROC_PER_NODE)", "--nnodes", "$(REPLICA_SIZE)", "--node-rank", "$(REPLICA_INDEX)")
	default:
		return append(command, "$(PERSIA_DATALOADER_ENTRY)", "--replica-index", "$(REPLICA_INDEX)", "--replica-size", "$(REPLICA_SIZE)")
	}
}

// launchName changes with the scripts, so that a changed script reaches only pods that start later. The ConfigMap has
// this name in Pulumi, too: until the end of an update, old and new scripts are both in the cluster and in the state,
// whichever of them the next update asks for.
func launchName() string {
	all, texts := scripts(), strings.Builder{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		texts.WriteString(all[name])
	}
	return "persia-scripts-" + kube.Hash(texts.String())
}

func launchConfigMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: kube.Meta(NamespaceName, launchName(), kube.Labels("launch", launchName())),
		Immutable:  new(true),
		Data:       scripts(),
	}
}

// scriptsVolume returns the volume with the start scripts, and its mount.
func scriptsVolume() (corev1.Volume, corev1.VolumeMount) {
	const name = "launch"
	source := corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: launchName()}}
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{ConfigMap: &source}},
		corev1.VolumeMount{Name: name, MountPath: launchDirectory, ReadOnly: true}
}
