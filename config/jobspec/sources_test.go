package jobspec_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"persia/internal/stacktest"
)

// mountedVolume gives the job of the base stack a volume with a source.
func mountedVolume(source edits) edits {
	volume := edits{"name": "data"}
	for name, value := range source {
		volume[name] = value
	}
	return edits{"persia:jobs[0].volumes": []any{volume},
		"persia:jobs[0].dataloader.volumeMounts": []any{edits{"name": "data", "mountPath": "/data"}}}
}

func claim(spec edits) edits {
	whole := edits{"accessModes": []any{"ReadWriteOnce"}, "resources": edits{"requests": edits{"storage": "1Gi"}}}
	for name, value := range spec {
		whole[name] = value
	}
	return edits{"ephemeral": edits{"volumeClaimTemplate": edits{"spec": whole}}}
}

func projected(sources ...any) edits { return edits{"projected": edits{"sources": sources}} }

// TestSourcesRefused checks the messages for sources that the API server would refuse.
func TestSourcesRefused(t *testing.T) {
	const volume = "persia:jobs[0].volumes[0]."
	mount := func(more edits) edits {
		whole := edits{"name": "data", "mountPath": "/data"}
		for name, value := range more {
			whole[name] = value
		}
		return mountedVolume(edits{"emptyDir": edits{}}).And(edits{"persia:jobs[0].dataloader.volumeMounts": []any{whole}})
	}
	const mounted = "persia:jobs[0].dataloader.volumeMounts[0]."
	from := func(source edits) edits {
		return edits{"persia:jobs[0].env": []any{edits{"name": "A", "valueFrom": source}}}
	}
	const env = "persia:jobs[0].env[0].valueFrom."
	stacktest.Refused(t, []stacktest.Refusal{
		{"another cloud's disk", mountedVolume(edits{"awsElasticBlockStore": edits{"volumeID": "a"}}), volume + "awsElasticBlockStore", []string{"GKE nodes cannot mount", "persistentVolumeClaim"}},
		{"a plugin that is gone", mountedVolume(edits{"glusterfs": edits{"endpoints": "a", "path": "b"}}), volume + "glusterfs", []string{"GKE nodes cannot mount"}},
		{"directory below 0", mountedVolume(edits{"emptyDir": edits{"sizeLimit": "-1Gi"}}), volume + "emptyDir.sizeLimit", []string{`"-1Gi"`, "no limit"}},
		{"medium unknown", mountedVolume(edits{"emptyDir": edits{"medium": "HugePages"}}), volume + "emptyDir.medium", []string{"Memory"}},
		{"kind of directory unknown", mountedVolume(edits{"hostPath": edits{"path": "/var/lib/data", "type": "Folder"}}), volume + "hostPath.type", []string{"DirectoryOrCreate"}},
		{"server missing", mountedVolume(edits{"nfs": edits{"path": "/a"}}), volume + "nfs.server", []string{"Required"}},
		{"export relative", mountedVolume(edits{"nfs": edits{"server": "a", "path": "b"}}), volume + "nfs.path", []string{"write /b"}},
		{"Secret missing", mountedVolume(edits{"secret": edits{}}), volume + "secret.secretName", []string{"Required"}},
		{"mode too large", mountedVolume(edits{"configMap": edits{"name": "a", "defaultMode": 512}}), volume + "configMap.defaultMode", []string{"512", "from 0 to 511"}},
		{"file outside", mountedVolume(edits{"configMap": edits{"name": "a", "items": []any{edits{"key": "a", "path": "../b"}}}}), volume + "configMap.items[0].path", []string{"without .."}},
		{"field of a pod unknown", mountedVolume(edits{"downwardAPI": edits{"items": []any{edits{"path": "a", "fieldRef": edits{"fieldPath": "spec.nodeName"}}}}}), volume + "downwardAPI.items[0].fieldRef.fieldPath", []string{"metadata.name"}},
		{"two sources of a file", mountedVolume(edits{"downwardAPI": edits{"items": []any{edits{"path": "a"}}}}), volume + "downwardAPI.items[0]", []string{"exactly one"}},
		{"driver missing", mountedVolume(edits{"csi": edits{}}), volume + "csi.driver", []string{"Required"}},
		{"token for a moment", mountedVolume(projected(edits{"serviceAccountToken": edits{"path": "a", "expirationSeconds": 60}})), volume + "projected.sources[0].serviceAccountToken.expirationSeconds", []string{"from 600"}},
		{"path twice", mountedVolume(projected(edits{"serviceAccountToken": edits{"path": "a"}}, edits{"secret": edits{"name": "b", "items": []any{edits{"key": "k", "path": "a"}}}})), volume + "projected.sources[1].secret.items[0].path", []string{"Duplicate"}},
		{"no source", mountedVolume(projected(edits{})), volume + "projected.sources[0]", []string{"0 sources"}},
		{"claim without a size", mountedVolume(claim(edits{"resources": edits{}})), volume + "ephemeral.volumeClaimTemplate.spec.resources.requests[storage]", []string{"Required", "100Gi"}},
		{"claim without a mode", mountedVolume(claim(edits{"accessModes": nil})), volume + "ephemeral.volumeClaimTemplate.spec.accessModes", []string{"Required"}},
		{"claim of a device", mountedVolume(claim(edits{"volumeMode": "Block"})), volume + "ephemeral.volumeClaimTemplate.spec.volumeMode", []string{"Filesystem"}},
		{"claim with a name", mountedVolume(edits{"ephemeral": edits{"volumeClaimTemplate": edits{"metadata": edits{"name": "a"}, "spec": edits{"accessModes": []any{"ReadWriteOnce"}, "resources": edits{"requests": edits{"storage": "1Gi"}}}}}}), volume + "ephemeral.volumeClaimTemplate.metadata", []string{"only labels and annotations"}},
		{"claim with a misspelt annotation", mountedVolume(edits{"ephemeral": edits{"volumeClaimTemplate": edits{"metadata": edits{"annotations": edits{" a": "b"}}, "spec": edits{"accessModes": []any{"ReadWriteOnce"}, "resources": edits{"requests": edits{"storage": "1Gi"}}}}}}), volume + "ephemeral.volumeClaimTemplate.metadata.annotations[ a]", []string{"name part must consist of"}},
		{"image of a volume", mountedVolume(edits{"image": edits{"reference": "a b"}}), volume + "image.reference", []string{"image reference"}},
		{"mounts on the node", mount(edits{"mountPropagation": "Bidirectional"}), mounted + "mountPropagation", []string{"HostToContainer"}},
		{"read-only below what is not", mount(edits{"recursiveReadOnly": "Enabled"}), mounted + "recursiveReadOnly", []string{"readOnly: true"}},
		{"variable of a field unknown", from(edits{"fieldRef": edits{"fieldPath": "spec.bogus"}}), env + "fieldRef.fieldPath", []string{"spec.nodeName"}},
		{"variable of an amount unknown", from(edits{"resourceFieldRef": edits{"resource": "cpu"}}), env + "resourceFieldRef.resource", []string{"limits.cpu"}},
		{"variable in thousandths of bytes", from(edits{"resourceFieldRef": edits{"resource": "limits.memory", "divisor": "1m"}}), env + "resourceFieldRef.divisor", []string{"1Mi"}},
		{"variable of a file", from(edits{"fileKeyRef": edits{"volumeName": "a", "path": "b", "key": "c"}}), env + "fileKeyRef", []string{"secretKeyRef"}},
	})
}

// TestSourcesAccepted checks that valid sources pass.
func TestSourcesAccepted(t *testing.T) {
	for name, source := range map[string]edits{
		"scratch":   {"emptyDir": edits{"sizeLimit": "1Gi", "medium": "Memory"}},
		"directory": {"hostPath": edits{"path": "/var/lib/data", "type": "DirectoryOrCreate"}},
		"settings":  {"configMap": edits{"name": "a", "defaultMode": 292, "items": []any{edits{"key": "a", "path": "b/c"}}}},
		"labels":    {"downwardAPI": edits{"items": []any{edits{"path": "a", "fieldRef": edits{"fieldPath": "metadata.labels['team']"}}}}},
		"claim":     claim(nil),
		"joined":    projected(edits{"secret": edits{"name": "a"}}, edits{"serviceAccountToken": edits{"path": "token"}}),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := stacktest.Load(t, mountedVolume(source))
			require.NoError(t, err)
		})
	}
}
