// Package reference describes what a stack file may say, for people and for
// editors.
//
// [Sections] collects every key of a stack file and every object inside of one
// as plain data: names, types and descriptions, read from the types of package
// config and from their doc comments. [Markdown] makes a page of it, which is
// docs/reference/configuration.md, and [Schema] a JSON Schema, stack.schema.json. After a
// change in package config,
//
//	go run ./internal/reference/cmd
//
// writes both anew. The tests fail until then.
package reference
