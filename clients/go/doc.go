// Package taskyard is the Go client of Taskyard, a service that runs tasks durably on a fleet of hosts.
//
// A Client finds its server by itself: by options, then TASKYARD_ADDRESS and TASKYARD_KEY, then .taskyard/context.toml in
// this folder or one above, then ~/.config/taskyard/config.toml. It is safe for concurrent use. Calls take a
// context.Context; retries and deadlines follow service_config.json; errors are recognised with errors.Is and errors.As.
//
// Package worker runs functions of a Go program as tasks.
package taskyard
