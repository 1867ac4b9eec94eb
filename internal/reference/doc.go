// Package reference describes stack files for people and for editors.
//
// [Sections] collects all keys of a stack file and the objects in them: names, types and
// descriptions, from the types of package config and their doc comments. [Pages] turns them
// into docs/reference/configuration.md and pedl.md, and [Schema] into stack.schema.json. After a change in package
// config,
//
//	go run ./internal/reference/cmd
//
// writes them all. The tests fail until then.
package reference
