package storage

import (
	"cmp"
	"encoding/json"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config"
	"persia/internal/testkit"
)

// TestPairs checks that the stack recreates a volume whose claim is gone, once.
func TestPairs(t *testing.T) {
	volume := resource.URN("urn:pulumi:dev::persia::persia:storage:Volume$kubernetes:core/v1:PersistentVolume::checkpoints")
	claim := resource.URN("urn:pulumi:dev::persia::persia:storage:Volume$kubernetes:core/v1:PersistentVolumeClaim::checkpoints")
	labelled := func(generation string) map[string]any {
		return map[string]any{"metadata": map[string]any{"labels": map[string]any{generationLabel: generation}}}
	}
	for name, test := range map[string]struct {
		resources  map[resource.URN]map[string]any
		generation string
		replaced   bool
	}{
		"nothing":                {nil, "", false},
		"a pair":                 {map[resource.URN]map[string]any{volume: {}, claim: {}}, "", false},
		"a claim alone":          {map[resource.URN]map[string]any{claim: {}}, "", false},
		"a volume alone":         {map[resource.URN]map[string]any{volume: {}}, "1", true},
		"a renewed pair":         {map[resource.URN]map[string]any{volume: labelled("1"), claim: {}}, "1", false},
		"a renewed volume alone": {map[resource.URN]map[string]any{volume: labelled("1")}, "2", true},
		"the volume of another": {map[resource.URN]map[string]any{
			"urn:pulumi:dev::persia::kubernetes:core/v1:PersistentVolume::checkpoints": {}}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			object := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}}}
			options := testkit.Must(pulumi.NewResourceOptions(Pairs(test.resources)["checkpoints"].renew(object)...))(t)
			assert.Equal(t, test.generation, object.Labels[generationLabel])
			var replacing []string
			if test.replaced {
				replacing = []string{"metadata"} // has the label
			}
			assert.ElementsMatch(t, replacing, options.ReplaceOnChanges)
			assert.Equal(t, test.replaced, options.DeleteBeforeReplace, "two volumes of a name cannot be")
		})
	}
}

// TestCheckPairs edits the volume of the pair checkpoints in the state. An edit that would replace one half is refused.
func TestCheckPairs(t *testing.T) {
	const elsewhere = "persia:storage[0]: Kubernetes cannot change where the volume checkpoints is"
	const modes, named = "persia:storage[0]: the access modes are", `{"metadata": {"name": "workspace"}}`
	type volume = config.Volume
	type list = []corev1.PersistentVolumeAccessMode
	export := volume{Sources: config.Sources{NFS: &config.NFS{Server: "10.0.0.9", Path: "/exports"}}}
	target := volume{Sources: config.Sources{ISCSI: &config.ISCSI{TargetPortal: "10.0.0.3:3260", IQN: "iqn.2001-04.com.example:a"}}}
	share := volume{Sources: config.Sources{Filestore: &config.Filestore{Location: "us-central1-a", Instance: "fs", Share: "vol1"}}}
	shareOf := func(name string) string {
		return `{"csi": {"driver": "filestore.csi.storage.gke.io", "volumeHandle": "` + share.Filestore.Handle() +
			`", "volumeAttributes": {"ip": "10.9.0.2", "volume": "` + name + `"}}}`
	}
	one, both := `{"spec": {"accessModes": ["ReadWriteMany"]}}`, `{"spec": {"accessModes": ["ReadOnlyMany", "ReadWriteMany"]}}`
	for name, test := range map[string]struct {
		// spec is the specification of the volume, and claim is the claim, if there is one.
		spec, claim string
		now         volume
		says        string
	}{
		"the same export":    {`{"nfs": {"server": "10.0.0.9", "path": "/exports"}}`, `{}`, export, ""},
		"another server":     {`{"nfs": {"server": "10.0.0.8", "path": "/exports"}}`, `{}`, export, elsewhere},
		"another kind":       {`{"hostPath": {"path": "/mnt", "type": "DirectoryOrCreate"}}`, `{}`, export, elsewhere},
		"the same target":    {`{"iscsi": {"targetPortal": "10.0.0.3:3260", "iqn": "iqn.2001-04.com.example:a", "lun": 0, "iscsiInterface": "default"}}`, `{}`, target, ""},
		"a share":            {shareOf("vol1"), `{}`, share, ""},
		"another share":      {shareOf("vol2"), `{}`, share, elsewhere},
		"an unreadable spec": {`"[secret]"`, `{}`, export, ""},

		"the same claim":                {`{}`, named, volume{Claim: "workspace"}, ""},
		"another claim":                 {`{}`, named, volume{Claim: "other"}, "persia:storage[0]: the volume checkpoints has the claim workspace in the cluster"},
		"a renamed volume":              {`{}`, named, volume{Name: "other", Claim: "workspace"}, "persia:storage[0]: the claim workspace is in the cluster, as the one of the volume checkpoints"},
		"a renamed volume, and a claim": {`{}`, named, volume{Name: "other", Claim: "other"}, ""},
		"a volume without its claim":    {`{"hostPath": {"path": "/mnt"}}`, "", volume{Claim: "other", Sources: export.Sources, AccessModes: list{corev1.ReadWriteMany}}, ""},

		"the same mode": {`{}`, one, volume{AccessModes: list{corev1.ReadWriteMany}}, ""},
		"another mode":  {`{}`, one, volume{AccessModes: list{corev1.ReadWriteOnce}}, modes},
		"one mode more": {`{}`, one, volume{AccessModes: list{corev1.ReadWriteMany, corev1.ReadOnlyMany}}, modes},
		"another order": {`{}`, both, volume{AccessModes: list{corev1.ReadWriteMany, corev1.ReadOnlyMany}}, modes},
	} {
		t.Run(name, func(t *testing.T) {
			resources := map[resource.URN]map[string]any{}
			for kind, text := range map[string]string{"PersistentVolume": `{"spec": ` + test.spec + `}`, "PersistentVolumeClaim": test.claim} {
				if text != "" {
					var outputs map[string]any
					require.NoError(t, json.Unmarshal([]byte(text), &outputs))
					resources[resource.URN("urn:pulumi:dev::persia::persia:storage:Volume$kubernetes:core/v1:"+kind+"::checkpoints")] = outputs
				}
			}
			test.now.Name = cmp.Or(test.now.Name, "checkpoints")
			stored := config.StoredVolume{Volume: test.now, Path: field.NewPath("persia:storage").Index(0)}
			testkit.Fails(t, CheckPairs(Pairs(resources), []config.StoredVolume{stored}), test.says)
		})
	}
}
