package dev.taskyard;

import dev.taskyard.Channels.Server;
import dev.taskyard.v1.ApiKeyServiceGrpc;
import dev.taskyard.v1.WhoAmIRequest;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;

/** The tenant whose tasks a client names: that of its context, otherwise that of its key. */
final class Tenant {
  /** The tenant of a key that belongs to none: an administrator's. */
  private static final String DEFAULT = "default";

  private final Channels channels;
  private volatile String found;

  Tenant(TaskyardContext context, Channels channels) {
    this.channels = channels;
    found = context.tenant();
  }

  /** Its id; the first use asks the server for it, where the context names none. */
  CompletableFuture<String> id() {
    return found.isEmpty()
        ? ofKey().thenApply(tenant -> found = tenant)
        : CompletableFuture.completedFuture(found);
  }

  /** Its full name, the parent of its tasks. */
  CompletableFuture<String> parent() {
    return id().thenApply(Names::tenant);
  }

  /** The full name of a task that is given by id or by full name. */
  CompletableFuture<String> task(String task) {
    return task.startsWith("tenants/")
        ? CompletableFuture.completedFuture(task)
        : id().thenApply(tenant -> Names.task(tenant, task));
  }

  private CompletableFuture<String> ofKey() {
    return channels
        .unary(Server.TASKDB, ApiKeyServiceGrpc.getWhoAmIMethod(), WhoAmIRequest.getDefaultInstance(), null)
        .thenApply(response -> response.getApiKey().getTenant())
        .exceptionally(
            error -> {
              Throwable cause = error instanceof CompletionException ? error.getCause() : error;
              if (cause instanceof TaskyardException.Unimplemented) {
                // A server of before this method.
                return DEFAULT;
              }
              throw cause instanceof RuntimeException known ? known : new CompletionException(cause);
            })
        .thenApply(tenant -> tenant.isEmpty() ? DEFAULT : tenant);
  }
}
