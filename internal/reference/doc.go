// Package reference describes stack files for people and for editors.
//
// [Read] collects the keys of a stack file and the objects in them from the types of package
// config and their doc comments. [Reference.Files] describes them in docs/reference and in
// stack.schema.json. After a change in package config,
//
//	go test ./internal/reference -update
//
// writes them all. The tests fail until then.
package reference
