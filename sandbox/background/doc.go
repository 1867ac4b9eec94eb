// Package background keeps programs running between the commands of the sandbox, one
// in each folder, and ends them.
package background
