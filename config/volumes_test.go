package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"persia/config/input"
	"persia/gcp"
	"persia/internal/testkit/advice"
)

var kmsKey = keyIn("us-central1")

// keyIn returns a key in a location of Cloud KMS.
func keyIn(location string) string {
	return "projects/p/locations/" + location + "/keyRings/r/cryptoKeys/k"
}

var list = field.NewPath("persia:storage")

// created describes a cluster that the stack creates.
var created = &Site{Project: "my-project", Cluster: Cluster{Region: "us-central1", Zones: []string{"us-central1-a", "us-central1-b"}}}

// volumeLoad decodes and resolves volumes.
func volumeLoad(t *testing.T, text string, site *Site) ([]Volume, *input.Problems) {
	t.Helper()
	json, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	var volumes []Volume
	p := &input.Problems{}
	input.Decode(p, list, input.ParseJSON(string(json)), &volumes)
	for i := range volumes {
		volumes[i].resolve(site)
	}
	return volumes, p
}

// problem returns the problems of volumes that no pod mounts, or that users mount.
func problem(t *testing.T, text string, site *Site, users volumeUsers) error {
	t.Helper()
	volumes, p := volumeLoad(t, text, site)
	checkVolumeList(p, list, volumes, site, func(string) volumeUsers { return users })
	p.Advise(func(input.Edits) *input.Problems { return &input.Problems{} })
	return p.Err()
}

// refused asserts that there is one problem, of some words, and that following its advice solves it.
func refused(t *testing.T, text string, site *Site, users volumeUsers, want string) {
	t.Helper()
	err := problem(t, text, site, users)
	require.ErrorContains(t, err, want)
	assert.Equal(t, 1, strings.Count(err.Error(), "\n"), "one mistake, one problem: %s", err)
	line := strings.Split(err.Error(), "\n")[1]
	path, _, _ := strings.Cut(line, ": ")
	advice.Follow(t, path, line, nil, func(edits map[string]any) (int, string) {
		var volumes any
		require.NoError(t, yaml.Unmarshal([]byte(text), &volumes))
		keys := input.Values{list.String(): volumes}
		users := users
		for path, value := range edits {
			if strings.HasSuffix(path, ".readOnly") {
				users.ReadOnly = true // every mount
			} else {
				keys.Set(path, value)
			}
		}
		edited, err := yaml.Marshal(keys[list.String()])
		require.NoError(t, err)
		if err := problem(t, string(edited), site, users); err != nil {
			return strings.Count(err.Error(), "\n"), err.Error()
		}
		return 0, ""
	})
}

// over returns a volume with a source.
func over(source string) string { return "[{name: b, size: 1Ti, " + source + "}]" }

// sized returns a volume with a size and a source.
func sized(size, source string) string { return "[{name: b, size: " + size + ", " + source + "}]" }

