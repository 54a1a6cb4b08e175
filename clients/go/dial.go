package taskyard

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	_ "embed"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
)

// serviceConfig holds the retries and deadlines of every method, the same file for every client.
//
//go:embed service_config.json
var serviceConfig string

const (
	maxReceiveBytes = 64 << 20
	// A half-open connection shows within 15 s. Servers allow pings twice as often.
	keepaliveTime    = 10 * time.Second
	keepaliveTimeout = 5 * time.Second
)

// dial returns a connection to an address, or to the first of a list that answers. Nothing is sent yet.
func dial(address, key, tlsCA string, trace func(context.Context) string) (*grpc.ClientConn, error) {
	secure := tlsCA != "" || strings.Contains(address, "https://")
	replicas, err := splitAddresses(address)
	if err != nil {
		return nil, err
	}
	credentials, err := transportCredentials(replicas, secure, tlsCA)
	if err != nil {
		return nil, err
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(credentials),
		grpc.WithDefaultServiceConfig(serviceConfig),
		grpc.WithDisableServiceConfig(),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepaliveTime, Timeout: keepaliveTimeout}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxReceiveBytes)),
		// The default grows to two minutes, too long to wait for a server that is back.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 200 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: 3 * time.Second,
		}),
		grpc.WithUnaryInterceptor(unaryHeaders(key, trace)),
		grpc.WithStreamInterceptor(streamHeaders(key, trace)),
	}
	options = append(options, proxyOptions(replicas, secure)...)
	if len(replicas) == 1 {
		return grpc.NewClient(replicas[0], options...)
	}
	list := manual.NewBuilderWithScheme("taskyard")
	found := resolver.State{}
	for _, each := range replicas {
		host, _, _ := net.SplitHostPort(each)
		found.Addresses = append(found.Addresses, resolver.Address{Addr: each, ServerName: host})
	}
	list.InitialState(found)
	return grpc.NewClient("taskyard:///replicas", append(options, grpc.WithResolvers(list))...)
}

func splitAddresses(address string) ([]string, error) {
	address = strings.NewReplacer("https://", "", "http://", "").Replace(address)
	if strings.HasPrefix(address, "ipv4:") || strings.HasPrefix(address, "ipv6:") {
		return []string{address}, nil
	}
	var replicas []string
	for _, each := range strings.Split(address, ",") {
		each = strings.TrimSpace(each)
		if each == "" {
			return nil, &ContextError{Message: fmt.Sprintf("%q contains an empty address; use host:port,host:port", address)}
		}
		replicas = append(replicas, each)
	}
	return replicas, nil
}

func transportCredentials(replicas []string, secure bool, tlsCA string) (credentials.TransportCredentials, error) {
	if !secure {
		for _, each := range replicas {
			if !isLocal(each) {
				return nil, &PlaintextRefusedError{Address: each}
			}
		}
		return insecure.NewCredentials(), nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if tlsCA != "" {
		pem, err := os.ReadFile(tlsCA)
		if err != nil {
			return nil, &ContextError{Message: fmt.Sprintf("the authority %s cannot be read (%v); correct TASKYARD_TLS_CA", tlsCA, err)}
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, &ContextError{Message: tlsCA + " holds no certificate in PEM; correct TASKYARD_TLS_CA"}
		}
	}
	return credentials.NewTLS(config), nil
}

// isLocal reports whether an address reaches this machine only: a unix socket, localhost or a loopback address.
func isLocal(address string) bool {
	if strings.HasPrefix(address, "unix:") || strings.HasPrefix(address, "unix-abstract:") {
		return true
	}
	for _, scheme := range []string{"ipv4:", "ipv6:", "dns:///"} {
		address = strings.TrimPrefix(address, scheme)
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// proxyOptions chooses the proxy: none in plaintext or on this machine, where it would read the key. TASKYARD_PROXY names
// one (http://host:port) or switches it off; otherwise gRPC follows https_proxy and no_proxy.
func proxyOptions(replicas []string, secure bool) []grpc.DialOption {
	named := os.Getenv("TASKYARD_PROXY")
	if !secure || named == "off" || isLocal(replicas[0]) {
		return []grpc.DialOption{grpc.WithNoProxy()}
	}
	if named == "" {
		return nil
	}
	return []grpc.DialOption{grpc.WithNoProxy(), grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
		return dialThrough(ctx, named, address)
	})}
}

func dialThrough(ctx context.Context, proxy, address string) (net.Conn, error) {
	found, err := url.Parse(proxy)
	if err != nil || found.Host == "" {
		return nil, fmt.Errorf("TASKYARD_PROXY=%q is not of the form http://host:port", proxy)
	}
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", found.Host)
	if err != nil {
		return nil, err
	}
	request := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address, Header: http.Header{}}
	if err := request.Write(connection); err != nil {
		connection.Close()
		return nil, err
	}
	answer, err := http.ReadResponse(bufio.NewReader(connection), request)
	if err != nil || answer.StatusCode != http.StatusOK {
		connection.Close()
		return nil, fmt.Errorf("the proxy %s refuses to connect to %s", proxy, address)
	}
	return connection, nil
}

func withHeaders(ctx context.Context, key string, trace func(context.Context) string) context.Context {
	if key != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+key)
	}
	if parent := trace(ctx); parent != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "traceparent", parent)
	}
	return ctx
}

func unaryHeaders(key string, trace func(context.Context) string) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, request, response any, conn *grpc.ClientConn,
		invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
		return invoke(withHeaders(ctx, key, trace), method, request, response, conn, options...)
	}
}

func streamHeaders(key string, trace func(context.Context) string) grpc.StreamClientInterceptor {
	return func(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string,
		open grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
		return open(withHeaders(ctx, key, trace), desc, conn, method, options...)
	}
}
