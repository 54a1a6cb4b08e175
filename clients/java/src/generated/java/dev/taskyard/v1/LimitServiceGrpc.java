package dev.taskyard.v1;

import static io.grpc.MethodDescriptor.generateFullMethodName;

/**
 * <pre>
 * Named limits, which tasks name in spec.limits.  Served by taskdb.
 * </pre>
 */
@io.grpc.stub.annotations.GrpcGenerated
public final class LimitServiceGrpc {

  private LimitServiceGrpc() {}

  public static final java.lang.String SERVICE_NAME = "taskyard.v1.LimitService";

  // Static method descriptors that strictly reflect the proto.
  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.CreateLimitRequest,
      dev.taskyard.v1.CreateLimitResponse> getCreateLimitMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "CreateLimit",
      requestType = dev.taskyard.v1.CreateLimitRequest.class,
      responseType = dev.taskyard.v1.CreateLimitResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.CreateLimitRequest,
      dev.taskyard.v1.CreateLimitResponse> getCreateLimitMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.CreateLimitRequest, dev.taskyard.v1.CreateLimitResponse> getCreateLimitMethod;
    if ((getCreateLimitMethod = LimitServiceGrpc.getCreateLimitMethod) == null) {
      synchronized (LimitServiceGrpc.class) {
        if ((getCreateLimitMethod = LimitServiceGrpc.getCreateLimitMethod) == null) {
          LimitServiceGrpc.getCreateLimitMethod = getCreateLimitMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.CreateLimitRequest, dev.taskyard.v1.CreateLimitResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "CreateLimit"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.CreateLimitRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.CreateLimitResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getCreateLimitMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.GetLimitRequest,
      dev.taskyard.v1.GetLimitResponse> getGetLimitMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "GetLimit",
      requestType = dev.taskyard.v1.GetLimitRequest.class,
      responseType = dev.taskyard.v1.GetLimitResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.GetLimitRequest,
      dev.taskyard.v1.GetLimitResponse> getGetLimitMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.GetLimitRequest, dev.taskyard.v1.GetLimitResponse> getGetLimitMethod;
    if ((getGetLimitMethod = LimitServiceGrpc.getGetLimitMethod) == null) {
      synchronized (LimitServiceGrpc.class) {
        if ((getGetLimitMethod = LimitServiceGrpc.getGetLimitMethod) == null) {
          LimitServiceGrpc.getGetLimitMethod = getGetLimitMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.GetLimitRequest, dev.taskyard.v1.GetLimitResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "GetLimit"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.GetLimitRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.GetLimitResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getGetLimitMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.ListLimitsRequest,
      dev.taskyard.v1.ListLimitsResponse> getListLimitsMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ListLimits",
      requestType = dev.taskyard.v1.ListLimitsRequest.class,
      responseType = dev.taskyard.v1.ListLimitsResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.ListLimitsRequest,
      dev.taskyard.v1.ListLimitsResponse> getListLimitsMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.ListLimitsRequest, dev.taskyard.v1.ListLimitsResponse> getListLimitsMethod;
    if ((getListLimitsMethod = LimitServiceGrpc.getListLimitsMethod) == null) {
      synchronized (LimitServiceGrpc.class) {
        if ((getListLimitsMethod = LimitServiceGrpc.getListLimitsMethod) == null) {
          LimitServiceGrpc.getListLimitsMethod = getListLimitsMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.ListLimitsRequest, dev.taskyard.v1.ListLimitsResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ListLimits"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ListLimitsRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ListLimitsResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getListLimitsMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.UpdateLimitRequest,
      dev.taskyard.v1.UpdateLimitResponse> getUpdateLimitMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "UpdateLimit",
      requestType = dev.taskyard.v1.UpdateLimitRequest.class,
      responseType = dev.taskyard.v1.UpdateLimitResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.UpdateLimitRequest,
      dev.taskyard.v1.UpdateLimitResponse> getUpdateLimitMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.UpdateLimitRequest, dev.taskyard.v1.UpdateLimitResponse> getUpdateLimitMethod;
    if ((getUpdateLimitMethod = LimitServiceGrpc.getUpdateLimitMethod) == null) {
      synchronized (LimitServiceGrpc.class) {
        if ((getUpdateLimitMethod = LimitServiceGrpc.getUpdateLimitMethod) == null) {
          LimitServiceGrpc.getUpdateLimitMethod = getUpdateLimitMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.UpdateLimitRequest, dev.taskyard.v1.UpdateLimitResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "UpdateLimit"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.UpdateLimitRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.UpdateLimitResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getUpdateLimitMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.DeleteLimitRequest,
      dev.taskyard.v1.DeleteLimitResponse> getDeleteLimitMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "DeleteLimit",
      requestType = dev.taskyard.v1.DeleteLimitRequest.class,
      responseType = dev.taskyard.v1.DeleteLimitResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.DeleteLimitRequest,
      dev.taskyard.v1.DeleteLimitResponse> getDeleteLimitMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.DeleteLimitRequest, dev.taskyard.v1.DeleteLimitResponse> getDeleteLimitMethod;
    if ((getDeleteLimitMethod = LimitServiceGrpc.getDeleteLimitMethod) == null) {
      synchronized (LimitServiceGrpc.class) {
        if ((getDeleteLimitMethod = LimitServiceGrpc.getDeleteLimitMethod) == null) {
          LimitServiceGrpc.getDeleteLimitMethod = getDeleteLimitMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.DeleteLimitRequest, dev.taskyard.v1.DeleteLimitResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "DeleteLimit"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.DeleteLimitRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.DeleteLimitResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getDeleteLimitMethod;
  }

  /**
   * Creates a new async stub that supports all call types for the service
   */
  public static LimitServiceStub newStub(io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<LimitServiceStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<LimitServiceStub>() {
        @java.lang.Override
        public LimitServiceStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new LimitServiceStub(channel, callOptions);
        }
      };
    return LimitServiceStub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports all types of calls on the service
   */
  public static LimitServiceBlockingV2Stub newBlockingV2Stub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<LimitServiceBlockingV2Stub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<LimitServiceBlockingV2Stub>() {
        @java.lang.Override
        public LimitServiceBlockingV2Stub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new LimitServiceBlockingV2Stub(channel, callOptions);
        }
      };
    return LimitServiceBlockingV2Stub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports unary and streaming output calls on the service
   */
  public static LimitServiceBlockingStub newBlockingStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<LimitServiceBlockingStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<LimitServiceBlockingStub>() {
        @java.lang.Override
        public LimitServiceBlockingStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new LimitServiceBlockingStub(channel, callOptions);
        }
      };
    return LimitServiceBlockingStub.newStub(factory, channel);
  }

  /**
   * Creates a new ListenableFuture-style stub that supports unary calls on the service
   */
  public static LimitServiceFutureStub newFutureStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<LimitServiceFutureStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<LimitServiceFutureStub>() {
        @java.lang.Override
        public LimitServiceFutureStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new LimitServiceFutureStub(channel, callOptions);
        }
      };
    return LimitServiceFutureStub.newStub(factory, channel);
  }

  /**
   * <pre>
   * Named limits, which tasks name in spec.limits.  Served by taskdb.
   * </pre>
   */
  public interface AsyncService {

    /**
     * <pre>
     * Creates a limit.  A repeat is ALREADY_EXISTS.
     * Errors: NOT_FOUND (NOT_FOUND: tenant); ALREADY_EXISTS; INVALID_ARGUMENT (FIELD_INVALID: it
     * bounds nothing, 1,000 limits exist); FAILED_PRECONDITION (TENANT_SUSPENDED).
     * </pre>
     */
    default void createLimit(dev.taskyard.v1.CreateLimitRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.CreateLimitResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getCreateLimitMethod(), responseObserver);
    }

    /**
     * <pre>
     * Returns a limit, with what is held and how many wait.
     * Errors: NOT_FOUND.
     * </pre>
     */
    default void getLimit(dev.taskyard.v1.GetLimitRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.GetLimitResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getGetLimitMethod(), responseObserver);
    }

    /**
     * <pre>
     * Lists limits, by id.
     * Errors: INVALID_ARGUMENT (PAGE_TOKEN_INVALID).
     * </pre>
     */
    default void listLimits(dev.taskyard.v1.ListLimitsRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ListLimitsResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getListLimitsMethod(), responseObserver);
    }

    /**
     * <pre>
     * Changes a limit.  A higher one admits what waits within about a second; under a lower one
     * admitted tasks go on, and a task with more units than it has is admitted alone.  Safe to
     * repeat, but with a resource_version: the first call has moved it on.
     * Errors: NOT_FOUND (NOT_FOUND: unless allow_missing); INVALID_ARGUMENT (FIELD_INVALID,
     * FIELD_IMMUTABLE); ABORTED (RESOURCE_VERSION_MISMATCH); FAILED_PRECONDITION (TENANT_SUSPENDED).
     * </pre>
     */
    default void updateLimit(dev.taskyard.v1.UpdateLimitRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.UpdateLimitResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getUpdateLimitMethod(), responseObserver);
    }

    /**
     * <pre>
     * Deletes a limit: it holds no task back any more, and what waits for it is admitted.  New tasks
     * may not name it.  A repeat is NOT_FOUND.
     * Errors: NOT_FOUND; ABORTED (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    default void deleteLimit(dev.taskyard.v1.DeleteLimitRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.DeleteLimitResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getDeleteLimitMethod(), responseObserver);
    }
  }

  /**
   * Base class for the server implementation of the service LimitService.
   * <pre>
   * Named limits, which tasks name in spec.limits.  Served by taskdb.
   * </pre>
   */
  public static abstract class LimitServiceImplBase
      implements io.grpc.BindableService, AsyncService {

    @java.lang.Override public final io.grpc.ServerServiceDefinition bindService() {
      return LimitServiceGrpc.bindService(this);
    }
  }

  /**
   * A stub to allow clients to do asynchronous rpc calls to service LimitService.
   * <pre>
   * Named limits, which tasks name in spec.limits.  Served by taskdb.
   * </pre>
   */
  public static final class LimitServiceStub
      extends io.grpc.stub.AbstractAsyncStub<LimitServiceStub> {
    private LimitServiceStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected LimitServiceStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new LimitServiceStub(channel, callOptions);
    }

    /**
     * <pre>
     * Creates a limit.  A repeat is ALREADY_EXISTS.
     * Errors: NOT_FOUND (NOT_FOUND: tenant); ALREADY_EXISTS; INVALID_ARGUMENT (FIELD_INVALID: it
     * bounds nothing, 1,000 limits exist); FAILED_PRECONDITION (TENANT_SUSPENDED).
     * </pre>
     */
    public void createLimit(dev.taskyard.v1.CreateLimitRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.CreateLimitResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getCreateLimitMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Returns a limit, with what is held and how many wait.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public void getLimit(dev.taskyard.v1.GetLimitRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.GetLimitResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getGetLimitMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Lists limits, by id.
     * Errors: INVALID_ARGUMENT (PAGE_TOKEN_INVALID).
     * </pre>
     */
    public void listLimits(dev.taskyard.v1.ListLimitsRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ListLimitsResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getListLimitsMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Changes a limit.  A higher one admits what waits within about a second; under a lower one
     * admitted tasks go on, and a task with more units than it has is admitted alone.  Safe to
     * repeat, but with a resource_version: the first call has moved it on.
     * Errors: NOT_FOUND (NOT_FOUND: unless allow_missing); INVALID_ARGUMENT (FIELD_INVALID,
     * FIELD_IMMUTABLE); ABORTED (RESOURCE_VERSION_MISMATCH); FAILED_PRECONDITION (TENANT_SUSPENDED).
     * </pre>
     */
    public void updateLimit(dev.taskyard.v1.UpdateLimitRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.UpdateLimitResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getUpdateLimitMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Deletes a limit: it holds no task back any more, and what waits for it is admitted.  New tasks
     * may not name it.  A repeat is NOT_FOUND.
     * Errors: NOT_FOUND; ABORTED (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    public void deleteLimit(dev.taskyard.v1.DeleteLimitRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.DeleteLimitResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getDeleteLimitMethod(), getCallOptions()), request, responseObserver);
    }
  }

  /**
   * A stub to allow clients to do synchronous rpc calls to service LimitService.
   * <pre>
   * Named limits, which tasks name in spec.limits.  Served by taskdb.
   * </pre>
   */
  public static final class LimitServiceBlockingV2Stub
      extends io.grpc.stub.AbstractBlockingStub<LimitServiceBlockingV2Stub> {
    private LimitServiceBlockingV2Stub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected LimitServiceBlockingV2Stub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new LimitServiceBlockingV2Stub(channel, callOptions);
    }

    /**
     * <pre>
     * Creates a limit.  A repeat is ALREADY_EXISTS.
     * Errors: NOT_FOUND (NOT_FOUND: tenant); ALREADY_EXISTS; INVALID_ARGUMENT (FIELD_INVALID: it
     * bounds nothing, 1,000 limits exist); FAILED_PRECONDITION (TENANT_SUSPENDED).
     * </pre>
     */
    public dev.taskyard.v1.CreateLimitResponse createLimit(dev.taskyard.v1.CreateLimitRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getCreateLimitMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Returns a limit, with what is held and how many wait.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public dev.taskyard.v1.GetLimitResponse getLimit(dev.taskyard.v1.GetLimitRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getGetLimitMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Lists limits, by id.
     * Errors: INVALID_ARGUMENT (PAGE_TOKEN_INVALID).
     * </pre>
     */
    public dev.taskyard.v1.ListLimitsResponse listLimits(dev.taskyard.v1.ListLimitsRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getListLimitsMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Changes a limit.  A higher one admits what waits within about a second; under a lower one
     * admitted tasks go on, and a task with more units than it has is admitted alone.  Safe to
     * repeat, but with a resource_version: the first call has moved it on.
     * Errors: NOT_FOUND (NOT_FOUND: unless allow_missing); INVALID_ARGUMENT (FIELD_INVALID,
     * FIELD_IMMUTABLE); ABORTED (RESOURCE_VERSION_MISMATCH); FAILED_PRECONDITION (TENANT_SUSPENDED).
     * </pre>
     */
    public dev.taskyard.v1.UpdateLimitResponse updateLimit(dev.taskyard.v1.UpdateLimitRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getUpdateLimitMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Deletes a limit: it holds no task back any more, and what waits for it is admitted.  New tasks
     * may not name it.  A repeat is NOT_FOUND.
     * Errors: NOT_FOUND; ABORTED (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    public dev.taskyard.v1.DeleteLimitResponse deleteLimit(dev.taskyard.v1.DeleteLimitRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getDeleteLimitMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do limited synchronous rpc calls to service LimitService.
   * <pre>
   * Named limits, which tasks name in spec.limits.  Served by taskdb.
   * </pre>
   */
  public static final class LimitServiceBlockingStub
      extends io.grpc.stub.AbstractBlockingStub<LimitServiceBlockingStub> {
    private LimitServiceBlockingStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected LimitServiceBlockingStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new LimitServiceBlockingStub(channel, callOptions);
    }

    /**
     * <pre>
     * Creates a limit.  A repeat is ALREADY_EXISTS.
     * Errors: NOT_FOUND (NOT_FOUND: tenant); ALREADY_EXISTS; INVALID_ARGUMENT (FIELD_INVALID: it
     * bounds nothing, 1,000 limits exist); FAILED_PRECONDITION (TENANT_SUSPENDED).
     * </pre>
     */
    public dev.taskyard.v1.CreateLimitResponse createLimit(dev.taskyard.v1.CreateLimitRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getCreateLimitMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Returns a limit, with what is held and how many wait.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public dev.taskyard.v1.GetLimitResponse getLimit(dev.taskyard.v1.GetLimitRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getGetLimitMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Lists limits, by id.
     * Errors: INVALID_ARGUMENT (PAGE_TOKEN_INVALID).
     * </pre>
     */
    public dev.taskyard.v1.ListLimitsResponse listLimits(dev.taskyard.v1.ListLimitsRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getListLimitsMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Changes a limit.  A higher one admits what waits within about a second; under a lower one
     * admitted tasks go on, and a task with more units than it has is admitted alone.  Safe to
     * repeat, but with a resource_version: the first call has moved it on.
     * Errors: NOT_FOUND (NOT_FOUND: unless allow_missing); INVALID_ARGUMENT (FIELD_INVALID,
     * FIELD_IMMUTABLE); ABORTED (RESOURCE_VERSION_MISMATCH); FAILED_PRECONDITION (TENANT_SUSPENDED).
     * </pre>
     */
    public dev.taskyard.v1.UpdateLimitResponse updateLimit(dev.taskyard.v1.UpdateLimitRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getUpdateLimitMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Deletes a limit: it holds no task back any more, and what waits for it is admitted.  New tasks
     * may not name it.  A repeat is NOT_FOUND.
     * Errors: NOT_FOUND; ABORTED (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    public dev.taskyard.v1.DeleteLimitResponse deleteLimit(dev.taskyard.v1.DeleteLimitRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getDeleteLimitMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do ListenableFuture-style rpc calls to service LimitService.
   * <pre>
   * Named limits, which tasks name in spec.limits.  Served by taskdb.
   * </pre>
   */
  public static final class LimitServiceFutureStub
      extends io.grpc.stub.AbstractFutureStub<LimitServiceFutureStub> {
    private LimitServiceFutureStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected LimitServiceFutureStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new LimitServiceFutureStub(channel, callOptions);
    }

    /**
     * <pre>
     * Creates a limit.  A repeat is ALREADY_EXISTS.
     * Errors: NOT_FOUND (NOT_FOUND: tenant); ALREADY_EXISTS; INVALID_ARGUMENT (FIELD_INVALID: it
     * bounds nothing, 1,000 limits exist); FAILED_PRECONDITION (TENANT_SUSPENDED).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.CreateLimitResponse> createLimit(
        dev.taskyard.v1.CreateLimitRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getCreateLimitMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Returns a limit, with what is held and how many wait.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.GetLimitResponse> getLimit(
        dev.taskyard.v1.GetLimitRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getGetLimitMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Lists limits, by id.
     * Errors: INVALID_ARGUMENT (PAGE_TOKEN_INVALID).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.ListLimitsResponse> listLimits(
        dev.taskyard.v1.ListLimitsRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getListLimitsMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Changes a limit.  A higher one admits what waits within about a second; under a lower one
     * admitted tasks go on, and a task with more units than it has is admitted alone.  Safe to
     * repeat, but with a resource_version: the first call has moved it on.
     * Errors: NOT_FOUND (NOT_FOUND: unless allow_missing); INVALID_ARGUMENT (FIELD_INVALID,
     * FIELD_IMMUTABLE); ABORTED (RESOURCE_VERSION_MISMATCH); FAILED_PRECONDITION (TENANT_SUSPENDED).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.UpdateLimitResponse> updateLimit(
        dev.taskyard.v1.UpdateLimitRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getUpdateLimitMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Deletes a limit: it holds no task back any more, and what waits for it is admitted.  New tasks
     * may not name it.  A repeat is NOT_FOUND.
     * Errors: NOT_FOUND; ABORTED (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.DeleteLimitResponse> deleteLimit(
        dev.taskyard.v1.DeleteLimitRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getDeleteLimitMethod(), getCallOptions()), request);
    }
  }

  private static final int METHODID_CREATE_LIMIT = 0;
  private static final int METHODID_GET_LIMIT = 1;
  private static final int METHODID_LIST_LIMITS = 2;
  private static final int METHODID_UPDATE_LIMIT = 3;
  private static final int METHODID_DELETE_LIMIT = 4;

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
        case METHODID_CREATE_LIMIT:
          serviceImpl.createLimit((dev.taskyard.v1.CreateLimitRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.CreateLimitResponse>) responseObserver);
          break;
        case METHODID_GET_LIMIT:
          serviceImpl.getLimit((dev.taskyard.v1.GetLimitRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.GetLimitResponse>) responseObserver);
          break;
        case METHODID_LIST_LIMITS:
          serviceImpl.listLimits((dev.taskyard.v1.ListLimitsRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.ListLimitsResponse>) responseObserver);
          break;
        case METHODID_UPDATE_LIMIT:
          serviceImpl.updateLimit((dev.taskyard.v1.UpdateLimitRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.UpdateLimitResponse>) responseObserver);
          break;
        case METHODID_DELETE_LIMIT:
          serviceImpl.deleteLimit((dev.taskyard.v1.DeleteLimitRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.DeleteLimitResponse>) responseObserver);
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
          getCreateLimitMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.CreateLimitRequest,
              dev.taskyard.v1.CreateLimitResponse>(
                service, METHODID_CREATE_LIMIT)))
        .addMethod(
          getGetLimitMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.GetLimitRequest,
              dev.taskyard.v1.GetLimitResponse>(
                service, METHODID_GET_LIMIT)))
        .addMethod(
          getListLimitsMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.ListLimitsRequest,
              dev.taskyard.v1.ListLimitsResponse>(
                service, METHODID_LIST_LIMITS)))
        .addMethod(
          getUpdateLimitMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.UpdateLimitRequest,
              dev.taskyard.v1.UpdateLimitResponse>(
                service, METHODID_UPDATE_LIMIT)))
        .addMethod(
          getDeleteLimitMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.DeleteLimitRequest,
              dev.taskyard.v1.DeleteLimitResponse>(
                service, METHODID_DELETE_LIMIT)))
        .build();
  }

  private static volatile io.grpc.ServiceDescriptor serviceDescriptor;

  public static io.grpc.ServiceDescriptor getServiceDescriptor() {
    io.grpc.ServiceDescriptor result = serviceDescriptor;
    if (result == null) {
      synchronized (LimitServiceGrpc.class) {
        result = serviceDescriptor;
        if (result == null) {
          serviceDescriptor = result = io.grpc.ServiceDescriptor.newBuilder(SERVICE_NAME)
              .addMethod(getCreateLimitMethod())
              .addMethod(getGetLimitMethod())
              .addMethod(getListLimitsMethod())
              .addMethod(getUpdateLimitMethod())
              .addMethod(getDeleteLimitMethod())
              .build();
        }
      }
    }
    return result;
  }
}