func TestRefused(t *testing.T) {
	existing := &Site{Cluster: Cluster{Existing: &ExistingCluster{}}}
	nfs := "nfs: {server: nfs, path: /a}"
	for name, test := range map[string]struct {
		volumes string
		site    *Site
		want    string
	}{
		"no name":                 {volumes: "[{size: 1Ti, " + nfs + "}]", want: "[0].name: Required value: write a name"},
		"no size":                 {volumes: "[{name: b, " + nfs + "}]", want: "[0].size: Required value: write a quantity like 10Gi"},
		"size of nothing":         {volumes: sized("'0'", nfs), want: `[0].size: Invalid value: "0": must be a quantity from 1Mi`},
		"size of two exbibytes":   {volumes: sized("2Ei", nfs), want: `[0].size: Invalid value: "2Ei": must be a quantity from 1Mi to 1Ei`},
		"no source":               {volumes: "[{name: b, size: 1Ti}]", want: "[0].gcsFuse: Required value: write one source"},
		"two sources":             {volumes: over(nfs + ", csi: {driver: d, volumeHandle: h}"), want: "[0].csi: nfs is already set; remove one of them"},
		"access mode twice":       {volumes: over(nfs + ", accessModes: [ReadOnlyMany, ReadOnlyMany]"), want: "[0].accessModes[1]: Duplicate value"},
		"no driver that deletes":  {volumes: over(nfs + ", reclaimPolicy: Delete"), want: "applies only to disks, Filestore and CSI volumes"},
		"created, and deleted":    {volumes: over("filestore: {instance: fs, create: {}}, reclaimPolicy: Delete"), want: "[0].reclaimPolicy: Invalid value: \"Delete\": applies only to disks, Filestore and CSI volumes that the stack does not create; remove it, and write create.deleteWithStack"},
		"label invalid":           {volumes: over(nfs + ", labels: {team: a b}"), want: `[0].labels[team]: Invalid value: "a b"`},
		"name twice":              {volumes: "[{name: a, size: 1Ti, " + nfs + "}, {name: a, claim: c, size: 1Ti, nfs: {server: nfs, path: /b}}]", want: "[1].name: Duplicate value: \"a\": is already used by persia:storage[0]"},
		"claim twice":             {volumes: "[{name: a, claim: c, size: 1Ti, " + nfs + "}, {name: b, claim: c, size: 1Ti, nfs: {server: nfs, path: /b}}]", want: "[1].claim: Duplicate value: \"c\": is already used by persia:storage[0]"},
		"directory twice":         {volumes: "[{name: a, size: 1Ti, " + nfs + "}, {name: b, size: 1Ti, " + nfs + "}]", want: "[1]: Duplicate value: \"nfs://nfs/a\": is already at persia:storage[0]"},
		"share twice":             {volumes: "[{name: a, size: 1Ti, filestore: {instance: fs, location: us-central1-a, share: s}}, {name: b, size: 1Ti, filestore: {instance: fs, location: us-central1-a, share: s}}]", want: "modeInstance/us-central1-a/fs/s"},
		"disk twice":              {volumes: "[{name: a, size: 1Ti, persistentDisk: {disk: d, zones: [us-central1-a]}}, {name: b, size: 1Ti, persistentDisk: {disk: d, zones: [us-central1-a]}}]", want: "projects/my-project/zones/us-central1-a/disks/d"},
		"CSI volume twice":        {volumes: "[{name: a, size: 1Ti, csi: {driver: d, volumeHandle: h}}, {name: b, size: 1Ti, csi: {driver: d, volumeHandle: h}}]", want: "d h"},
		"system directory":        {volumes: over("hostPath: {path: /var/lib/kubelet/a}"), want: `[0].hostPath.path: Invalid value: "/var/lib/kubelet/a": overlaps with /var/lib/kubelet, which belongs to the node; use your own directory, like /var/lib/data`},
		"all of /var":             {volumes: over("hostPath: {path: /var}"), want: "overlaps with /var/run"},
		"relative directory":      {volumes: over("hostPath: {path: data}"), want: `"data": must be absolute; write /data`},
		"NFS server":              {volumes: over("nfs: {server: nfs server, path: /a}"), want: `[0].nfs.server: Invalid value: "nfs server"`},
		"NFS path":                {volumes: over("nfs: {server: nfs, path: a}"), want: "write /a"},
		"iSCSI name":              {volumes: over("iscsi: {targetPortal: 10.0.0.3, iqn: target, lun: 0}"), want: "[0].iscsi.iqn: Invalid value"},
		"iSCSI portal":            {volumes: over("iscsi: {targetPortal: a b, iqn: 'iqn.2001-04.com.example:a', lun: 0}"), want: "[0].iscsi.targetPortal: Invalid value"},
		"CSI driver with a type":  {volumes: over("csi: {driver: pd.csi.storage.gke.io, volumeHandle: h}"), want: "write persistentDisk"},
		"instance without place":  {volumes: over("filestore: {instance: fs, share: s}"), want: "[0].filestore.location: Required value"},
		"instance without share":  {volumes: over("filestore: {instance: fs, location: us-central1-a}"), want: "[0].filestore.share: Required value"},
		"instance's address":      {volumes: over("filestore: {instance: fs, location: us-central1-a, share: s, ip: fs}"), want: "[0].filestore.ip: Invalid value"},
		"instance between ranges": {volumes: sized("10000Gi", "filestore: {instance: fs, create: {}}"), want: "write 9984Gi or 10240Gi"},
		"instance too small":      {volumes: over("filestore: {instance: fs, create: {tier: BASIC_SSD}}"), want: "tier BASIC_SSD; write 2560Gi"},
		"instance too large":      {volumes: sized("11Ti", "filestore: {instance: fs, create: {tier: ENTERPRISE}}"), want: "write 10240Gi"},
		"address of what comes":   {volumes: over("filestore: {instance: fs, ip: 10.0.0.2, create: {}}"), want: "Filestore chooses the address"},
		"bucket with a scheme":    {volumes: over("gcsFuse: {bucket: 'gs://b/'}"), want: "without gs://"},
		"sidecar of nothing":      {volumes: over("gcsFuse: {bucket: other, sidecar: {cpu: '0'}}"), want: "[0].gcsFuse.sidecar.cpu: Invalid value"},
		"rule for names":          {volumes: over("gcsFuse: {bucket: other, create: {versioning: true, deleteNoncurrent: {prefix: checkpoints, afterDays: 30}}}"), want: "must be a directory in the bucket"},
		"another bucket's data":   {volumes: over("gcsFuse: {bucket: other, create: {deleteWithStack: some}}"), want: `[0].gcsFuse.create.deleteWithStack: Invalid value: "some": must repeat the name of the storage that is deleted with all checkpoints; write "other", or remove it`},
		"another instance's data": {volumes: over("filestore: {instance: fs, create: {deleteWithStack: f}}"), want: `write "fs"`},
		"another disk's data":     {volumes: over("persistentDisk: {disk: d, create: {deleteWithStack: e}}"), want: `write "d"`},
		"disk without a zone":     {volumes: over("persistentDisk: {disk: d}"), want: "[0].persistentDisk.zones: Required value"},
		"disk of three zones":     {volumes: over("persistentDisk: {disk: d, zones: [us-central1-a, us-central1-b, us-central1-c]}"), want: "one zone, or the two"},
		"disk elsewhere":          {volumes: over("persistentDisk: {disk: d, zones: [us-east1-b]}"), want: "must be a zone of the region us-central1"},
		"disk of another project": {volumes: over("persistentDisk: {disk: d, project: other, create: {}}"), want: "remove project"},
		"disk for many writers":   {volumes: over("persistentDisk: {disk: d, zones: [us-central1-a]}, accessModes: [ReadWriteMany]"), want: "[0].accessModes[0]: Invalid value: \"ReadWriteMany\": is not supported by a disk"},
		"disk too small":          {volumes: sized("5Gi", "persistentDisk: {disk: d, create: {}}"), want: `[0].size: Invalid value: "5Gi": must be from 10Gi to 65536Gi, the sizes of such a disk of type pd-balanced`},
		"disk too large":          {volumes: sized("65Ti", "persistentDisk: {disk: d, create: {type: hyperdisk-balanced}}"), want: "must be from 4Gi to 65536Gi"},
		"regional disk too small": {volumes: sized("100Gi", "persistentDisk: {disk: d, zones: [us-central1-a, us-central1-b], create: {type: pd-standard}}"), want: "must be from 200Gi"},
		"regional disk of none":   {volumes: over("persistentDisk: {disk: d, zones: [us-central1-a, us-central1-b], create: {type: hyperdisk-balanced}}"), want: `[0].persistentDisk.create.type: Invalid value: "hyperdisk-balanced": has no regional disks; write pd-balanced or pd-ssd, or one zone`},
		"key of a bucket":         {volumes: over("gcsFuse: {bucket: other}, mountOptions: [implicit-dirs, key-file=/etc/key.json]"), want: `[0].mountOptions[1]: Invalid value: "key-file=/etc/key.json": is discarded by GKE's driver, which sets the option itself; remove it: pods have the access of their job's identity`},
		"cache's directory":       {volumes: over("gcsFuse: {bucket: other}, mountOptions: ['cache-dir:/cache']"), want: "is discarded by GKE's driver"},
		"folder of a bucket":      {volumes: over("gcsFuse: {bucket: 'gs://other/runs/a/'}"), want: `"gs://other/runs/a/": must be only the name of a bucket; write other, and only-dir=runs/a in mountOptions of the volume`},
		"bucket and a slash":      {volumes: over("gcsFuse: {bucket: other/}"), want: "must be only the name of a bucket, without gs://"},
		"create for others":       {volumes: over("gcsFuse: {bucket: other, create: {}}"), site: existing, want: "[0].gcsFuse.create: on an existing cluster, the stack creates nothing"},
		"disk of no project":      {volumes: over("persistentDisk: {disk: d, zones: [us-central1-a]}"), site: existing, want: "[0].persistentDisk.project: Required value"},
		"instance of no address":  {volumes: over("filestore: {instance: fs, location: us-central1-a, share: s}"), site: existing, want: "[0].filestore.ip: Required value"},
	} {
		t.Run(name, func(t *testing.T) {
			stack := created
			if test.site != nil {
				stack = test.site
			}
			refused(t, test.volumes, stack, volumeUsers{ReadOnly: true}, test.want)
		})
	}
}

