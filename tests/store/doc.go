// Package store tests the protocol on servers that break in their own ways: a
// primary that fails over, a standby that is missing, a pooler, a clock that
// is set. What one server suffices for is tested beside the verbs.
package store
