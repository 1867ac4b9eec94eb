module persia/sandbox/toolchain/nats-server

go 1.26.0

require github.com/nats-io/nats-server/v2 v2.10.22

require (
	github.com/klauspost/compress v1.18.1 // indirect
	github.com/minio/highwayhash v1.0.3 // indirect
	github.com/nats-io/jwt/v2 v2.5.8 // indirect
	github.com/nats-io/nkeys v0.4.7 // indirect
	github.com/nats-io/nuid v1.0.1 // indirect
	go.uber.org/automaxprocs v1.6.0 // indirect
	golang.org/x/crypto v0.53.0 // indirect
	golang.org/x/sys v0.46.0 // indirect
	golang.org/x/time v0.15.0 // indirect
)

tool github.com/nats-io/nats-server/v2