func TestAccepted(t *testing.T) {
	for name, volumes := range map[string]string{
		"NFS, its root":         over("nfs: {server: 10.0.0.2, path: /}"),
		"iSCSI":                 over("iscsi: {targetPortal: '10.0.0.3:3260', iqn: 'iqn.2001-04.com.example:a', lun: 0}"),
		"any driver":            over("csi: {driver: d.example.com, volumeHandle: h, attributes: {a: b}}, reclaimPolicy: Delete"),
		"Filestore by its name": over("filestore: {instance: fs, location: us-central1-a, share: vol1}"),
		"largest Filestore":     sized("100Ti", "filestore: {instance: fs, create: {}}"),
		"regional Filestore":    over("filestore: {instance: fs, create: {tier: REGIONAL, kmsKey: " + kmsKey + "}}"),
		"old versions":          over("gcsFuse: {bucket: other, create: {softDeleteDays: 0, versioning: true, kmsKey: " + kmsKey + ", deleteNoncurrent: {prefix: checkpoints/, afterDays: 30, newerVersions: 0}}}"),
		"key in Europe":         over("gcsFuse: {bucket: other, create: {location: EU, kmsKey: " + keyIn("europe") + "}}"),
		"key in the US":         over("gcsFuse: {bucket: other, create: {location: us, kmsKey: " + keyIn("us") + "}}"),
		"key in Asia":           over("gcsFuse: {bucket: other, create: {location: ASIA, kmsKey: " + keyIn("asia") + "}}"),
		"key in two regions":    over("gcsFuse: {bucket: other, create: {location: NAM4, kmsKey: " + keyIn("nam4") + "}}"),
		"data that may go":      over("gcsFuse: {bucket: other, create: {deleteWithStack: other}}"),
		"regional disk":         over("persistentDisk: {disk: d, zones: [us-central1-a, us-central1-b], create: {}}"),
	} {
		t.Run(name, func(t *testing.T) {
			assert.NoError(t, problem(t, volumes, created, volumeUsers{ReadOnly: true}))
		})
	}
}

