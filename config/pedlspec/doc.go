// Package pedlspec defines PEDL in a stack file: types, defaults and rules. It imports package
// volumespec, whose sources can hold the database.
package pedlspec
