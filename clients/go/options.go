package taskyard

import (
	"context"
	"flag"
	"time"
)

// Option configures a Client.
type Option func(*settings)

type settings struct {
	given         map[string]string
	outageTimeout time.Duration
	trace         func(context.Context) string
}

// WithAddress sets taskdb's host:port, or a list of replicas separated by commas; https:// before it asks for TLS.
func WithAddress(address string) Option { return with("address", address) }

// WithScheduler sets the scheduler's address, which workers and Explain use.
func WithScheduler(address string) Option { return with("scheduler", address) }

// WithKey sets the key that every call carries.
func WithKey(key string) Option { return with("key", key) }

// WithAdminKey sets the key of administrative calls.
func WithAdminKey(key string) Option { return with("admin_key", key) }

// WithTenant sets the tenant whose tasks the client names; without it the one of the context, then that of the key.
func WithTenant(tenant string) Option { return with("tenant", tenant) }

// WithTLSCA sets the file of the authority that signed the servers' certificates; it turns TLS on.
func WithTLSCA(file string) Option { return with("tls_ca", file) }

func with(name, value string) Option {
	return func(s *settings) { s.given[name] = value }
}

// WithOutageTimeout sets how long Wait, Watch and Logs go on while the server cannot be reached; five minutes by default.
func WithOutageTimeout(limit time.Duration) Option {
	return func(s *settings) { s.outageTimeout = limit }
}

// WithTrace sets where the W3C traceparent of a call comes from, such as the span of an OpenTelemetry context. By default
// it is what ContextWithTraceparent put there.
func WithTrace(traceparent func(context.Context) string) Option {
	return func(s *settings) { s.trace = traceparent }
}

// Flags registers --address, --key, --tenant, --scheduler, --admin-key and --tls-ca, as the command line has them. The
// option has the values that were given, so parse the flags before New.
func Flags(set *flag.FlagSet) Option {
	address := set.String("address", "", "taskdb, host:port or a list of replicas")
	key := set.String("key", "", "API key; better in TASKYARD_KEY")
	tenant := set.String("tenant", "", "tenant")
	scheduler := set.String("scheduler", "", "scheduler, host:port")
	adminKey := set.String("admin-key", "", "key of an administrator; better in TASKYARD_ADMIN_KEY")
	tlsCA := set.String("tls-ca", "", "file of the authority that signed the servers' certificates")
	return func(s *settings) {
		values := map[string]string{"address": *address, "key": *key, "tenant": *tenant, "scheduler": *scheduler,
			"admin_key": *adminKey, "tls_ca": *tlsCA}
		for name, value := range values {
			if value != "" {
				s.given[name] = value
			}
		}
	}
}

type traceKey struct{}

// ContextWithTraceparent makes this the W3C trace context of calls with the returned context; a task that is created with it
// continues the trace.
func ContextWithTraceparent(ctx context.Context, traceparent string) context.Context {
	return context.WithValue(ctx, traceKey{}, traceparent)
}

func traceparentOf(ctx context.Context) string {
	found, _ := ctx.Value(traceKey{}).(string)
	return found
}
