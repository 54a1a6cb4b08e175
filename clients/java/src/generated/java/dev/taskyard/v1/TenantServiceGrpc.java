package dev.taskyard.v1;

import static io.grpc.MethodDescriptor.generateFullMethodName;

/**
 * <pre>
 * Tenants (administrators).  Served by taskdb.
 * </pre>
 */
@io.grpc.stub.annotations.GrpcGenerated
public final class TenantServiceGrpc {

  private TenantServiceGrpc() {}

  public static final java.lang.String SERVICE_NAME = "taskyard.v1.TenantService";

  // Static method descriptors that strictly reflect the proto.
  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.CreateTenantRequest,
      dev.taskyard.v1.CreateTenantResponse> getCreateTenantMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "CreateTenant",
      requestType = dev.taskyard.v1.CreateTenantRequest.class,
      responseType = dev.taskyard.v1.CreateTenantResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.CreateTenantRequest,
      dev.taskyard.v1.CreateTenantResponse> getCreateTenantMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.CreateTenantRequest, dev.taskyard.v1.CreateTenantResponse> getCreateTenantMethod;
    if ((getCreateTenantMethod = TenantServiceGrpc.getCreateTenantMethod) == null) {
      synchronized (TenantServiceGrpc.class) {
        if ((getCreateTenantMethod = TenantServiceGrpc.getCreateTenantMethod) == null) {
          TenantServiceGrpc.getCreateTenantMethod = getCreateTenantMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.CreateTenantRequest, dev.taskyard.v1.CreateTenantResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "CreateTenant"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.CreateTenantRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.CreateTenantResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getCreateTenantMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.GetTenantRequest,
      dev.taskyard.v1.GetTenantResponse> getGetTenantMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "GetTenant",
      requestType = dev.taskyard.v1.GetTenantRequest.class,
      responseType = dev.taskyard.v1.GetTenantResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.GetTenantRequest,
      dev.taskyard.v1.GetTenantResponse> getGetTenantMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.GetTenantRequest, dev.taskyard.v1.GetTenantResponse> getGetTenantMethod;
    if ((getGetTenantMethod = TenantServiceGrpc.getGetTenantMethod) == null) {
      synchronized (TenantServiceGrpc.class) {
        if ((getGetTenantMethod = TenantServiceGrpc.getGetTenantMethod) == null) {
          TenantServiceGrpc.getGetTenantMethod = getGetTenantMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.GetTenantRequest, dev.taskyard.v1.GetTenantResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "GetTenant"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.GetTenantRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.GetTenantResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getGetTenantMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.ListTenantsRequest,
      dev.taskyard.v1.ListTenantsResponse> getListTenantsMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ListTenants",
      requestType = dev.taskyard.v1.ListTenantsRequest.class,
      responseType = dev.taskyard.v1.ListTenantsResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.ListTenantsRequest,
      dev.taskyard.v1.ListTenantsResponse> getListTenantsMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.ListTenantsRequest, dev.taskyard.v1.ListTenantsResponse> getListTenantsMethod;
    if ((getListTenantsMethod = TenantServiceGrpc.getListTenantsMethod) == null) {
      synchronized (TenantServiceGrpc.class) {
        if ((getListTenantsMethod = TenantServiceGrpc.getListTenantsMethod) == null) {
          TenantServiceGrpc.getListTenantsMethod = getListTenantsMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.ListTenantsRequest, dev.taskyard.v1.ListTenantsResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ListTenants"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ListTenantsRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ListTenantsResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getListTenantsMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.UpdateTenantRequest,
      dev.taskyard.v1.UpdateTenantResponse> getUpdateTenantMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "UpdateTenant",
      requestType = dev.taskyard.v1.UpdateTenantRequest.class,
      responseType = dev.taskyard.v1.UpdateTenantResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.UpdateTenantRequest,
      dev.taskyard.v1.UpdateTenantResponse> getUpdateTenantMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.UpdateTenantRequest, dev.taskyard.v1.UpdateTenantResponse> getUpdateTenantMethod;
    if ((getUpdateTenantMethod = TenantServiceGrpc.getUpdateTenantMethod) == null) {
      synchronized (TenantServiceGrpc.class) {
        if ((getUpdateTenantMethod = TenantServiceGrpc.getUpdateTenantMethod) == null) {
          TenantServiceGrpc.getUpdateTenantMethod = getUpdateTenantMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.UpdateTenantRequest, dev.taskyard.v1.UpdateTenantResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "UpdateTenant"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.UpdateTenantRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.UpdateTenantResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getUpdateTenantMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.DeleteTenantRequest,
      dev.taskyard.v1.DeleteTenantResponse> getDeleteTenantMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "DeleteTenant",
      requestType = dev.taskyard.v1.DeleteTenantRequest.class,
      responseType = dev.taskyard.v1.DeleteTenantResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.DeleteTenantRequest,
      dev.taskyard.v1.DeleteTenantResponse> getDeleteTenantMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.DeleteTenantRequest, dev.taskyard.v1.DeleteTenantResponse> getDeleteTenantMethod;
    if ((getDeleteTenantMethod = TenantServiceGrpc.getDeleteTenantMethod) == null) {
      synchronized (TenantServiceGrpc.class) {
        if ((getDeleteTenantMethod = TenantServiceGrpc.getDeleteTenantMethod) == null) {
          TenantServiceGrpc.getDeleteTenantMethod = getDeleteTenantMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.DeleteTenantRequest, dev.taskyard.v1.DeleteTenantResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "DeleteTenant"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.DeleteTenantRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.DeleteTenantResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getDeleteTenantMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.GetTenantUsageRequest,
      dev.taskyard.v1.GetTenantUsageResponse> getGetTenantUsageMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "GetTenantUsage",
      requestType = dev.taskyard.v1.GetTenantUsageRequest.class,
      responseType = dev.taskyard.v1.GetTenantUsageResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.GetTenantUsageRequest,
      dev.taskyard.v1.GetTenantUsageResponse> getGetTenantUsageMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.GetTenantUsageRequest, dev.taskyard.v1.GetTenantUsageResponse> getGetTenantUsageMethod;
    if ((getGetTenantUsageMethod = TenantServiceGrpc.getGetTenantUsageMethod) == null) {
      synchronized (TenantServiceGrpc.class) {
        if ((getGetTenantUsageMethod = TenantServiceGrpc.getGetTenantUsageMethod) == null) {
          TenantServiceGrpc.getGetTenantUsageMethod = getGetTenantUsageMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.GetTenantUsageRequest, dev.taskyard.v1.GetTenantUsageResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "GetTenantUsage"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.GetTenantUsageRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.GetTenantUsageResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getGetTenantUsageMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.ListTenantSharesRequest,
      dev.taskyard.v1.ListTenantSharesResponse> getListTenantSharesMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ListTenantShares",
      requestType = dev.taskyard.v1.ListTenantSharesRequest.class,
      responseType = dev.taskyard.v1.ListTenantSharesResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.ListTenantSharesRequest,
      dev.taskyard.v1.ListTenantSharesResponse> getListTenantSharesMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.ListTenantSharesRequest, dev.taskyard.v1.ListTenantSharesResponse> getListTenantSharesMethod;
    if ((getListTenantSharesMethod = TenantServiceGrpc.getListTenantSharesMethod) == null) {
      synchronized (TenantServiceGrpc.class) {
        if ((getListTenantSharesMethod = TenantServiceGrpc.getListTenantSharesMethod) == null) {
          TenantServiceGrpc.getListTenantSharesMethod = getListTenantSharesMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.ListTenantSharesRequest, dev.taskyard.v1.ListTenantSharesResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ListTenantShares"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ListTenantSharesRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ListTenantSharesResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getListTenantSharesMethod;
  }

  /**
   * Creates a new async stub that supports all call types for the service
   */
  public static TenantServiceStub newStub(io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<TenantServiceStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<TenantServiceStub>() {
        @java.lang.Override
        public TenantServiceStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new TenantServiceStub(channel, callOptions);
        }
      };
    return TenantServiceStub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports all types of calls on the service
   */
  public static TenantServiceBlockingV2Stub newBlockingV2Stub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<TenantServiceBlockingV2Stub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<TenantServiceBlockingV2Stub>() {
        @java.lang.Override
        public TenantServiceBlockingV2Stub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new TenantServiceBlockingV2Stub(channel, callOptions);
        }
      };
    return TenantServiceBlockingV2Stub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports unary and streaming output calls on the service
   */
  public static TenantServiceBlockingStub newBlockingStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<TenantServiceBlockingStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<TenantServiceBlockingStub>() {
        @java.lang.Override
        public TenantServiceBlockingStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new TenantServiceBlockingStub(channel, callOptions);
        }
      };
    return TenantServiceBlockingStub.newStub(factory, channel);
  }

  /**
   * Creates a new ListenableFuture-style stub that supports unary calls on the service
   */
  public static TenantServiceFutureStub newFutureStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<TenantServiceFutureStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<TenantServiceFutureStub>() {
        @java.lang.Override
        public TenantServiceFutureStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new TenantServiceFutureStub(channel, callOptions);
        }
      };
    return TenantServiceFutureStub.newStub(factory, channel);
  }

  /**
   * <pre>
   * Tenants (administrators).  Served by taskdb.
   * </pre>
   */
  public interface AsyncService {

    /**
     * <pre>
     * Creates a tenant.  A repeat is ALREADY_EXISTS.
     * Errors: ALREADY_EXISTS.
     * </pre>
     */
    default void createTenant(dev.taskyard.v1.CreateTenantRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.CreateTenantResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getCreateTenantMethod(), responseObserver);
    }

    /**
     * <pre>
     * Returns a tenant.
     * Errors: NOT_FOUND.
     * </pre>
     */
    default void getTenant(dev.taskyard.v1.GetTenantRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.GetTenantResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getGetTenantMethod(), responseObserver);
    }

    /**
     * <pre>
     * Lists tenants.  Filter fields: tier, suspended, create_time.
     * Errors: INVALID_ARGUMENT (FILTER_INVALID, PAGE_TOKEN_INVALID).
     * </pre>
     */
    default void listTenants(dev.taskyard.v1.ListTenantsRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ListTenantsResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getListTenantsMethod(), responseObserver);
    }

    /**
     * <pre>
     * Changes display_name, tier, quota, suspended, queue_paused.  In force at once on the
     * replica that answers, everywhere else within 2 s.  The first limit of a tenant counts
     * its tasks, and holds up writers of tasks for that time.  Safe to repeat, but with a
     * resource_version: the first call has moved it on.
     * Errors: NOT_FOUND; ABORTED (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    default void updateTenant(dev.taskyard.v1.UpdateTenantRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.UpdateTenantResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getUpdateTenantMethod(), responseObserver);
    }

    /**
     * <pre>
     * Deletes a tenant and its keys permanently; with force including task types and tasks, in
     * pages: a call that was interrupted leaves the tenant suspended, and a repeat continues.
     * Audit events stay.
     * Errors: NOT_FOUND; FAILED_PRECONDITION (NOT_EMPTY); ABORTED (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    default void deleteTenant(dev.taskyard.v1.DeleteTenantRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.DeleteTenantResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getDeleteTenantMethod(), responseObserver);
    }

    /**
     * <pre>
     * Current use of the quota.
     * Errors: NOT_FOUND.
     * </pre>
     */
    default void getTenantUsage(dev.taskyard.v1.GetTenantUsageRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.GetTenantUsageResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getGetTenantUsageMethod(), responseObserver);
    }

    /**
     * <pre>
     * Lists what share of the runners' time each tenant has used lately (half-life 5 min) beside
     * the share that its weight gives it while all of them have work.  Tenants that used nothing
     * are left out.  A tenant's key sees its own only.
     * </pre>
     */
    default void listTenantShares(dev.taskyard.v1.ListTenantSharesRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ListTenantSharesResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getListTenantSharesMethod(), responseObserver);
    }
  }

  /**
   * Base class for the server implementation of the service TenantService.
   * <pre>
   * Tenants (administrators).  Served by taskdb.
   * </pre>
   */
  public static abstract class TenantServiceImplBase
      implements io.grpc.BindableService, AsyncService {

    @java.lang.Override public final io.grpc.ServerServiceDefinition bindService() {
      return TenantServiceGrpc.bindService(this);
    }
  }

  /**
   * A stub to allow clients to do asynchronous rpc calls to service TenantService.
   * <pre>
   * Tenants (administrators).  Served by taskdb.
   * </pre>
   */
  public static final class TenantServiceStub
      extends io.grpc.stub.AbstractAsyncStub<TenantServiceStub> {
    private TenantServiceStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected TenantServiceStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new TenantServiceStub(channel, callOptions);
    }

    /**
     * <pre>
     * Creates a tenant.  A repeat is ALREADY_EXISTS.
     * Errors: ALREADY_EXISTS.
     * </pre>
     */
    public void createTenant(dev.taskyard.v1.CreateTenantRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.CreateTenantResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getCreateTenantMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Returns a tenant.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public void getTenant(dev.taskyard.v1.GetTenantRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.GetTenantResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getGetTenantMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Lists tenants.  Filter fields: tier, suspended, create_time.
     * Errors: INVALID_ARGUMENT (FILTER_INVALID, PAGE_TOKEN_INVALID).
     * </pre>
     */
    public void listTenants(dev.taskyard.v1.ListTenantsRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ListTenantsResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getListTenantsMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Changes display_name, tier, quota, suspended, queue_paused.  In force at once on the
     * replica that answers, everywhere else within 2 s.  The first limit of a tenant counts
     * its tasks, and holds up writers of tasks for that time.  Safe to repeat, but with a
     * resource_version: the first call has moved it on.
     * Errors: NOT_FOUND; ABORTED (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    public void updateTenant(dev.taskyard.v1.UpdateTenantRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.UpdateTenantResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getUpdateTenantMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Deletes a tenant and its keys permanently; with force including task types and tasks, in
     * pages: a call that was interrupted leaves the tenant suspended, and a repeat continues.
     * Audit events stay.
     * Errors: NOT_FOUND; FAILED_PRECONDITION (NOT_EMPTY); ABORTED (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    public void deleteTenant(dev.taskyard.v1.DeleteTenantRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.DeleteTenantResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getDeleteTenantMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Current use of the quota.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public void getTenantUsage(dev.taskyard.v1.GetTenantUsageRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.GetTenantUsageResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getGetTenantUsageMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Lists what share of the runners' time each tenant has used lately (half-life 5 min) beside
     * the share that its weight gives it while all of them have work.  Tenants that used nothing
     * are left out.  A tenant's key sees its own only.
     * </pre>
     */
    public void listTenantShares(dev.taskyard.v1.ListTenantSharesRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ListTenantSharesResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getListTenantSharesMethod(), getCallOptions()), request, responseObserver);
    }
  }

  /**
   * A stub to allow clients to do synchronous rpc calls to service TenantService.
   * <pre>
   * Tenants (administrators).  Served by taskdb.
   * </pre>
   */
  public static final class TenantServiceBlockingV2Stub
      extends io.grpc.stub.AbstractBlockingStub<TenantServiceBlockingV2Stub> {
    private TenantServiceBlockingV2Stub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected TenantServiceBlockingV2Stub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new TenantServiceBlockingV2Stub(channel, callOptions);
    }

    /**
     * <pre>
     * Creates a tenant.  A repeat is ALREADY_EXISTS.
     * Errors: ALREADY_EXISTS.
     * </pre>
     */
    public dev.taskyard.v1.CreateTenantResponse createTenant(dev.taskyard.v1.CreateTenantRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getCreateTenantMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Returns a tenant.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public dev.taskyard.v1.GetTenantResponse getTenant(dev.taskyard.v1.GetTenantRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getGetTenantMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Lists tenants.  Filter fields: tier, suspended, create_time.
     * Errors: INVALID_ARGUMENT (FILTER_INVALID, PAGE_TOKEN_INVALID).
     * </pre>
     */
    public dev.taskyard.v1.ListTenantsResponse listTenants(dev.taskyard.v1.ListTenantsRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getListTenantsMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Changes display_name, tier, quota, suspended, queue_paused.  In force at once on the
     * replica that answers, everywhere else within 2 s.  The first limit of a tenant counts
     * its tasks, and holds up writers of tasks for that time.  Safe to repeat, but with a
     * resource_version: the first call has moved it on.
     * Errors: NOT_FOUND; ABORTED (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    public dev.taskyard.v1.UpdateTenantResponse updateTenant(dev.taskyard.v1.UpdateTenantRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getUpdateTenantMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Deletes a tenant and its keys permanently; with force including task types and tasks, in
     * pages: a call that was interrupted leaves the tenant suspended, and a repeat continues.
     * Audit events stay.
     * Errors: NOT_FOUND; FAILED_PRECONDITION (NOT_EMPTY); ABORTED (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    public dev.taskyard.v1.DeleteTenantResponse deleteTenant(dev.taskyard.v1.DeleteTenantRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getDeleteTenantMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Current use of the quota.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public dev.taskyard.v1.GetTenantUsageResponse getTenantUsage(dev.taskyard.v1.GetTenantUsageRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getGetTenantUsageMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Lists what share of the runners' time each tenant has used lately (half-life 5 min) beside
     * the share that its weight gives it while all of them have work.  Tenants that used nothing
     * are left out.  A tenant's key sees its own only.
     * </pre>
     */
    public dev.taskyard.v1.ListTenantSharesResponse listTenantShares(dev.taskyard.v1.ListTenantSharesRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getListTenantSharesMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do limited synchronous rpc calls to service TenantService.
   * <pre>
   * Tenants (administrators).  Served by taskdb.
   * </pre>
   */
  public static final class TenantServiceBlockingStub
      extends io.grpc.stub.AbstractBlockingStub<TenantServiceBlockingStub> {
    private TenantServiceBlockingStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected TenantServiceBlockingStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new TenantServiceBlockingStub(channel, callOptions);
    }

    /**
     * <pre>
     * Creates a tenant.  A repeat is ALREADY_EXISTS.
     * Errors: ALREADY_EXISTS.
     * </pre>
     */
    public dev.taskyard.v1.CreateTenantResponse createTenant(dev.taskyard.v1.CreateTenantRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getCreateTenantMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Returns a tenant.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public dev.taskyard.v1.GetTenantResponse getTenant(dev.taskyard.v1.GetTenantRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getGetTenantMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Lists tenants.  Filter fields: tier, suspended, create_time.
     * Errors: INVALID_ARGUMENT (FILTER_INVALID, PAGE_TOKEN_INVALID).
     * </pre>
     */
    public dev.taskyard.v1.ListTenantsResponse listTenants(dev.taskyard.v1.ListTenantsRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getListTenantsMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Changes display_name, tier, quota, suspended, queue_paused.  In force at once on the
     * replica that answers, everywhere else within 2 s.  The first limit of a tenant counts
     * its tasks, and holds up writers of tasks for that time.  Safe to repeat, but with a
     * resource_version: the first call has moved it on.
     * Errors: NOT_FOUND; ABORTED (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    public dev.taskyard.v1.UpdateTenantResponse updateTenant(dev.taskyard.v1.UpdateTenantRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getUpdateTenantMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Deletes a tenant and its keys permanently; with force including task types and tasks, in
     * pages: a call that was interrupted leaves the tenant suspended, and a repeat continues.
     * Audit events stay.
     * Errors: NOT_FOUND; FAILED_PRECONDITION (NOT_EMPTY); ABORTED (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    public dev.taskyard.v1.DeleteTenantResponse deleteTenant(dev.taskyard.v1.DeleteTenantRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getDeleteTenantMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Current use of the quota.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public dev.taskyard.v1.GetTenantUsageResponse getTenantUsage(dev.taskyard.v1.GetTenantUsageRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getGetTenantUsageMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Lists what share of the runners' time each tenant has used lately (half-life 5 min) beside
     * the share that its weight gives it while all of them have work.  Tenants that used nothing
     * are left out.  A tenant's key sees its own only.
     * </pre>
     */
    public dev.taskyard.v1.ListTenantSharesResponse listTenantShares(dev.taskyard.v1.ListTenantSharesRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getListTenantSharesMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do ListenableFuture-style rpc calls to service TenantService.
   * <pre>
   * Tenants (administrators).  Served by taskdb.
   * </pre>
   */
  public static final class TenantServiceFutureStub
      extends io.grpc.stub.AbstractFutureStub<TenantServiceFutureStub> {
    private TenantServiceFutureStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected TenantServiceFutureStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new TenantServiceFutureStub(channel, callOptions);
    }

    /**
     * <pre>
     * Creates a tenant.  A repeat is ALREADY_EXISTS.
     * Errors: ALREADY_EXISTS.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.CreateTenantResponse> createTenant(
        dev.taskyard.v1.CreateTenantRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getCreateTenantMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Returns a tenant.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.GetTenantResponse> getTenant(
        dev.taskyard.v1.GetTenantRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getGetTenantMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Lists tenants.  Filter fields: tier, suspended, create_time.
     * Errors: INVALID_ARGUMENT (FILTER_INVALID, PAGE_TOKEN_INVALID).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.ListTenantsResponse> listTenants(
        dev.taskyard.v1.ListTenantsRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getListTenantsMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Changes display_name, tier, quota, suspended, queue_paused.  In force at once on the
     * replica that answers, everywhere else within 2 s.  The first limit of a tenant counts
     * its tasks, and holds up writers of tasks for that time.  Safe to repeat, but with a
     * resource_version: the first call has moved it on.
     * Errors: NOT_FOUND; ABORTED (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.UpdateTenantResponse> updateTenant(
        dev.taskyard.v1.UpdateTenantRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getUpdateTenantMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Deletes a tenant and its keys permanently; with force including task types and tasks, in
     * pages: a call that was interrupted leaves the tenant suspended, and a repeat continues.
     * Audit events stay.
     * Errors: NOT_FOUND; FAILED_PRECONDITION (NOT_EMPTY); ABORTED (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.DeleteTenantResponse> deleteTenant(
        dev.taskyard.v1.DeleteTenantRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getDeleteTenantMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Current use of the quota.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.GetTenantUsageResponse> getTenantUsage(
        dev.taskyard.v1.GetTenantUsageRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getGetTenantUsageMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Lists what share of the runners' time each tenant has used lately (half-life 5 min) beside
     * the share that its weight gives it while all of them have work.  Tenants that used nothing
     * are left out.  A tenant's key sees its own only.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.ListTenantSharesResponse> listTenantShares(
        dev.taskyard.v1.ListTenantSharesRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getListTenantSharesMethod(), getCallOptions()), request);
    }
  }

  private static final int METHODID_CREATE_TENANT = 0;
  private static final int METHODID_GET_TENANT = 1;
  private static final int METHODID_LIST_TENANTS = 2;
  private static final int METHODID_UPDATE_TENANT = 3;
  private static final int METHODID_DELETE_TENANT = 4;
  private static final int METHODID_GET_TENANT_USAGE = 5;
  private static final int METHODID_LIST_TENANT_SHARES = 6;

  private static final class MethodHandlers<Req, Resp> implements
      io.grpc.stub.ServerCalls.UnaryMethod<Req, Resp>,
      io.grpc.stub.ServerCalls.ServerStreamingMethod<Req, Resp>,
      io.grpc.stub.ServerCalls.ClientStreamingMethod<Req, Resp>,
      io.grpc.stub.ServerCalls.BidiStreamingMethod<Req, Resp> {
    private final AsyncService serviceImpl;
    private final int methodId;

    MethodHandlers(AsyncService serviceImpl, int methodId) {
      this.serviceImpl = serviceImpl;
      this.methodId = methodId;
    }

    @java.lang.Override
    @java.lang.SuppressWarnings("unchecked")
    public void invoke(Req request, io.grpc.stub.StreamObserver<Resp> responseObserver) {
      switch (methodId) {
        case METHODID_CREATE_TENANT:
          serviceImpl.createTenant((dev.taskyard.v1.CreateTenantRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.CreateTenantResponse>) responseObserver);
          break;
        case METHODID_GET_TENANT:
          serviceImpl.getTenant((dev.taskyard.v1.GetTenantRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.GetTenantResponse>) responseObserver);
          break;
        case METHODID_LIST_TENANTS:
          serviceImpl.listTenants((dev.taskyard.v1.ListTenantsRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.ListTenantsResponse>) responseObserver);
          break;
        case METHODID_UPDATE_TENANT:
          serviceImpl.updateTenant((dev.taskyard.v1.UpdateTenantRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.UpdateTenantResponse>) responseObserver);
          break;
        case METHODID_DELETE_TENANT:
          serviceImpl.deleteTenant((dev.taskyard.v1.DeleteTenantRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.DeleteTenantResponse>) responseObserver);
          break;
        case METHODID_GET_TENANT_USAGE:
          serviceImpl.getTenantUsage((dev.taskyard.v1.GetTenantUsageRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.GetTenantUsageResponse>) responseObserver);
          break;
        case METHODID_LIST_TENANT_SHARES:
          serviceImpl.listTenantShares((dev.taskyard.v1.ListTenantSharesRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.ListTenantSharesResponse>) responseObserver);
          break;
        default:
          throw new AssertionError();
      }
    }

    @java.lang.Override
    @java.lang.SuppressWarnings("unchecked")
    public io.grpc.stub.StreamObserver<Req> invoke(
        io.grpc.stub.StreamObserver<Resp> responseObserver) {
      switch (methodId) {
        default:
          throw new AssertionError();
      }
    }
  }

  public static final io.grpc.ServerServiceDefinition bindService(AsyncService service) {
    return io.grpc.ServerServiceDefinition.builder(getServiceDescriptor())
        .addMethod(
          getCreateTenantMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.CreateTenantRequest,
              dev.taskyard.v1.CreateTenantResponse>(
                service, METHODID_CREATE_TENANT)))
        .addMethod(
          getGetTenantMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.GetTenantRequest,
              dev.taskyard.v1.GetTenantResponse>(
                service, METHODID_GET_TENANT)))
        .addMethod(
          getListTenantsMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.ListTenantsRequest,
              dev.taskyard.v1.ListTenantsResponse>(
                service, METHODID_LIST_TENANTS)))
        .addMethod(
          getUpdateTenantMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.UpdateTenantRequest,
              dev.taskyard.v1.UpdateTenantResponse>(
                service, METHODID_UPDATE_TENANT)))
        .addMethod(
          getDeleteTenantMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.DeleteTenantRequest,
              dev.taskyard.v1.DeleteTenantResponse>(
                service, METHODID_DELETE_TENANT)))
        .addMethod(
          getGetTenantUsageMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.GetTenantUsageRequest,
              dev.taskyard.v1.GetTenantUsageResponse>(
                service, METHODID_GET_TENANT_USAGE)))
        .addMethod(
          getListTenantSharesMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.ListTenantSharesRequest,
              dev.taskyard.v1.ListTenantSharesResponse>(
                service, METHODID_LIST_TENANT_SHARES)))
        .build();
  }

  private static volatile io.grpc.ServiceDescriptor serviceDescriptor;

  public static io.grpc.ServiceDescriptor getServiceDescriptor() {
    io.grpc.ServiceDescriptor result = serviceDescriptor;
    if (result == null) {
      synchronized (TenantServiceGrpc.class) {
        result = serviceDescriptor;
        if (result == null) {
          serviceDescriptor = result = io.grpc.ServiceDescriptor.newBuilder(SERVICE_NAME)
              .addMethod(getCreateTenantMethod())
              .addMethod(getGetTenantMethod())
              .addMethod(getListTenantsMethod())
              .addMethod(getUpdateTenantMethod())
              .addMethod(getDeleteTenantMethod())
              .addMethod(getGetTenantUsageMethod())
              .addMethod(getListTenantSharesMethod())
              .build();
        }
      }
    }
    return result;
  }
}
