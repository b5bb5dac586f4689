package leasestore

import _ "embed" // roles.sql

//go:embed roles.sql
var roles string

// Roles returns the SQL that makes the four roles and gives each the least that
// it needs. Run it after every migration.
func Roles() string { return roles }
