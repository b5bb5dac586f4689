// Package testenv gives tests the real services that they need: PostgreSQL, a
// Temporal server and Docker daemons. Only tests import it.
//
// A package that uses it has
//
//	func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }
//
// A service starts when the first test asks for it, once per test process, and
// stops when the tests are over. What tests share is kept apart by giving each
// its own database, namespace or label; [Postgres], [TemporalServer] and
// [DockerNode] give a test a service of its own, to stop, kill and restart.
//
// These variables name services to use instead of starting them:
//
//	LEASEHOLD_TEST_DATABASE_URL      postgres://… of an account that may create databases
//	LEASEHOLD_TEST_TEMPORAL_ADDRESS  host:port
//	LEASEHOLD_TEST_DOCKER_HOST       as DOCKER_HOST
//
// Where they are unset nothing but what testenv has started is touched; PGHOST
// and its like are not looked at.
//
// Where a service is missing, the test is skipped with the reason. In CI (the
// variable CI is not empty) it fails. Every wait has a bound.
package testenv
