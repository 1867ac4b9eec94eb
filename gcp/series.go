package gcp

// series are the machine series that the catalogue knows. A series that is not
// here can still be used: a stack file describes its machines, and writes what is
// otherwise looked up here.
//
// Sources: Compute Engine, "Machine families resource and comparison guide" and the
// page of each family (types, disks, network interface); "About Local SSD disks"
// (numbers of local SSDs); "Spot VMs", limitations; "Allocation quotas"; GKE, "Define
// compact placement for GKE nodes", limitations. X4 is left out: its machines are
// bare metal, and nothing public says what GKE leaves of them to pods.
var series = []Series{
	{
		prefix: "a2-ultragpu", quota: ownQuota, disks: persistent, compact: true,
		types: types(
			withGPUs("1g", 12, 170, 1, "nvidia-a100-80gb"),
			withGPUs("2g", 24, 340, 2, "nvidia-a100-80gb"),
			withGPUs("4g", 48, 680, 4, "nvidia-a100-80gb"),
			withGPUs("8g", 96, 1360, 8, "nvidia-a100-80gb")),
		localSSDs: []localSSDs{{12, []int{1}}, {24, []int{2}}, {48, []int{4}}, {96, []int{8}}}, bundled: true,
	},
	{
		prefix: "a2", quota: ownQuota, disks: persistent, compact: true,
		types: types(
			withGPUs("highgpu-1g", 12, 85, 1, "nvidia-tesla-a100"),
			withGPUs("highgpu-2g", 24, 170, 2, "nvidia-tesla-a100"),
			withGPUs("highgpu-4g", 48, 340, 4, "nvidia-tesla-a100"),
			withGPUs("highgpu-8g", 96, 680, 8, "nvidia-tesla-a100"),
			withGPUs("megagpu-16g", 96, 1360, 16, "nvidia-tesla-a100")),
		localSSDs: []localSSDs{{12, []int{1, 2, 4, 8}}, {24, []int{2, 4, 8}}, {48, []int{4, 8}}, {96, []int{8}}},
	},
	{
		prefix: "a3-ultragpu", quota: sharedQuota, disks: hyperdisk, compact: true, gvnic: gvnicOnly,
		types:     withGPUs("8g", 224, 2952, 8, "nvidia-h200-141gb"),
		localSSDs: []localSSDs{{224, []int{32}}}, bundled: true,
	},
	{
		prefix: "a3", quota: sharedQuota, disks: third, compact: true, gvnic: gvnicOnly,
		types: types(
			withGPUs("highgpu-1g", 26, 234, 1, "nvidia-h100-80gb"),
			withGPUs("highgpu-2g", 52, 468, 2, "nvidia-h100-80gb"),
			withGPUs("highgpu-4g", 104, 936, 4, "nvidia-h100-80gb"),
			withGPUs("highgpu-8g", 208, 1872, 8, "nvidia-h100-80gb"),
			withGPUs("megagpu-8g", 208, 1872, 8, "nvidia-h100-mega-80gb")),
		localSSDs: []localSSDs{{26, []int{2}}, {52, []int{4}}, {104, []int{8}}, {208, []int{16}}}, bundled: true,
	},
	{
		prefix: "a4", quota: familyQuota, disks: hyperdisk, compact: true, gvnic: gvnicOnly,
		types:     withGPUs("highgpu-8g", 224, 3968, 8, "nvidia-b200"),
		localSSDs: []localSSDs{{224, []int{32}}}, bundled: true,
	},
	{
		prefix: "c2", quota: ownQuota, disks: persistent, compact: true,
		types:     each("standard", 4, 4, 8, 16, 30, 60),
		localSSDs: []localSSDs{{8, []int{1, 2, 4, 8}}, {16, []int{2, 4, 8}}, {30, []int{4, 8}}, {60, []int{8}}},
	},
	{
		prefix: "c2d", quota: ownQuota, disks: persistent, compact: true,
		types: types(
			each("highcpu", 2, 2, 4, 8, 16, 32, 56, 112),
			each("highmem", 8, 2, 4, 8, 16, 32, 56, 112),
			each("standard", 4, 2, 4, 8, 16, 32, 56, 112)),
		localSSDs: []localSSDs{{16, []int{1, 2, 4, 8}}, {32, []int{2, 4, 8}}, {56, []int{4, 8}}, {112, []int{8}}},
	},
	{
		prefix: "c3", quota: ownQuota, disks: third, compact: true, gvnic: gvnicOnly,
		types: types(
			each("highcpu", 2, 4, 8, 22, 44, 88, 176),
			each("highmem", 8, 4, 8, 22, 44, 88, 176),
			each("standard", 4, 4, 8, 22, 44, 88, 176)),
	},
	{
		prefix: "c3d", quota: familyQuota, disks: third, compact: true, gvnic: gvnicOnly,
		types: types(
			each("highmem", 8, 4, 8, 16, 30, 60, 90, 180, 360),
			each("standard", 4, 4, 8, 16, 30, 60, 90, 180, 360)),
	},
	{
		prefix: "c4", quota: familyQuota, disks: hyperdisk, compact: true, gvnic: gvnicOnly,
		types: types(
			each("highcpu", 2, 2, 4, 8, 16, 32, 48, 96, 192),
			one("highmem-2", 2, 15), each("highmem", 7.75, 4, 8, 16, 32, 48, 96, 192),
			one("standard-2", 2, 7), each("standard", 3.75, 4, 8, 16, 32, 48, 96, 192)),
	},
	{
		prefix: "c4d", quota: familyQuota, disks: hyperdisk, compact: true, gvnic: gvnicOnly,
		types: types(
			one("highcpu-2", 2, 3), one("highcpu-4", 4, 7), each("highcpu", 1.875, 8, 16, 32, 48, 64, 96, 192, 384),
			one("highmem-2", 2, 15), one("highmem-4", 4, 31), each("highmem", 7.875, 8, 16, 32, 48, 64, 96, 192, 384),
			one("standard-2", 2, 7), one("standard-4", 4, 15), each("standard", 3.875, 8, 16, 32, 48, 64, 96, 192, 384)),
	},
	{
		prefix: "e2", quota: sharedQuota, disks: persistent,
		types: types(
			each("highcpu", 1, 2, 4, 8, 16, 32),
			each("highmem", 8, 2, 4, 8, 16),
			each("standard", 4, 2, 4, 8, 16, 32)),
	},
	{
		prefix: "g2", quota: sharedQuota, disks: []string{PDBalanced, pdSSD}, compact: true,
		types: types(
			withGPUs("standard-4", 4, 16, 1, "nvidia-l4"),
			withGPUs("standard-8", 8, 32, 1, "nvidia-l4"),
			withGPUs("standard-12", 12, 48, 1, "nvidia-l4"),
			withGPUs("standard-16", 16, 64, 1, "nvidia-l4"),
			withGPUs("standard-24", 24, 96, 2, "nvidia-l4"),
			withGPUs("standard-32", 32, 128, 1, "nvidia-l4"),
			withGPUs("standard-48", 48, 192, 4, "nvidia-l4"),
			withGPUs("standard-96", 96, 384, 8, "nvidia-l4")),
		localSSDs: []localSSDs{{16, []int{1}}, {24, []int{2}}, {32, []int{1}}, {48, []int{4}}, {96, []int{8}}},
	},
	{
		prefix: "g4", quota: familyQuota, disks: hyperdisk, gvnic: gvnicOnly,
		types: types(
			withGPUs("standard-48", 48, 180, 1, "nvidia-rtx-pro-6000"),
			withGPUs("standard-96", 96, 360, 2, "nvidia-rtx-pro-6000"),
			withGPUs("standard-192", 192, 720, 4, "nvidia-rtx-pro-6000"),
			withGPUs("standard-384", 384, 1440, 8, "nvidia-rtx-pro-6000")),
		localSSDs: []localSSDs{{48, []int{4}}, {96, []int{8}}, {192, []int{16}}, {384, []int{32}}},
	},
	{
		prefix: "h4d", quota: familyQuota, disks: hyperdisk, gvnic: gvnicOnly,
		types: types(one("standard-192", 192, 720), one("highmem-192", 192, 1488)),
	},
	{
		prefix: "m1", quota: ownQuota, disks: append(persistent, hyperdiskBalanced), gvnic: gvnicNone,
		types: types(
			one("megamem-96", 96, 1433.6),
			one("ultramem-40", 40, 961),
			one("ultramem-80", 80, 1922),
			one("ultramem-160", 160, 3844)),
		localSSDs: []localSSDs{{40, nil}, {80, nil}, {96, []int{1, 2, 3, 4, 5, 6, 7, 8}}},
	},
	{
		prefix: "m2", quota: ownQuota, disks: append(persistent, hyperdiskBalanced), gvnic: gvnicNone, noSpot: true,
		types: types(
			one("hypermem-416", 416, 8832),
			one("megamem-416", 416, 5888),
			one("ultramem-208", 208, 5888),
			one("ultramem-416", 416, 11776)),
	},
	{
		prefix: "m3", quota: ownQuota, disks: third, gvnic: gvnicOnly, noSpot: true,
		types: types(
			one("megamem-64", 64, 976),
			one("megamem-128", 128, 1952),
			one("ultramem-32", 32, 976),
			one("ultramem-64", 64, 1952),
			one("ultramem-128", 128, 3904)),
		localSSDs: []localSSDs{{64, []int{4, 8}}, {128, []int{8}}},
	},
	{
		prefix: "m4", quota: familyQuota, disks: hyperdisk, gvnic: gvnicOnly,
		types: types(
			one("hypermem-16", 16, 248),
			one("hypermem-32", 32, 496),
			one("hypermem-64", 64, 992),
			one("megamem-28", 28, 372),
			one("megamem-56", 56, 744),
			one("megamem-112", 112, 1488),
			one("megamem-224", 224, 2976),
			one("ultramem-56", 56, 1488),
			one("ultramem-112", 112, 2976),
			one("ultramem-224", 224, 5952)),
	},
	{
		prefix: "n1", quota: sharedQuota, disks: persistent,
		types: types(
			each("highmem", 6.5, 2, 4, 8, 16, 32, 64, 96),
			each("standard", 3.75, 1, 2, 4, 8, 16, 32, 64, 96)),
		localSSDs: []localSSDs{{96, []int{1, 2, 3, 4, 5, 6, 7, 8, 16, 24}}},
	},
	{
		prefix: "n2", quota: ownQuota, disks: persistent, compact: true,
		types: types(
			each("highcpu", 1, 2, 4, 8, 16, 32, 48, 64, 80, 96),
			each("highmem", 8, 2, 4, 8, 16, 32, 48, 64, 80, 96), one("highmem-128", 128, 864),
			each("standard", 4, 2, 4, 8, 16, 32, 48, 64, 80, 96, 128)),
		localSSDs: []localSSDs{{10, []int{1, 2, 4, 8, 16, 24}}, {20, []int{2, 4, 8, 16, 24}}, {40, []int{4, 8, 16, 24}}, {80, []int{8, 16, 24}}, {128, []int{16, 24}}},
	},
	{
		prefix: "n2d", quota: ownQuota, disks: persistent, compact: true,
		types: types(
			each("highmem", 8, 2, 4, 8, 16, 32, 48, 64, 80, 96),
			each("standard", 4, 2, 4, 8, 16, 32, 48, 64, 80, 96, 128, 224)),
		localSSDs: []localSSDs{{16, []int{1, 2, 4, 8, 16, 24}}, {48, []int{2, 4, 8, 16, 24}}, {80, []int{4, 8, 16, 24}}, {224, []int{8, 16, 24}}},
	},
	{
		prefix: "n4", quota: familyQuota, disks: hyperdisk, gvnic: gvnicOnly,
		types: types(
			each("highcpu", 2, 2, 4, 8, 16, 32, 48, 64, 80),
			each("highmem", 8, 2, 4, 8, 16, 32, 48, 64, 80),
			each("standard", 4, 2, 4, 8, 16, 32, 48, 64, 80)),
	},
}

// The types of boot disk that series have in common.
var (
	persistent = []string{PDBalanced, pdSSD, pdStandard}
	// third are the disks of the third generation, which takes no standard disks.
	third     = []string{PDBalanced, pdSSD, hyperdiskBalanced}
	hyperdisk = []string{hyperdiskBalanced}
)
