package testkit

// The types of Kubernetes objects that tests look at.
const (
	AdmissionPolicy  = "kubernetes:admissionregistration.k8s.io/v1:ValidatingAdmissionPolicy"
	Claim            = "kubernetes:core/v1:PersistentVolumeClaim"
	DaemonSet        = "kubernetes:apps/v1:DaemonSet"
	Deployment       = "kubernetes:apps/v1:Deployment"
	DisruptionBudget = "kubernetes:policy/v1:PodDisruptionBudget"
	Ingress          = "kubernetes:networking.k8s.io/v1:Ingress"
	NATSCluster      = "kubernetes:nats.io/v1alpha2:NatsCluster"
	Namespace        = "kubernetes:core/v1:Namespace"
	NetworkPolicy    = "kubernetes:networking.k8s.io/v1:NetworkPolicy"
	Service          = "kubernetes:core/v1:Service"
	StatefulSet      = "kubernetes:apps/v1:StatefulSet"
	Volume           = "kubernetes:core/v1:PersistentVolume"
)

// The types of Google Cloud's resources that tests look at.
const (
	Bucket            = "gcp:storage/bucket:Bucket"
	BucketGrant       = "gcp:storage/bucketIAMMember:BucketIAMMember"
	Cluster           = "gcp:container/cluster:Cluster"
	Disk              = "gcp:compute/disk:Disk"
	FilestoreInstance = "gcp:filestore/instance:Instance"
	KeyGrant          = "gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember"
	Network           = "gcp:compute/network:Network"
	NodePool          = "gcp:container/nodePool:NodePool"
	RegionDisk        = "gcp:compute/regionDisk:RegionDisk"
	Repository        = "gcp:artifactregistry/repository:Repository"
	RepositoryReader  = "gcp:artifactregistry/repositoryIamMember:RepositoryIamMember"
	Subnetwork        = "gcp:compute/subnetwork:Subnetwork"
)
