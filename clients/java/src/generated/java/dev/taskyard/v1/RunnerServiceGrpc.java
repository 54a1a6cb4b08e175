package dev.taskyard.v1;

import static io.grpc.MethodDescriptor.generateFullMethodName;

/**
 * <pre>
 * Runners as administrators see them.  Served by taskdb; a drain reaches the agent through
 * the scheduler it is connected to.
 * </pre>
 */
@io.grpc.stub.annotations.GrpcGenerated
public final class RunnerServiceGrpc {

  private RunnerServiceGrpc() {}

  public static final java.lang.String SERVICE_NAME = "taskyard.v1.RunnerService";

  // Static method descriptors that strictly reflect the proto.
  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.GetRunnerRequest,
      dev.taskyard.v1.GetRunnerResponse> getGetRunnerMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "GetRunner",
      requestType = dev.taskyard.v1.GetRunnerRequest.class,
      responseType = dev.taskyard.v1.GetRunnerResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.GetRunnerRequest,
      dev.taskyard.v1.GetRunnerResponse> getGetRunnerMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.GetRunnerRequest, dev.taskyard.v1.GetRunnerResponse> getGetRunnerMethod;
    if ((getGetRunnerMethod = RunnerServiceGrpc.getGetRunnerMethod) == null) {
      synchronized (RunnerServiceGrpc.class) {
        if ((getGetRunnerMethod = RunnerServiceGrpc.getGetRunnerMethod) == null) {
          RunnerServiceGrpc.getGetRunnerMethod = getGetRunnerMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.GetRunnerRequest, dev.taskyard.v1.GetRunnerResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "GetRunner"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.GetRunnerRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.GetRunnerResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getGetRunnerMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.ListRunnersRequest,
      dev.taskyard.v1.ListRunnersResponse> getListRunnersMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ListRunners",
      requestType = dev.taskyard.v1.ListRunnersRequest.class,
      responseType = dev.taskyard.v1.ListRunnersResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.ListRunnersRequest,
      dev.taskyard.v1.ListRunnersResponse> getListRunnersMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.ListRunnersRequest, dev.taskyard.v1.ListRunnersResponse> getListRunnersMethod;
    if ((getListRunnersMethod = RunnerServiceGrpc.getListRunnersMethod) == null) {
      synchronized (RunnerServiceGrpc.class) {
        if ((getListRunnersMethod = RunnerServiceGrpc.getListRunnersMethod) == null) {
          RunnerServiceGrpc.getListRunnersMethod = getListRunnersMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.ListRunnersRequest, dev.taskyard.v1.ListRunnersResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ListRunners"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ListRunnersRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ListRunnersResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getListRunnersMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.UpdateRunnerRequest,
      dev.taskyard.v1.UpdateRunnerResponse> getUpdateRunnerMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "UpdateRunner",
      requestType = dev.taskyard.v1.UpdateRunnerRequest.class,
      responseType = dev.taskyard.v1.UpdateRunnerResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.UpdateRunnerRequest,
      dev.taskyard.v1.UpdateRunnerResponse> getUpdateRunnerMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.UpdateRunnerRequest, dev.taskyard.v1.UpdateRunnerResponse> getUpdateRunnerMethod;
    if ((getUpdateRunnerMethod = RunnerServiceGrpc.getUpdateRunnerMethod) == null) {
      synchronized (RunnerServiceGrpc.class) {
        if ((getUpdateRunnerMethod = RunnerServiceGrpc.getUpdateRunnerMethod) == null) {
          RunnerServiceGrpc.getUpdateRunnerMethod = getUpdateRunnerMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.UpdateRunnerRequest, dev.taskyard.v1.UpdateRunnerResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "UpdateRunner"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.UpdateRunnerRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.UpdateRunnerResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getUpdateRunnerMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.DrainRunnerRequest,
      dev.taskyard.v1.DrainRunnerResponse> getDrainRunnerMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "DrainRunner",
      requestType = dev.taskyard.v1.DrainRunnerRequest.class,
      responseType = dev.taskyard.v1.DrainRunnerResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.DrainRunnerRequest,
      dev.taskyard.v1.DrainRunnerResponse> getDrainRunnerMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.DrainRunnerRequest, dev.taskyard.v1.DrainRunnerResponse> getDrainRunnerMethod;
    if ((getDrainRunnerMethod = RunnerServiceGrpc.getDrainRunnerMethod) == null) {
      synchronized (RunnerServiceGrpc.class) {
        if ((getDrainRunnerMethod = RunnerServiceGrpc.getDrainRunnerMethod) == null) {
          RunnerServiceGrpc.getDrainRunnerMethod = getDrainRunnerMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.DrainRunnerRequest, dev.taskyard.v1.DrainRunnerResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "DrainRunner"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.DrainRunnerRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.DrainRunnerResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getDrainRunnerMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.UndrainRunnerRequest,
      dev.taskyard.v1.UndrainRunnerResponse> getUndrainRunnerMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "UndrainRunner",
      requestType = dev.taskyard.v1.UndrainRunnerRequest.class,
      responseType = dev.taskyard.v1.UndrainRunnerResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.UndrainRunnerRequest,
      dev.taskyard.v1.UndrainRunnerResponse> getUndrainRunnerMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.UndrainRunnerRequest, dev.taskyard.v1.UndrainRunnerResponse> getUndrainRunnerMethod;
    if ((getUndrainRunnerMethod = RunnerServiceGrpc.getUndrainRunnerMethod) == null) {
      synchronized (RunnerServiceGrpc.class) {
        if ((getUndrainRunnerMethod = RunnerServiceGrpc.getUndrainRunnerMethod) == null) {
          RunnerServiceGrpc.getUndrainRunnerMethod = getUndrainRunnerMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.UndrainRunnerRequest, dev.taskyard.v1.UndrainRunnerResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "UndrainRunner"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.UndrainRunnerRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.UndrainRunnerResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getUndrainRunnerMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.DeleteRunnerRequest,
      dev.taskyard.v1.DeleteRunnerResponse> getDeleteRunnerMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "DeleteRunner",
      requestType = dev.taskyard.v1.DeleteRunnerRequest.class,
      responseType = dev.taskyard.v1.DeleteRunnerResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.DeleteRunnerRequest,
      dev.taskyard.v1.DeleteRunnerResponse> getDeleteRunnerMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.DeleteRunnerRequest, dev.taskyard.v1.DeleteRunnerResponse> getDeleteRunnerMethod;
    if ((getDeleteRunnerMethod = RunnerServiceGrpc.getDeleteRunnerMethod) == null) {
      synchronized (RunnerServiceGrpc.class) {
        if ((getDeleteRunnerMethod = RunnerServiceGrpc.getDeleteRunnerMethod) == null) {
          RunnerServiceGrpc.getDeleteRunnerMethod = getDeleteRunnerMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.DeleteRunnerRequest, dev.taskyard.v1.DeleteRunnerResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "DeleteRunner"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.DeleteRunnerRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.DeleteRunnerResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getDeleteRunnerMethod;
  }

  /**
   * Creates a new async stub that supports all call types for the service
   */
  public static RunnerServiceStub newStub(io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<RunnerServiceStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<RunnerServiceStub>() {
        @java.lang.Override
        public RunnerServiceStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new RunnerServiceStub(channel, callOptions);
        }
      };
    return RunnerServiceStub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports all types of calls on the service
   */
  public static RunnerServiceBlockingV2Stub newBlockingV2Stub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<RunnerServiceBlockingV2Stub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<RunnerServiceBlockingV2Stub>() {
        @java.lang.Override
        public RunnerServiceBlockingV2Stub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new RunnerServiceBlockingV2Stub(channel, callOptions);
        }
      };
    return RunnerServiceBlockingV2Stub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports unary and streaming output calls on the service
   */
  public static RunnerServiceBlockingStub newBlockingStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<RunnerServiceBlockingStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<RunnerServiceBlockingStub>() {
        @java.lang.Override
        public RunnerServiceBlockingStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new RunnerServiceBlockingStub(channel, callOptions);
        }
      };
    return RunnerServiceBlockingStub.newStub(factory, channel);
  }

  /**
   * Creates a new ListenableFuture-style stub that supports unary calls on the service
   */
  public static RunnerServiceFutureStub newFutureStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<RunnerServiceFutureStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<RunnerServiceFutureStub>() {
        @java.lang.Override
        public RunnerServiceFutureStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new RunnerServiceFutureStub(channel, callOptions);
        }
      };
    return RunnerServiceFutureStub.newStub(factory, channel);
  }

  /**
   * <pre>
   * Runners as administrators see them.  Served by taskdb; a drain reaches the agent through
   * the scheduler it is connected to.
   * </pre>
   */
  public interface AsyncService {

    /**
     * <pre>
     * Returns a runner.
     * Errors: NOT_FOUND.
     * </pre>
     */
    default void getRunner(dev.taskyard.v1.GetRunnerRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.GetRunnerResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getGetRunnerMethod(), responseObserver);
    }

    /**
     * <pre>
     * Lists runners.  Filter fields: id, state, occupancy, registration.backend_type,
     * registration.version, registration.task_types:X, labels.KEY, heartbeat_time.
     * Errors: INVALID_ARGUMENT (FILTER_INVALID, PAGE_TOKEN_INVALID).
     * </pre>
     */
    default void listRunners(dev.taskyard.v1.ListRunnersRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ListRunnersResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getListRunnersMethod(), responseObserver);
    }

    /**
     * <pre>
     * Changes admin_labels.  Safe to repeat, but with a resource_version: the first call has
     * moved it on.
     * Errors: NOT_FOUND; ABORTED (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    default void updateRunner(dev.taskyard.v1.UpdateRunnerRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.UpdateRunnerResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getUpdateRunnerMethod(), responseObserver);
    }

    /**
     * <pre>
     * No new work from now on; returns at once.  Holds until UndrainRunner, also over
     * reconnects.  Idempotent.
     * Errors: NOT_FOUND.
     * </pre>
     */
    default void drainRunner(dev.taskyard.v1.DrainRunnerRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.DrainRunnerResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getDrainRunnerMethod(), responseObserver);
    }

    /**
     * <pre>
     * Takes work again.  Idempotent.
     * Errors: NOT_FOUND.
     * </pre>
     */
    default void undrainRunner(dev.taskyard.v1.UndrainRunnerRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.UndrainRunnerResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getUndrainRunnerMethod(), responseObserver);
    }

    /**
     * <pre>
     * Forgets a runner.  With force its leases are revoked (REDISTRIBUTING) and its stream is
     * ended; the id may register anew.  A repeat is NOT_FOUND.
     * Errors: NOT_FOUND; FAILED_PRECONDITION (RUNNER_BUSY).
     * </pre>
     */
    default void deleteRunner(dev.taskyard.v1.DeleteRunnerRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.DeleteRunnerResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getDeleteRunnerMethod(), responseObserver);
    }
  }

  /**
   * Base class for the server implementation of the service RunnerService.
   * <pre>
   * Runners as administrators see them.  Served by taskdb; a drain reaches the agent through
   * the scheduler it is connected to.
   * </pre>
   */
  public static abstract class RunnerServiceImplBase
      implements io.grpc.BindableService, AsyncService {

    @java.lang.Override public final io.grpc.ServerServiceDefinition bindService() {
      return RunnerServiceGrpc.bindService(this);
    }
  }

  /**
   * A stub to allow clients to do asynchronous rpc calls to service RunnerService.
   * <pre>
   * Runners as administrators see them.  Served by taskdb; a drain reaches the agent through
   * the scheduler it is connected to.
   * </pre>
   */
  public static final class RunnerServiceStub
      extends io.grpc.stub.AbstractAsyncStub<RunnerServiceStub> {
    private RunnerServiceStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected RunnerServiceStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new RunnerServiceStub(channel, callOptions);
    }

    /**
     * <pre>
     * Returns a runner.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public void getRunner(dev.taskyard.v1.GetRunnerRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.GetRunnerResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getGetRunnerMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Lists runners.  Filter fields: id, state, occupancy, registration.backend_type,
     * registration.version, registration.task_types:X, labels.KEY, heartbeat_time.
     * Errors: INVALID_ARGUMENT (FILTER_INVALID, PAGE_TOKEN_INVALID).
     * </pre>
     */
    public void listRunners(dev.taskyard.v1.ListRunnersRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ListRunnersResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getListRunnersMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Changes admin_labels.  Safe to repeat, but with a resource_version: the first call has
     * moved it on.
     * Errors: NOT_FOUND; ABORTED (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    public void updateRunner(dev.taskyard.v1.UpdateRunnerRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.UpdateRunnerResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getUpdateRunnerMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * No new work from now on; returns at once.  Holds until UndrainRunner, also over
     * reconnects.  Idempotent.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public void drainRunner(dev.taskyard.v1.DrainRunnerRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.DrainRunnerResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getDrainRunnerMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Takes work again.  Idempotent.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public void undrainRunner(dev.taskyard.v1.UndrainRunnerRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.UndrainRunnerResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getUndrainRunnerMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Forgets a runner.  With force its leases are revoked (REDISTRIBUTING) and its stream is
     * ended; the id may register anew.  A repeat is NOT_FOUND.
     * Errors: NOT_FOUND; FAILED_PRECONDITION (RUNNER_BUSY).
     * </pre>
     */
    public void deleteRunner(dev.taskyard.v1.DeleteRunnerRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.DeleteRunnerResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getDeleteRunnerMethod(), getCallOptions()), request, responseObserver);
    }
  }

  /**
   * A stub to allow clients to do synchronous rpc calls to service RunnerService.
   * <pre>
   * Runners as administrators see them.  Served by taskdb; a drain reaches the agent through
   * the scheduler it is connected to.
   * </pre>
   */
  public static final class RunnerServiceBlockingV2Stub
      extends io.grpc.stub.AbstractBlockingStub<RunnerServiceBlockingV2Stub> {
    private RunnerServiceBlockingV2Stub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected RunnerServiceBlockingV2Stub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new RunnerServiceBlockingV2Stub(channel, callOptions);
    }

    /**
     * <pre>
     * Returns a runner.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public dev.taskyard.v1.GetRunnerResponse getRunner(dev.taskyard.v1.GetRunnerRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getGetRunnerMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Lists runners.  Filter fields: id, state, occupancy, registration.backend_type,
     * registration.version, registration.task_types:X, labels.KEY, heartbeat_time.
     * Errors: INVALID_ARGUMENT (FILTER_INVALID, PAGE_TOKEN_INVALID).
     * </pre>
     */
    public dev.taskyard.v1.ListRunnersResponse listRunners(dev.taskyard.v1.ListRunnersRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getListRunnersMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Changes admin_labels.  Safe to repeat, but with a resource_version: the first call has
     * moved it on.
     * Errors: NOT_FOUND; ABORTED (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    public dev.taskyard.v1.UpdateRunnerResponse updateRunner(dev.taskyard.v1.UpdateRunnerRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getUpdateRunnerMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * No new work from now on; returns at once.  Holds until UndrainRunner, also over
     * reconnects.  Idempotent.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public dev.taskyard.v1.DrainRunnerResponse drainRunner(dev.taskyard.v1.DrainRunnerRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getDrainRunnerMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Takes work again.  Idempotent.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public dev.taskyard.v1.UndrainRunnerResponse undrainRunner(dev.taskyard.v1.UndrainRunnerRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getUndrainRunnerMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Forgets a runner.  With force its leases are revoked (REDISTRIBUTING) and its stream is
     * ended; the id may register anew.  A repeat is NOT_FOUND.
     * Errors: NOT_FOUND; FAILED_PRECONDITION (RUNNER_BUSY).
     * </pre>
     */
    public dev.taskyard.v1.DeleteRunnerResponse deleteRunner(dev.taskyard.v1.DeleteRunnerRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getDeleteRunnerMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do limited synchronous rpc calls to service RunnerService.
   * <pre>
   * Runners as administrators see them.  Served by taskdb; a drain reaches the agent through
   * the scheduler it is connected to.
   * </pre>
   */
  public static final class RunnerServiceBlockingStub
      extends io.grpc.stub.AbstractBlockingStub<RunnerServiceBlockingStub> {
    private RunnerServiceBlockingStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected RunnerServiceBlockingStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new RunnerServiceBlockingStub(channel, callOptions);
    }

    /**
     * <pre>
     * Returns a runner.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public dev.taskyard.v1.GetRunnerResponse getRunner(dev.taskyard.v1.GetRunnerRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getGetRunnerMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Lists runners.  Filter fields: id, state, occupancy, registration.backend_type,
     * registration.version, registration.task_types:X, labels.KEY, heartbeat_time.
     * Errors: INVALID_ARGUMENT (FILTER_INVALID, PAGE_TOKEN_INVALID).
     * </pre>
     */
    public dev.taskyard.v1.ListRunnersResponse listRunners(dev.taskyard.v1.ListRunnersRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getListRunnersMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Changes admin_labels.  Safe to repeat, but with a resource_version: the first call has
     * moved it on.
     * Errors: NOT_FOUND; ABORTED (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    public dev.taskyard.v1.UpdateRunnerResponse updateRunner(dev.taskyard.v1.UpdateRunnerRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getUpdateRunnerMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * No new work from now on; returns at once.  Holds until UndrainRunner, also over
     * reconnects.  Idempotent.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public dev.taskyard.v1.DrainRunnerResponse drainRunner(dev.taskyard.v1.DrainRunnerRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getDrainRunnerMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Takes work again.  Idempotent.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public dev.taskyard.v1.UndrainRunnerResponse undrainRunner(dev.taskyard.v1.UndrainRunnerRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getUndrainRunnerMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Forgets a runner.  With force its leases are revoked (REDISTRIBUTING) and its stream is
     * ended; the id may register anew.  A repeat is NOT_FOUND.
     * Errors: NOT_FOUND; FAILED_PRECONDITION (RUNNER_BUSY).
     * </pre>
     */
    public dev.taskyard.v1.DeleteRunnerResponse deleteRunner(dev.taskyard.v1.DeleteRunnerRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getDeleteRunnerMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do ListenableFuture-style rpc calls to service RunnerService.
   * <pre>
   * Runners as administrators see them.  Served by taskdb; a drain reaches the agent through
   * the scheduler it is connected to.
   * </pre>
   */
  public static final class RunnerServiceFutureStub
      extends io.grpc.stub.AbstractFutureStub<RunnerServiceFutureStub> {
    private RunnerServiceFutureStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected RunnerServiceFutureStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new RunnerServiceFutureStub(channel, callOptions);
    }

    /**
     * <pre>
     * Returns a runner.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.GetRunnerResponse> getRunner(
        dev.taskyard.v1.GetRunnerRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getGetRunnerMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Lists runners.  Filter fields: id, state, occupancy, registration.backend_type,
     * registration.version, registration.task_types:X, labels.KEY, heartbeat_time.
     * Errors: INVALID_ARGUMENT (FILTER_INVALID, PAGE_TOKEN_INVALID).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.ListRunnersResponse> listRunners(
        dev.taskyard.v1.ListRunnersRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getListRunnersMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Changes admin_labels.  Safe to repeat, but with a resource_version: the first call has
     * moved it on.
     * Errors: NOT_FOUND; ABORTED (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.UpdateRunnerResponse> updateRunner(
        dev.taskyard.v1.UpdateRunnerRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getUpdateRunnerMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * No new work from now on; returns at once.  Holds until UndrainRunner, also over
     * reconnects.  Idempotent.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.DrainRunnerResponse> drainRunner(
        dev.taskyard.v1.DrainRunnerRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getDrainRunnerMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Takes work again.  Idempotent.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.UndrainRunnerResponse> undrainRunner(
        dev.taskyard.v1.UndrainRunnerRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getUndrainRunnerMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Forgets a runner.  With force its leases are revoked (REDISTRIBUTING) and its stream is
     * ended; the id may register anew.  A repeat is NOT_FOUND.
     * Errors: NOT_FOUND; FAILED_PRECONDITION (RUNNER_BUSY).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.DeleteRunnerResponse> deleteRunner(
        dev.taskyard.v1.DeleteRunnerRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getDeleteRunnerMethod(), getCallOptions()), request);
    }
  }

  private static final int METHODID_GET_RUNNER = 0;
  private static final int METHODID_LIST_RUNNERS = 1;
  private static final int METHODID_UPDATE_RUNNER = 2;
  private static final int METHODID_DRAIN_RUNNER = 3;
  private static final int METHODID_UNDRAIN_RUNNER = 4;
  private static final int METHODID_DELETE_RUNNER = 5;

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
        case METHODID_GET_RUNNER:
          serviceImpl.getRunner((dev.taskyard.v1.GetRunnerRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.GetRunnerResponse>) responseObserver);
          break;
        case METHODID_LIST_RUNNERS:
          serviceImpl.listRunners((dev.taskyard.v1.ListRunnersRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.ListRunnersResponse>) responseObserver);
          break;
        case METHODID_UPDATE_RUNNER:
          serviceImpl.updateRunner((dev.taskyard.v1.UpdateRunnerRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.UpdateRunnerResponse>) responseObserver);
          break;
        case METHODID_DRAIN_RUNNER:
          serviceImpl.drainRunner((dev.taskyard.v1.DrainRunnerRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.DrainRunnerResponse>) responseObserver);
          break;
        case METHODID_UNDRAIN_RUNNER:
          serviceImpl.undrainRunner((dev.taskyard.v1.UndrainRunnerRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.UndrainRunnerResponse>) responseObserver);
          break;
        case METHODID_DELETE_RUNNER:
          serviceImpl.deleteRunner((dev.taskyard.v1.DeleteRunnerRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.DeleteRunnerResponse>) responseObserver);
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
          getGetRunnerMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.GetRunnerRequest,
              dev.taskyard.v1.GetRunnerResponse>(
                service, METHODID_GET_RUNNER)))
        .addMethod(
          getListRunnersMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.ListRunnersRequest,
              dev.taskyard.v1.ListRunnersResponse>(
                service, METHODID_LIST_RUNNERS)))
        .addMethod(
          getUpdateRunnerMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.UpdateRunnerRequest,
              dev.taskyard.v1.UpdateRunnerResponse>(
                service, METHODID_UPDATE_RUNNER)))
        .addMethod(
          getDrainRunnerMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.DrainRunnerRequest,
              dev.taskyard.v1.DrainRunnerResponse>(
                service, METHODID_DRAIN_RUNNER)))
        .addMethod(
          getUndrainRunnerMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.UndrainRunnerRequest,
              dev.taskyard.v1.UndrainRunnerResponse>(
                service, METHODID_UNDRAIN_RUNNER)))
        .addMethod(
          getDeleteRunnerMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.DeleteRunnerRequest,
              dev.taskyard.v1.DeleteRunnerResponse>(
                service, METHODID_DELETE_RUNNER)))
        .build();
  }

  private static volatile io.grpc.ServiceDescriptor serviceDescriptor;

  public static io.grpc.ServiceDescriptor getServiceDescriptor() {
    io.grpc.ServiceDescriptor result = serviceDescriptor;
    if (result == null) {
      synchronized (RunnerServiceGrpc.class) {
        result = serviceDescriptor;
        if (result == null) {
          serviceDescriptor = result = io.grpc.ServiceDescriptor.newBuilder(SERVICE_NAME)
              .addMethod(getGetRunnerMethod())
              .addMethod(getListRunnersMethod())
              .addMethod(getUpdateRunnerMethod())
              .addMethod(getDrainRunnerMethod())
              .addMethod(getUndrainRunnerMethod())
              .addMethod(getDeleteRunnerMethod())
              .build();
        }
      }
    }
    return result;
  }
}
