// Package pedlspec has what a stack file says of PEDL: its types, defaults and rules.
// Besides the shared pieces it imports package volume, whose sources may hold the
// database.
package pedlspec