// TestUsers checks that pods mount only storage that they can reach.
func TestUsers(t *testing.T) {
	nodes := []int{1, 2}
	one := Pool{Name: "gpu", Nodes: &nodes[0], Zones: []string{"us-central1-a"}, MachineType: "g2-standard-32", ImageType: gcp.ImageCOS}
	two, ubuntu, elsewhere := one, one, one
	two.Nodes = &nodes[1]
	ubuntu.ImageType = gcp.ImageUbuntu
	elsewhere.Zones = []string{"us-central1-b"}
	const disk = "persistentDisk: {disk: d, zones: [us-central1-a], create: {type: pd-ssd}}"
	for name, test := range map[string]struct {
		volumes string
		users   volumeUsers
		want    string
	}{
		"directory that the node can make":    {over("hostPath: {path: /var/lib/persia}"), volumeUsers{Pools: []Pool{one}}, ""},
		"directory of Ubuntu":                 {over("hostPath: {path: /mnt/data}"), volumeUsers{Pools: []Pool{ubuntu}}, ""},
		"directory on a read-only root":       {over("hostPath: {path: /mnt/data}"), volumeUsers{Pools: []Pool{one}}, `[0].hostPath.path: Invalid value: "/mnt/data": cannot be created on the nodes of pool gpu, because the root file system of Container-Optimized OS is read-only; use a directory below /home, /mnt/disks, /mnt/stateful_partition, /run, /tmp or /var, like /var/lib/data`},
		"directory of two nodes":              {over("hostPath: {path: /var/lib/persia}"), volumeUsers{Pools: []Pool{two}}, "is a different directory on each node, but the pods that mount the volume run on up to 2 nodes (pools gpu)"},
		"disk of one node":                    {over(disk), volumeUsers{Pools: []Pool{one}}, ""},
		"disk of two nodes":                   {over(disk), volumeUsers{Pools: []Pool{two}}, "[0].accessModes: Invalid value: [\"ReadWriteOnce\"]: allows one node to write, and the roles that mount the volume run on up to 2 nodes (pools gpu); use filestore or gcsFuse"},
		"disk that two nodes read":            {over(disk + ", accessModes: [ReadOnlyMany]"), volumeUsers{Pools: []Pool{two}, ReadOnly: true}, ""},
		"disk in another zone":                {over(disk), volumeUsers{Pools: []Pool{elsewhere}}, "pool gpu, whose roles mount the volume, also has nodes in us-central1-b"},
		"disk that the machine does not take": {over("persistentDisk: {disk: d, zones: [us-central1-a], create: {type: hyperdisk-balanced}}"), volumeUsers{Pools: []Pool{one}}, "is not supported by g2-standard-32, the machine type of pool gpu, whose pods mount the volume; write pd-balanced or pd-ssd"},
		"read by many and written too":        {over("nfs: {server: nfs, path: /a}, accessModes: [ReadOnlyMany]"), volumeUsers{Pools: []Pool{two}}, "write readOnly: true in every mount"},
		"share for one node":                  {over("nfs: {server: nfs, path: /a}, accessModes: [ReadWriteOnce]"), volumeUsers{Pools: []Pool{two}}, "write [ReadWriteMany]"},
		"bucket of two nodes":                 {over("gcsFuse: {bucket: other}"), volumeUsers{Pools: []Pool{two}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if test.want == "" {
				require.NoError(t, problem(t, test.volumes, created, test.users))
				return
			}
			refused(t, test.volumes, created, test.users, test.want)
		})
	}
}

