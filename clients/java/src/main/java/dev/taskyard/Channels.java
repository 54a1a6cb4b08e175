package dev.taskyard;

import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ChannelCredentials;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.ForwardingClientCall.SimpleForwardingClientCall;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.TlsChannelCredentials;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.StreamObserver;
import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/** Calls to the servers of a context: key, TLS, deadlines, retries by service config, failover, trace context. */
final class Channels implements AutoCloseable {
  /** taskdb with the ordinary key, taskdb with the administrator's, or the scheduler. */
  enum Server {
    TASKDB,
    ADMIN,
    SCHEDULER
  }

  private static final int MAX_MESSAGE_BYTES = 64 * 1024 * 1024;
  private static final Metadata.Key<String> AUTHORIZATION =
      Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER);
  private static final Metadata.Key<String> TRACEPARENT =
      Metadata.Key.of("traceparent", Metadata.ASCII_STRING_MARSHALLER);

  private record Replica(String address, ManagedChannel channel) {}

  /** The replicas of one server with one key; calls go to one of them until it is unavailable. */
  private static final class Replicas {
    final String key;
    final List<Replica> all;
    private int current;

    Replicas(String key, List<Replica> all) {
      this.key = key;
      this.all = all;
    }

    synchronized Replica choose() {
      return all.get(current);
    }

    synchronized void leave(Replica replica) {
      // The channel would wait ever longer before it connects again.
      replica.channel().resetConnectBackoff();
      if (choose() == replica) {
        current = (current + 1) % all.size();
      }
    }
  }

  private final TaskyardContext context;
  private final Duration timeout;
  private final Supplier<String> traceparent;
  private final Map<List<String>, Replicas> open = new HashMap<>();

  Channels(TaskyardContext context, Duration timeout, Supplier<String> traceparent) {
    this.context = context;
    this.timeout = timeout;
    this.traceparent = traceparent;
    for (String target : List.of(context.address(), context.scheduler())) {
      if (!target.isEmpty()) {
        addresses(target);
      }
    }
  }

  /** The response of one call, or its error. A limit of null is that of the client or of the service config. */
  <Q, R> CompletableFuture<R> unary(Server server, MethodDescriptor<Q, R> method, Q request, Duration limit) {
    Replicas replicas = replicas(server);
    Duration chosen = limit != null ? limit : timeout;
    if (chosen == null) {
      chosen = ServiceConfig.TIMEOUTS.get(method.getFullMethodName());
    }
    CallOptions options =
        chosen == null
            ? CallOptions.DEFAULT
            : CallOptions.DEFAULT.withDeadlineAfter(chosen.toNanos(), TimeUnit.NANOSECONDS);
    return attempt(replicas, method, request, options, replicas.all.size() - 1);
  }

  private <Q, R> CompletableFuture<R> attempt(
      Replicas replicas, MethodDescriptor<Q, R> method, Q request, CallOptions options, int left) {
    Replica replica = replicas.choose();
    CompletableFuture<R> result = new CompletableFuture<>();
    ClientCall<Q, R> call = replica.channel().newCall(method, options);
    ClientCalls.asyncUnaryCall(
        call,
        request,
        new StreamObserver<R>() {
          @Override
          public void onNext(R response) {
            result.complete(response);
          }

          @Override
          public void onError(Throwable error) {
            StatusRuntimeException failed = (StatusRuntimeException) error;
            boolean unavailable = failed.getStatus().getCode() == Status.Code.UNAVAILABLE;
            if (unavailable) {
              replicas.leave(replica);
            }
            boolean expired = options.getDeadline() != null && options.getDeadline().isExpired();
            boolean again = ServiceConfig.REPEATABLE.contains(method.getFullMethodName()) && left > 0 && !expired;
            if (unavailable && again) {
              attempt(replicas, method, request, options, left - 1)
                  .whenComplete((response, lost) -> settle(result, response, lost));
            } else {
              result.completeExceptionally(translated(failed, replica, replicas.key, method));
            }
          }

          @Override
          public void onCompleted() {}
        });
    // Cancelling the future cancels the call.
    result.whenComplete((response, error) -> {
      if (result.isCancelled()) {
        call.cancel("the caller cancelled", null);
      }
    });
    return result;
  }

  private static <R> void settle(CompletableFuture<R> result, R response, Throwable error) {
    if (error == null) {
      result.complete(response);
    } else {
      result.completeExceptionally(error);
    }
  }

  /** An iterator over the responses of one stream; it ends with its gRPC context. Throws TaskyardException. */
  <Q, R> Iterator<R> serverStream(Server server, MethodDescriptor<Q, R> method, Q request, Duration limit) {
    Replicas replicas = replicas(server);
    Replica replica = replicas.choose();
    CallOptions options = CallOptions.DEFAULT.withDeadlineAfter(limit.toNanos(), TimeUnit.NANOSECONDS);
    Iterator<R> responses = ClientCalls.blockingServerStreamingCall(replica.channel(), method, options, request);
    return new Iterator<R>() {
      @Override
      public boolean hasNext() {
        try {
          return responses.hasNext();
        } catch (StatusRuntimeException failed) {
          if (failed.getStatus().getCode() == Status.Code.UNAVAILABLE) {
            replicas.leave(replica);
          }
          throw translated(failed, replica, replicas.key, method);
        }
      }

      @Override
      public R next() {
        return responses.next();
      }
    };
  }

  /** Closes the connections and cancels the calls in flight. */
  @Override
  public synchronized void close() {
    open.values().forEach(replicas -> replicas.all.forEach(replica -> replica.channel().shutdownNow()));
    open.clear();
  }

  private synchronized Replicas replicas(Server server) {
    String target = server == Server.SCHEDULER ? context.scheduler() : context.address();
    if (target.isEmpty()) {
      throw new ContextException(
          context.source() + " names no scheduler; set TASKYARD_SCHEDULER to its host and port");
    }
    String key = server == Server.ADMIN && !context.adminKey().isEmpty() ? context.adminKey() : context.key();
    return open.computeIfAbsent(List.of(target, key), name -> new Replicas(key, connect(target, key)));
  }

  private List<Replica> connect(String target, String key) {
    List<Replica> replicas = new ArrayList<>();
    for (String address : addresses(target)) {
      ManagedChannelBuilder<?> builder =
          Grpc.newChannelBuilder(address, credentials(target))
              .defaultServiceConfig(ServiceConfig.RETRIES)
              .disableServiceConfigLookUp()
              .enableRetry()
              .maxInboundMessageSize(MAX_MESSAGE_BYTES)
              // A replica that hangs shows within 15 s, while a call is open.
              .keepAliveTime(10, TimeUnit.SECONDS)
              .keepAliveTimeout(5, TimeUnit.SECONDS)
              .keepAliveWithoutCalls(false)
              .intercept(headers(key));
      if (!isSecure(target) || isLocal(address) || "off".equals(System.getenv("TASKYARD_PROXY"))) {
        // A proxy would read the key.
        builder.proxyDetector(server -> null);
      }
      replicas.add(new Replica(address, builder.build()));
    }
    return List.copyOf(replicas);
  }

  private ClientInterceptor headers(String key) {
    return new ClientInterceptor() {
      @Override
      public <Q, R> ClientCall<Q, R> interceptCall(
          MethodDescriptor<Q, R> method, CallOptions options, Channel next) {
        String trace = Trace.TRACEPARENT.get().isEmpty() ? traceparent.get() : Trace.TRACEPARENT.get();
        return new SimpleForwardingClientCall<>(next.newCall(method, options)) {
          @Override
          public void start(Listener<R> listener, Metadata metadata) {
            if (!key.isEmpty()) {
              metadata.put(AUTHORIZATION, "Bearer " + key);
            }
            if (!trace.isEmpty()) {
              metadata.put(TRACEPARENT, trace);
            }
            super.start(listener, metadata);
          }
        };
      }
    };
  }

  private ChannelCredentials credentials(String target) {
    if (!isSecure(target)) {
      return InsecureChannelCredentials.create();
    }
    TlsChannelCredentials.Builder builder = TlsChannelCredentials.newBuilder();
    String ca = context.tlsCa();
    if (!ca.isEmpty()) {
      try {
        if (!Files.readString(Path.of(ca), StandardCharsets.ISO_8859_1).contains("-----BEGIN CERTIFICATE-----")) {
          throw new ContextException("TASKYARD_TLS_CA " + ca + " holds no certificate; name a PEM file");
        }
        builder.trustManager(new File(ca));
      } catch (IOException error) {
        throw new ContextException("TASKYARD_TLS_CA " + ca + " cannot be read (" + error + "); name a PEM file");
      }
    }
    return builder.build();
  }

  private boolean isSecure(String target) {
    return !context.tlsCa().isEmpty() || target.contains("https://");
  }

  /** The addresses of "host:port,host:port"; throws PlaintextRefused if a key would leave this machine in plaintext. */
  private List<String> addresses(String target) {
    List<String> addresses =
        Arrays.stream(target.replaceAll("https?://", "").split(",", -1)).map(String::strip).toList();
    if (addresses.contains("")) {
      throw new ContextException("'" + target + "' contains an empty address; use host:port,host:port");
    }
    for (String address : addresses) {
      if (!isSecure(target) && !isLocal(address)) {
        throw new ContextException.PlaintextRefused(
            address + " is not on this machine and would get the key in plaintext; use TLS:"
                + " https:// before the address, or TASKYARD_TLS_CA");
      }
    }
    return addresses;
  }

  /** Whether an address reaches this machine only: a unix socket, localhost or a loopback address. */
  static boolean isLocal(String address) {
    if (address.startsWith("unix:")) {
      return true;
    }
    String host = address.replaceFirst("^dns:///", "").replaceFirst(":[^:]*$", "").replaceAll("^\\[|\\]$", "");
    return host.equals("localhost") || host.equals("::1") || host.matches("127(\\.\\d{1,3}){3}");
  }

  private TaskyardException translated(
      StatusRuntimeException failed, Replica replica, String key, MethodDescriptor<?, ?> method) {
    return StatusErrors.fromCall(
        failed, new StatusErrors.Target(replica.address(), key, method.getServiceName(), context));
  }
}
