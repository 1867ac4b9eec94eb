// Package layout tests how the packages import each other: topics of a stack file stay
// apart, folders form no cycle, and no package of this repository has an alias.
package layout