func TestVolumeDefaults(t *testing.T) {
	one := func(text string) Volume {
		volumes, _ := volumeLoad(t, over(text), created)
		return volumes[0]
	}
	instance := one("filestore: {instance: fs, create: {}}")
	assert.Equal(t, Filestore{Instance: "fs", Location: "us-central1-a", Share: "checkpoints", Create: &CreateFilestore{Tier: "ZONAL"}}, *instance.Filestore)
	assert.Equal(t, "b-claim", instance.Claim)
	assert.Equal(t, corev1.PersistentVolumeReclaimRetain, instance.ReclaimPolicy)
	assert.Equal(t, "us-central1", one("filestore: {instance: fs, create: {tier: ENTERPRISE}}").Filestore.Location)

	bucket := one("gcsFuse: {bucket: other, create: {versioning: true, deleteNoncurrent: {prefix: a/, afterDays: 30}}}")
	assert.Equal(t, CreateBucket{Location: "US-CENTRAL1", Versioning: true, SoftDeleteDays: 7,
		DeleteNoncurrent: &DeleteNoncurrent{Prefix: "a/", AfterDays: 30, NewerVersions: 1}}, *bucket.GCSFuse.Create)
	assert.Equal(t, Sidecar{CPU: "250m", Memory: "320Mi", EphemeralStorage: "5Gi"}, bucket.GCSFuse.Sidecar)
	assert.Zero(t, one("gcsFuse: {bucket: other, create: {softDeleteDays: 0}}").GCSFuse.Create.SoftDeleteDays)

	disk := one("persistentDisk: {disk: d, create: {}}")
	assert.Equal(t, PersistentDisk{Disk: "d", Zones: []string{"us-central1-a"}, Project: "my-project", FSType: "ext4", Create: &CreateDisk{Type: "pd-balanced"}}, *disk.PersistentDisk)
	regional := one("persistentDisk: {disk: d, zones: [us-central1-a, us-central1-b], create: {}}")
	assert.Equal(t, "projects/my-project/regions/us-central1/disks/d", regional.Source().String())

	for source, mode := range map[string]corev1.PersistentVolumeAccessMode{
		"hostPath: {path: /a}":                                     corev1.ReadWriteOnce,
		"iscsi: {targetPortal: p, iqn: i, lun: 0}":                 corev1.ReadWriteOnce,
		"persistentDisk: {disk: d, zones: [a]}":                    corev1.ReadWriteOnce,
		"nfs: {server: nfs, path: /a}":                             corev1.ReadWriteMany,
		"filestore: {instance: fs}":                                corev1.ReadWriteMany,
		"gcsFuse: {bucket: other}":                                 corev1.ReadWriteMany,
		"csi: {driver: d, volumeHandle: h}":                        corev1.ReadWriteMany,
		"nfs: {server: s, path: /a}, accessModes: [ReadWriteOnce]": corev1.ReadWriteOnce,
	} {
		assert.Equal(t, []corev1.PersistentVolumeAccessMode{mode}, one(source).AccessModes, source)
	}
}

// TestDeletesData checks that data is deleted only if the stack file says so.
func TestDeletesData(t *testing.T) {
	for text, want := range map[string]bool{
		"gcsFuse: {bucket: other}":                                             false,
		"gcsFuse: {bucket: other, create: {}}":                                 false,
		"gcsFuse: {bucket: other, create: {deleteWithStack: other}}":           true,
		"filestore: {instance: fs, create: {deleteWithStack: fs}}":             true,
		"persistentDisk: {disk: d, create: {}}":                                false,
		"persistentDisk: {disk: d, create: {deleteWithStack: d}}":              true,
		"csi: {driver: d.example.com, volumeHandle: h}, reclaimPolicy: Delete": true,
		"hostPath: {path: /var/lib/persia}":                                    false,
	} {
		volumes, p := volumeLoad(t, over(text), created)
		require.NoError(t, p.Err())
		assert.Equal(t, want, volumes[0].DeletesData(), text)
	}
}
