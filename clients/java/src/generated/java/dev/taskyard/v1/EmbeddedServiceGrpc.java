package dev.taskyard.v1;

import static io.grpc.MethodDescriptor.generateFullMethodName;

/**
 * <pre>
 * Create, claim, renew, report and logs of embedded tasks.
 * </pre>
 */
@io.grpc.stub.annotations.GrpcGenerated
public final class EmbeddedServiceGrpc {

  private EmbeddedServiceGrpc() {}

  public static final java.lang.String SERVICE_NAME = "taskyard.v1.EmbeddedService";

  // Static method descriptors that strictly reflect the proto.
  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.CreateEmbeddedTaskRequest,
      dev.taskyard.v1.CreateEmbeddedTaskResponse> getCreateEmbeddedTaskMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "CreateEmbeddedTask",
      requestType = dev.taskyard.v1.CreateEmbeddedTaskRequest.class,
      responseType = dev.taskyard.v1.CreateEmbeddedTaskResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.CreateEmbeddedTaskRequest,
      dev.taskyard.v1.CreateEmbeddedTaskResponse> getCreateEmbeddedTaskMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.CreateEmbeddedTaskRequest, dev.taskyard.v1.CreateEmbeddedTaskResponse> getCreateEmbeddedTaskMethod;
    if ((getCreateEmbeddedTaskMethod = EmbeddedServiceGrpc.getCreateEmbeddedTaskMethod) == null) {
      synchronized (EmbeddedServiceGrpc.class) {
        if ((getCreateEmbeddedTaskMethod = EmbeddedServiceGrpc.getCreateEmbeddedTaskMethod) == null) {
          EmbeddedServiceGrpc.getCreateEmbeddedTaskMethod = getCreateEmbeddedTaskMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.CreateEmbeddedTaskRequest, dev.taskyard.v1.CreateEmbeddedTaskResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "CreateEmbeddedTask"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.CreateEmbeddedTaskRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.CreateEmbeddedTaskResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getCreateEmbeddedTaskMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.ClaimEmbeddedTaskRequest,
      dev.taskyard.v1.ClaimEmbeddedTaskResponse> getClaimEmbeddedTaskMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ClaimEmbeddedTask",
      requestType = dev.taskyard.v1.ClaimEmbeddedTaskRequest.class,
      responseType = dev.taskyard.v1.ClaimEmbeddedTaskResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.ClaimEmbeddedTaskRequest,
      dev.taskyard.v1.ClaimEmbeddedTaskResponse> getClaimEmbeddedTaskMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.ClaimEmbeddedTaskRequest, dev.taskyard.v1.ClaimEmbeddedTaskResponse> getClaimEmbeddedTaskMethod;
    if ((getClaimEmbeddedTaskMethod = EmbeddedServiceGrpc.getClaimEmbeddedTaskMethod) == null) {
      synchronized (EmbeddedServiceGrpc.class) {
        if ((getClaimEmbeddedTaskMethod = EmbeddedServiceGrpc.getClaimEmbeddedTaskMethod) == null) {
          EmbeddedServiceGrpc.getClaimEmbeddedTaskMethod = getClaimEmbeddedTaskMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.ClaimEmbeddedTaskRequest, dev.taskyard.v1.ClaimEmbeddedTaskResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ClaimEmbeddedTask"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ClaimEmbeddedTaskRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ClaimEmbeddedTaskResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getClaimEmbeddedTaskMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.RenewEmbeddedTasksRequest,
      dev.taskyard.v1.RenewEmbeddedTasksResponse> getRenewEmbeddedTasksMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "RenewEmbeddedTasks",
      requestType = dev.taskyard.v1.RenewEmbeddedTasksRequest.class,
      responseType = dev.taskyard.v1.RenewEmbeddedTasksResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.RenewEmbeddedTasksRequest,
      dev.taskyard.v1.RenewEmbeddedTasksResponse> getRenewEmbeddedTasksMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.RenewEmbeddedTasksRequest, dev.taskyard.v1.RenewEmbeddedTasksResponse> getRenewEmbeddedTasksMethod;
    if ((getRenewEmbeddedTasksMethod = EmbeddedServiceGrpc.getRenewEmbeddedTasksMethod) == null) {
      synchronized (EmbeddedServiceGrpc.class) {
        if ((getRenewEmbeddedTasksMethod = EmbeddedServiceGrpc.getRenewEmbeddedTasksMethod) == null) {
          EmbeddedServiceGrpc.getRenewEmbeddedTasksMethod = getRenewEmbeddedTasksMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.RenewEmbeddedTasksRequest, dev.taskyard.v1.RenewEmbeddedTasksResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "RenewEmbeddedTasks"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.RenewEmbeddedTasksRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.RenewEmbeddedTasksResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getRenewEmbeddedTasksMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.ReportEmbeddedTasksRequest,
      dev.taskyard.v1.ReportEmbeddedTasksResponse> getReportEmbeddedTasksMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ReportEmbeddedTasks",
      requestType = dev.taskyard.v1.ReportEmbeddedTasksRequest.class,
      responseType = dev.taskyard.v1.ReportEmbeddedTasksResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.ReportEmbeddedTasksRequest,
      dev.taskyard.v1.ReportEmbeddedTasksResponse> getReportEmbeddedTasksMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.ReportEmbeddedTasksRequest, dev.taskyard.v1.ReportEmbeddedTasksResponse> getReportEmbeddedTasksMethod;
    if ((getReportEmbeddedTasksMethod = EmbeddedServiceGrpc.getReportEmbeddedTasksMethod) == null) {
      synchronized (EmbeddedServiceGrpc.class) {
        if ((getReportEmbeddedTasksMethod = EmbeddedServiceGrpc.getReportEmbeddedTasksMethod) == null) {
          EmbeddedServiceGrpc.getReportEmbeddedTasksMethod = getReportEmbeddedTasksMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.ReportEmbeddedTasksRequest, dev.taskyard.v1.ReportEmbeddedTasksResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ReportEmbeddedTasks"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ReportEmbeddedTasksRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ReportEmbeddedTasksResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getReportEmbeddedTasksMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.AppendEmbeddedLogsRequest,
      dev.taskyard.v1.AppendEmbeddedLogsResponse> getAppendEmbeddedLogsMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "AppendEmbeddedLogs",
      requestType = dev.taskyard.v1.AppendEmbeddedLogsRequest.class,
      responseType = dev.taskyard.v1.AppendEmbeddedLogsResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.AppendEmbeddedLogsRequest,
      dev.taskyard.v1.AppendEmbeddedLogsResponse> getAppendEmbeddedLogsMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.AppendEmbeddedLogsRequest, dev.taskyard.v1.AppendEmbeddedLogsResponse> getAppendEmbeddedLogsMethod;
    if ((getAppendEmbeddedLogsMethod = EmbeddedServiceGrpc.getAppendEmbeddedLogsMethod) == null) {
      synchronized (EmbeddedServiceGrpc.class) {
        if ((getAppendEmbeddedLogsMethod = EmbeddedServiceGrpc.getAppendEmbeddedLogsMethod) == null) {
          EmbeddedServiceGrpc.getAppendEmbeddedLogsMethod = getAppendEmbeddedLogsMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.AppendEmbeddedLogsRequest, dev.taskyard.v1.AppendEmbeddedLogsResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "AppendEmbeddedLogs"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.AppendEmbeddedLogsRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.AppendEmbeddedLogsResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getAppendEmbeddedLogsMethod;
  }

  /**
   * Creates a new async stub that supports all call types for the service
   */
  public static EmbeddedServiceStub newStub(io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<EmbeddedServiceStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<EmbeddedServiceStub>() {
        @java.lang.Override
        public EmbeddedServiceStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new EmbeddedServiceStub(channel, callOptions);
        }
      };
    return EmbeddedServiceStub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports all types of calls on the service
   */
  public static EmbeddedServiceBlockingV2Stub newBlockingV2Stub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<EmbeddedServiceBlockingV2Stub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<EmbeddedServiceBlockingV2Stub>() {
        @java.lang.Override
        public EmbeddedServiceBlockingV2Stub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new EmbeddedServiceBlockingV2Stub(channel, callOptions);
        }
      };
    return EmbeddedServiceBlockingV2Stub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports unary and streaming output calls on the service
   */
  public static EmbeddedServiceBlockingStub newBlockingStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<EmbeddedServiceBlockingStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<EmbeddedServiceBlockingStub>() {
        @java.lang.Override
        public EmbeddedServiceBlockingStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new EmbeddedServiceBlockingStub(channel, callOptions);
        }
      };
    return EmbeddedServiceBlockingStub.newStub(factory, channel);
  }

  /**
   * Creates a new ListenableFuture-style stub that supports unary calls on the service
   */
  public static EmbeddedServiceFutureStub newFutureStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<EmbeddedServiceFutureStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<EmbeddedServiceFutureStub>() {
        @java.lang.Override
        public EmbeddedServiceFutureStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new EmbeddedServiceFutureStub(channel, callOptions);
        }
      };
    return EmbeddedServiceFutureStub.newStub(factory, channel);
  }

  /**
   * <pre>
   * Create, claim, renew, report and logs of embedded tasks.
   * </pre>
   */
  public interface AsyncService {

    /**
     * <pre>
     * Creates a task whose execution is `embedded`, pinned to the holder, with on_runner_lost FAIL.
     * Safe to repeat with the same request_id or task_id.
     * Errors: those of TaskService.CreateTask; INVALID_ARGUMENT (FIELD_INVALID: another execution).
     * </pre>
     */
    default void createEmbeddedTask(dev.taskyard.v1.CreateEmbeddedTaskRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.CreateEmbeddedTaskResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getCreateEmbeddedTaskMethod(), responseObserver);
    }

    /**
     * <pre>
     * Claims tasks of the holder that are claimable now; none is no error.  Safe to repeat with the
     * same request_id.
     * Errors: NOT_FOUND.
     * </pre>
     */
    default void claimEmbeddedTask(dev.taskyard.v1.ClaimEmbeddedTaskRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ClaimEmbeddedTaskResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getClaimEmbeddedTaskMethod(), responseObserver);
    }

    /**
     * <pre>
     * Renews leases.  Safe to repeat.
     * Errors: NOT_FOUND (NOT_FOUND: of another tenant).  Per lease: see LeaseVerdict.
     * </pre>
     */
    default void renewEmbeddedTasks(dev.taskyard.v1.RenewEmbeddedTasksRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.RenewEmbeddedTasksResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getRenewEmbeddedTasksMethod(), responseObserver);
    }

    /**
     * <pre>
     * Applies reports, each on its own, in order per task.  Safe to repeat.
     * Errors: NOT_FOUND (NOT_FOUND: of another tenant).  Per report: FAILED_PRECONDITION (LEASE_NOT_HELD), and
     * those of LeaseService.ReportRuns.
     * </pre>
     */
    default void reportEmbeddedTasks(dev.taskyard.v1.ReportEmbeddedTasksRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ReportEmbeddedTasksResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getReportEmbeddedTasksMethod(), responseObserver);
    }

    /**
     * <pre>
     * Stores log entries.  Safe to repeat.
     * Errors: NOT_FOUND (NOT_FOUND: of another tenant).  Per batch: those of LeaseService.AppendLogs.
     * </pre>
     */
    default void appendEmbeddedLogs(dev.taskyard.v1.AppendEmbeddedLogsRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.AppendEmbeddedLogsResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getAppendEmbeddedLogsMethod(), responseObserver);
    }
  }

  /**
   * Base class for the server implementation of the service EmbeddedService.
   * <pre>
   * Create, claim, renew, report and logs of embedded tasks.
   * </pre>
   */
  public static abstract class EmbeddedServiceImplBase
      implements io.grpc.BindableService, AsyncService {

    @java.lang.Override public final io.grpc.ServerServiceDefinition bindService() {
      return EmbeddedServiceGrpc.bindService(this);
    }
  }

  /**
   * A stub to allow clients to do asynchronous rpc calls to service EmbeddedService.
   * <pre>
   * Create, claim, renew, report and logs of embedded tasks.
   * </pre>
   */
  public static final class EmbeddedServiceStub
      extends io.grpc.stub.AbstractAsyncStub<EmbeddedServiceStub> {
    private EmbeddedServiceStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected EmbeddedServiceStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new EmbeddedServiceStub(channel, callOptions);
    }

    /**
     * <pre>
     * Creates a task whose execution is `embedded`, pinned to the holder, with on_runner_lost FAIL.
     * Safe to repeat with the same request_id or task_id.
     * Errors: those of TaskService.CreateTask; INVALID_ARGUMENT (FIELD_INVALID: another execution).
     * </pre>
     */
    public void createEmbeddedTask(dev.taskyard.v1.CreateEmbeddedTaskRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.CreateEmbeddedTaskResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getCreateEmbeddedTaskMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Claims tasks of the holder that are claimable now; none is no error.  Safe to repeat with the
     * same request_id.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public void claimEmbeddedTask(dev.taskyard.v1.ClaimEmbeddedTaskRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ClaimEmbeddedTaskResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getClaimEmbeddedTaskMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Renews leases.  Safe to repeat.
     * Errors: NOT_FOUND (NOT_FOUND: of another tenant).  Per lease: see LeaseVerdict.
     * </pre>
     */
    public void renewEmbeddedTasks(dev.taskyard.v1.RenewEmbeddedTasksRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.RenewEmbeddedTasksResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getRenewEmbeddedTasksMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Applies reports, each on its own, in order per task.  Safe to repeat.
     * Errors: NOT_FOUND (NOT_FOUND: of another tenant).  Per report: FAILED_PRECONDITION (LEASE_NOT_HELD), and
     * those of LeaseService.ReportRuns.
     * </pre>
     */
    public void reportEmbeddedTasks(dev.taskyard.v1.ReportEmbeddedTasksRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ReportEmbeddedTasksResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getReportEmbeddedTasksMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Stores log entries.  Safe to repeat.
     * Errors: NOT_FOUND (NOT_FOUND: of another tenant).  Per batch: those of LeaseService.AppendLogs.
     * </pre>
     */
    public void appendEmbeddedLogs(dev.taskyard.v1.AppendEmbeddedLogsRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.AppendEmbeddedLogsResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getAppendEmbeddedLogsMethod(), getCallOptions()), request, responseObserver);
    }
  }

  /**
   * A stub to allow clients to do synchronous rpc calls to service EmbeddedService.
   * <pre>
   * Create, claim, renew, report and logs of embedded tasks.
   * </pre>
   */
  public static final class EmbeddedServiceBlockingV2Stub
      extends io.grpc.stub.AbstractBlockingStub<EmbeddedServiceBlockingV2Stub> {
    private EmbeddedServiceBlockingV2Stub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected EmbeddedServiceBlockingV2Stub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new EmbeddedServiceBlockingV2Stub(channel, callOptions);
    }

    /**
     * <pre>
     * Creates a task whose execution is `embedded`, pinned to the holder, with on_runner_lost FAIL.
     * Safe to repeat with the same request_id or task_id.
     * Errors: those of TaskService.CreateTask; INVALID_ARGUMENT (FIELD_INVALID: another execution).
     * </pre>
     */
    public dev.taskyard.v1.CreateEmbeddedTaskResponse createEmbeddedTask(dev.taskyard.v1.CreateEmbeddedTaskRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getCreateEmbeddedTaskMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Claims tasks of the holder that are claimable now; none is no error.  Safe to repeat with the
     * same request_id.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public dev.taskyard.v1.ClaimEmbeddedTaskResponse claimEmbeddedTask(dev.taskyard.v1.ClaimEmbeddedTaskRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getClaimEmbeddedTaskMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Renews leases.  Safe to repeat.
     * Errors: NOT_FOUND (NOT_FOUND: of another tenant).  Per lease: see LeaseVerdict.
     * </pre>
     */
    public dev.taskyard.v1.RenewEmbeddedTasksResponse renewEmbeddedTasks(dev.taskyard.v1.RenewEmbeddedTasksRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getRenewEmbeddedTasksMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Applies reports, each on its own, in order per task.  Safe to repeat.
     * Errors: NOT_FOUND (NOT_FOUND: of another tenant).  Per report: FAILED_PRECONDITION (LEASE_NOT_HELD), and
     * those of LeaseService.ReportRuns.
     * </pre>
     */
    public dev.taskyard.v1.ReportEmbeddedTasksResponse reportEmbeddedTasks(dev.taskyard.v1.ReportEmbeddedTasksRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getReportEmbeddedTasksMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Stores log entries.  Safe to repeat.
     * Errors: NOT_FOUND (NOT_FOUND: of another tenant).  Per batch: those of LeaseService.AppendLogs.
     * </pre>
     */
    public dev.taskyard.v1.AppendEmbeddedLogsResponse appendEmbeddedLogs(dev.taskyard.v1.AppendEmbeddedLogsRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getAppendEmbeddedLogsMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do limited synchronous rpc calls to service EmbeddedService.
   * <pre>
   * Create, claim, renew, report and logs of embedded tasks.
   * </pre>
   */
  public static final class EmbeddedServiceBlockingStub
      extends io.grpc.stub.AbstractBlockingStub<EmbeddedServiceBlockingStub> {
    private EmbeddedServiceBlockingStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected EmbeddedServiceBlockingStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new EmbeddedServiceBlockingStub(channel, callOptions);
    }

    /**
     * <pre>
     * Creates a task whose execution is `embedded`, pinned to the holder, with on_runner_lost FAIL.
     * Safe to repeat with the same request_id or task_id.
     * Errors: those of TaskService.CreateTask; INVALID_ARGUMENT (FIELD_INVALID: another execution).
     * </pre>
     */
    public dev.taskyard.v1.CreateEmbeddedTaskResponse createEmbeddedTask(dev.taskyard.v1.CreateEmbeddedTaskRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getCreateEmbeddedTaskMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Claims tasks of the holder that are claimable now; none is no error.  Safe to repeat with the
     * same request_id.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public dev.taskyard.v1.ClaimEmbeddedTaskResponse claimEmbeddedTask(dev.taskyard.v1.ClaimEmbeddedTaskRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getClaimEmbeddedTaskMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Renews leases.  Safe to repeat.
     * Errors: NOT_FOUND (NOT_FOUND: of another tenant).  Per lease: see LeaseVerdict.
     * </pre>
     */
    public dev.taskyard.v1.RenewEmbeddedTasksResponse renewEmbeddedTasks(dev.taskyard.v1.RenewEmbeddedTasksRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getRenewEmbeddedTasksMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Applies reports, each on its own, in order per task.  Safe to repeat.
     * Errors: NOT_FOUND (NOT_FOUND: of another tenant).  Per report: FAILED_PRECONDITION (LEASE_NOT_HELD), and
     * those of LeaseService.ReportRuns.
     * </pre>
     */
    public dev.taskyard.v1.ReportEmbeddedTasksResponse reportEmbeddedTasks(dev.taskyard.v1.ReportEmbeddedTasksRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getReportEmbeddedTasksMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Stores log entries.  Safe to repeat.
     * Errors: NOT_FOUND (NOT_FOUND: of another tenant).  Per batch: those of LeaseService.AppendLogs.
     * </pre>
     */
    public dev.taskyard.v1.AppendEmbeddedLogsResponse appendEmbeddedLogs(dev.taskyard.v1.AppendEmbeddedLogsRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getAppendEmbeddedLogsMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do ListenableFuture-style rpc calls to service EmbeddedService.
   * <pre>
   * Create, claim, renew, report and logs of embedded tasks.
   * </pre>
   */
  public static final class EmbeddedServiceFutureStub
      extends io.grpc.stub.AbstractFutureStub<EmbeddedServiceFutureStub> {
    private EmbeddedServiceFutureStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected EmbeddedServiceFutureStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new EmbeddedServiceFutureStub(channel, callOptions);
    }

    /**
     * <pre>
     * Creates a task whose execution is `embedded`, pinned to the holder, with on_runner_lost FAIL.
     * Safe to repeat with the same request_id or task_id.
     * Errors: those of TaskService.CreateTask; INVALID_ARGUMENT (FIELD_INVALID: another execution).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.CreateEmbeddedTaskResponse> createEmbeddedTask(
        dev.taskyard.v1.CreateEmbeddedTaskRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getCreateEmbeddedTaskMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Claims tasks of the holder that are claimable now; none is no error.  Safe to repeat with the
     * same request_id.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.ClaimEmbeddedTaskResponse> claimEmbeddedTask(
        dev.taskyard.v1.ClaimEmbeddedTaskRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getClaimEmbeddedTaskMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Renews leases.  Safe to repeat.
     * Errors: NOT_FOUND (NOT_FOUND: of another tenant).  Per lease: see LeaseVerdict.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.RenewEmbeddedTasksResponse> renewEmbeddedTasks(
        dev.taskyard.v1.RenewEmbeddedTasksRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getRenewEmbeddedTasksMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Applies reports, each on its own, in order per task.  Safe to repeat.
     * Errors: NOT_FOUND (NOT_FOUND: of another tenant).  Per report: FAILED_PRECONDITION (LEASE_NOT_HELD), and
     * those of LeaseService.ReportRuns.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.ReportEmbeddedTasksResponse> reportEmbeddedTasks(
        dev.taskyard.v1.ReportEmbeddedTasksRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getReportEmbeddedTasksMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Stores log entries.  Safe to repeat.
     * Errors: NOT_FOUND (NOT_FOUND: of another tenant).  Per batch: those of LeaseService.AppendLogs.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.AppendEmbeddedLogsResponse> appendEmbeddedLogs(
        dev.taskyard.v1.AppendEmbeddedLogsRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getAppendEmbeddedLogsMethod(), getCallOptions()), request);
    }
  }

  private static final int METHODID_CREATE_EMBEDDED_TASK = 0;
  private static final int METHODID_CLAIM_EMBEDDED_TASK = 1;
  private static final int METHODID_RENEW_EMBEDDED_TASKS = 2;
  private static final int METHODID_REPORT_EMBEDDED_TASKS = 3;
  private static final int METHODID_APPEND_EMBEDDED_LOGS = 4;

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
        case METHODID_CREATE_EMBEDDED_TASK:
          serviceImpl.createEmbeddedTask((dev.taskyard.v1.CreateEmbeddedTaskRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.CreateEmbeddedTaskResponse>) responseObserver);
          break;
        case METHODID_CLAIM_EMBEDDED_TASK:
          serviceImpl.claimEmbeddedTask((dev.taskyard.v1.ClaimEmbeddedTaskRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.ClaimEmbeddedTaskResponse>) responseObserver);
          break;
        case METHODID_RENEW_EMBEDDED_TASKS:
          serviceImpl.renewEmbeddedTasks((dev.taskyard.v1.RenewEmbeddedTasksRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.RenewEmbeddedTasksResponse>) responseObserver);
          break;
        case METHODID_REPORT_EMBEDDED_TASKS:
          serviceImpl.reportEmbeddedTasks((dev.taskyard.v1.ReportEmbeddedTasksRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.ReportEmbeddedTasksResponse>) responseObserver);
          break;
        case METHODID_APPEND_EMBEDDED_LOGS:
          serviceImpl.appendEmbeddedLogs((dev.taskyard.v1.AppendEmbeddedLogsRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.AppendEmbeddedLogsResponse>) responseObserver);
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
          getCreateEmbeddedTaskMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.CreateEmbeddedTaskRequest,
              dev.taskyard.v1.CreateEmbeddedTaskResponse>(
                service, METHODID_CREATE_EMBEDDED_TASK)))
        .addMethod(
          getClaimEmbeddedTaskMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.ClaimEmbeddedTaskRequest,
              dev.taskyard.v1.ClaimEmbeddedTaskResponse>(
                service, METHODID_CLAIM_EMBEDDED_TASK)))
        .addMethod(
          getRenewEmbeddedTasksMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.RenewEmbeddedTasksRequest,
              dev.taskyard.v1.RenewEmbeddedTasksResponse>(
                service, METHODID_RENEW_EMBEDDED_TASKS)))
        .addMethod(
          getReportEmbeddedTasksMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.ReportEmbeddedTasksRequest,
              dev.taskyard.v1.ReportEmbeddedTasksResponse>(
                service, METHODID_REPORT_EMBEDDED_TASKS)))
        .addMethod(
          getAppendEmbeddedLogsMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.AppendEmbeddedLogsRequest,
              dev.taskyard.v1.AppendEmbeddedLogsResponse>(
                service, METHODID_APPEND_EMBEDDED_LOGS)))
        .build();
  }

  private static volatile io.grpc.ServiceDescriptor serviceDescriptor;

  public static io.grpc.ServiceDescriptor getServiceDescriptor() {
    io.grpc.ServiceDescriptor result = serviceDescriptor;
    if (result == null) {
      synchronized (EmbeddedServiceGrpc.class) {
        result = serviceDescriptor;
        if (result == null) {
          serviceDescriptor = result = io.grpc.ServiceDescriptor.newBuilder(SERVICE_NAME)
              .addMethod(getCreateEmbeddedTaskMethod())
              .addMethod(getClaimEmbeddedTaskMethod())
              .addMethod(getRenewEmbeddedTasksMethod())
              .addMethod(getReportEmbeddedTasksMethod())
              .addMethod(getAppendEmbeddedLogsMethod())
              .build();
        }
      }
    }
    return result;
  }
}
