// Package google simulates the part of Google Cloud's APIs that the program reaches: it answers requests with the
// bodies that the real APIs would answer with, keeps them in files, and refuses what the APIs refuse.
//
// answers.json drives it: answers that Config Connector recorded from the real Google Cloud
// (GoogleCloudPlatform/k8s-config-connector, August 2026), with the requests before them. A service sets by itself the
// fields that a recorded answer has beyond its request, so no default is written a second time here. The table of kinds
// adds what depends on the request: names that come back as paths, values that come back renamed, and rules between
// fields and between resources.
//
// A comment with † marks what no recording shows. There the simulation takes the side that is harder for the program.
package google
