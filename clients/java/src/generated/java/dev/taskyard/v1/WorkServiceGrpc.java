package dev.taskyard.v1;

import static io.grpc.MethodDescriptor.generateFullMethodName;

/**
 * <pre>
 * Claim, renew, report, logs and checkpoints for pull workers.
 * </pre>
 */
@io.grpc.stub.annotations.GrpcGenerated
public final class WorkServiceGrpc {

  private WorkServiceGrpc() {}

  public static final java.lang.String SERVICE_NAME = "taskyard.v1.WorkService";

  // Static method descriptors that strictly reflect the proto.
  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.ClaimTasksRequest,
      dev.taskyard.v1.ClaimTasksResponse> getClaimTasksMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ClaimTasks",
      requestType = dev.taskyard.v1.ClaimTasksRequest.class,
      responseType = dev.taskyard.v1.ClaimTasksResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.ClaimTasksRequest,
      dev.taskyard.v1.ClaimTasksResponse> getClaimTasksMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.ClaimTasksRequest, dev.taskyard.v1.ClaimTasksResponse> getClaimTasksMethod;
    if ((getClaimTasksMethod = WorkServiceGrpc.getClaimTasksMethod) == null) {
      synchronized (WorkServiceGrpc.class) {
        if ((getClaimTasksMethod = WorkServiceGrpc.getClaimTasksMethod) == null) {
          WorkServiceGrpc.getClaimTasksMethod = getClaimTasksMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.ClaimTasksRequest, dev.taskyard.v1.ClaimTasksResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ClaimTasks"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ClaimTasksRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ClaimTasksResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getClaimTasksMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.RenewWorkRequest,
      dev.taskyard.v1.RenewWorkResponse> getRenewWorkMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "RenewWork",
      requestType = dev.taskyard.v1.RenewWorkRequest.class,
      responseType = dev.taskyard.v1.RenewWorkResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.RenewWorkRequest,
      dev.taskyard.v1.RenewWorkResponse> getRenewWorkMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.RenewWorkRequest, dev.taskyard.v1.RenewWorkResponse> getRenewWorkMethod;
    if ((getRenewWorkMethod = WorkServiceGrpc.getRenewWorkMethod) == null) {
      synchronized (WorkServiceGrpc.class) {
        if ((getRenewWorkMethod = WorkServiceGrpc.getRenewWorkMethod) == null) {
          WorkServiceGrpc.getRenewWorkMethod = getRenewWorkMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.RenewWorkRequest, dev.taskyard.v1.RenewWorkResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "RenewWork"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.RenewWorkRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.RenewWorkResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getRenewWorkMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.ReportWorkRequest,
      dev.taskyard.v1.ReportWorkResponse> getReportWorkMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ReportWork",
      requestType = dev.taskyard.v1.ReportWorkRequest.class,
      responseType = dev.taskyard.v1.ReportWorkResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.ReportWorkRequest,
      dev.taskyard.v1.ReportWorkResponse> getReportWorkMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.ReportWorkRequest, dev.taskyard.v1.ReportWorkResponse> getReportWorkMethod;
    if ((getReportWorkMethod = WorkServiceGrpc.getReportWorkMethod) == null) {
      synchronized (WorkServiceGrpc.class) {
        if ((getReportWorkMethod = WorkServiceGrpc.getReportWorkMethod) == null) {
          WorkServiceGrpc.getReportWorkMethod = getReportWorkMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.ReportWorkRequest, dev.taskyard.v1.ReportWorkResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ReportWork"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ReportWorkRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ReportWorkResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getReportWorkMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.AppendWorkLogsRequest,
      dev.taskyard.v1.AppendWorkLogsResponse> getAppendWorkLogsMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "AppendWorkLogs",
      requestType = dev.taskyard.v1.AppendWorkLogsRequest.class,
      responseType = dev.taskyard.v1.AppendWorkLogsResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.AppendWorkLogsRequest,
      dev.taskyard.v1.AppendWorkLogsResponse> getAppendWorkLogsMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.AppendWorkLogsRequest, dev.taskyard.v1.AppendWorkLogsResponse> getAppendWorkLogsMethod;
    if ((getAppendWorkLogsMethod = WorkServiceGrpc.getAppendWorkLogsMethod) == null) {
      synchronized (WorkServiceGrpc.class) {
        if ((getAppendWorkLogsMethod = WorkServiceGrpc.getAppendWorkLogsMethod) == null) {
          WorkServiceGrpc.getAppendWorkLogsMethod = getAppendWorkLogsMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.AppendWorkLogsRequest, dev.taskyard.v1.AppendWorkLogsResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "AppendWorkLogs"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.AppendWorkLogsRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.AppendWorkLogsResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getAppendWorkLogsMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.WriteWorkCheckpointRequest,
      dev.taskyard.v1.WriteWorkCheckpointResponse> getWriteWorkCheckpointMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "WriteWorkCheckpoint",
      requestType = dev.taskyard.v1.WriteWorkCheckpointRequest.class,
      responseType = dev.taskyard.v1.WriteWorkCheckpointResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.CLIENT_STREAMING)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.WriteWorkCheckpointRequest,
      dev.taskyard.v1.WriteWorkCheckpointResponse> getWriteWorkCheckpointMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.WriteWorkCheckpointRequest, dev.taskyard.v1.WriteWorkCheckpointResponse> getWriteWorkCheckpointMethod;
    if ((getWriteWorkCheckpointMethod = WorkServiceGrpc.getWriteWorkCheckpointMethod) == null) {
      synchronized (WorkServiceGrpc.class) {
        if ((getWriteWorkCheckpointMethod = WorkServiceGrpc.getWriteWorkCheckpointMethod) == null) {
          WorkServiceGrpc.getWriteWorkCheckpointMethod = getWriteWorkCheckpointMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.WriteWorkCheckpointRequest, dev.taskyard.v1.WriteWorkCheckpointResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.CLIENT_STREAMING)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "WriteWorkCheckpoint"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.WriteWorkCheckpointRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.WriteWorkCheckpointResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getWriteWorkCheckpointMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.ReadWorkCheckpointRequest,
      dev.taskyard.v1.ReadWorkCheckpointResponse> getReadWorkCheckpointMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ReadWorkCheckpoint",
      requestType = dev.taskyard.v1.ReadWorkCheckpointRequest.class,
      responseType = dev.taskyard.v1.ReadWorkCheckpointResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.SERVER_STREAMING)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.ReadWorkCheckpointRequest,
      dev.taskyard.v1.ReadWorkCheckpointResponse> getReadWorkCheckpointMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.ReadWorkCheckpointRequest, dev.taskyard.v1.ReadWorkCheckpointResponse> getReadWorkCheckpointMethod;
    if ((getReadWorkCheckpointMethod = WorkServiceGrpc.getReadWorkCheckpointMethod) == null) {
      synchronized (WorkServiceGrpc.class) {
        if ((getReadWorkCheckpointMethod = WorkServiceGrpc.getReadWorkCheckpointMethod) == null) {
          WorkServiceGrpc.getReadWorkCheckpointMethod = getReadWorkCheckpointMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.ReadWorkCheckpointRequest, dev.taskyard.v1.ReadWorkCheckpointResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.SERVER_STREAMING)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ReadWorkCheckpoint"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ReadWorkCheckpointRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ReadWorkCheckpointResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getReadWorkCheckpointMethod;
  }

  /**
   * Creates a new async stub that supports all call types for the service
   */
  public static WorkServiceStub newStub(io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<WorkServiceStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<WorkServiceStub>() {
        @java.lang.Override
        public WorkServiceStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new WorkServiceStub(channel, callOptions);
        }
      };
    return WorkServiceStub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports all types of calls on the service
   */
  public static WorkServiceBlockingV2Stub newBlockingV2Stub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<WorkServiceBlockingV2Stub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<WorkServiceBlockingV2Stub>() {
        @java.lang.Override
        public WorkServiceBlockingV2Stub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new WorkServiceBlockingV2Stub(channel, callOptions);
        }
      };
    return WorkServiceBlockingV2Stub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports unary and streaming output calls on the service
   */
  public static WorkServiceBlockingStub newBlockingStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<WorkServiceBlockingStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<WorkServiceBlockingStub>() {
        @java.lang.Override
        public WorkServiceBlockingStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new WorkServiceBlockingStub(channel, callOptions);
        }
      };
    return WorkServiceBlockingStub.newStub(factory, channel);
  }

  /**
   * Creates a new ListenableFuture-style stub that supports unary calls on the service
   */
  public static WorkServiceFutureStub newFutureStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<WorkServiceFutureStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<WorkServiceFutureStub>() {
        @java.lang.Override
        public WorkServiceFutureStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new WorkServiceFutureStub(channel, callOptions);
        }
      };
    return WorkServiceFutureStub.newStub(factory, channel);
  }

  /**
   * <pre>
   * Claim, renew, report, logs and checkpoints for pull workers.
   * </pre>
   */
  public interface AsyncService {

    /**
     * <pre>
     * Claims up to max_tasks, waiting for work up to `wait`.  Safe to repeat with the same
     * request_id: a lost answer strands nothing.
     * The worker is listed as a runner; one that drains gets nothing.
     * Errors: INVALID_ARGUMENT (FIELD_INVALID); PERMISSION_DENIED (worker_id outside the key's
     * scope, deleted while it worked, or of a runner with a key of another scope); UNAVAILABLE (SERVER_DRAINING).
     * </pre>
     */
    default void claimTasks(dev.taskyard.v1.ClaimTasksRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ClaimTasksResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getClaimTasksMethod(), responseObserver);
    }

    /**
     * <pre>
     * Renews leases; this is the heartbeat of a pull worker.  Safe to repeat.
     * Errors: INVALID_ARGUMENT (FIELD_INVALID).  Per lease: see LeaseVerdict.
     * </pre>
     */
    default void renewWork(dev.taskyard.v1.RenewWorkRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.RenewWorkResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getRenewWorkMethod(), responseObserver);
    }

    /**
     * <pre>
     * Applies up to 1000 reports, each on its own, in order per task.  Safe to repeat.
     * Errors: INVALID_ARGUMENT (FIELD_INVALID).  Per report as in LeaseService.ReportRuns.
     * </pre>
     */
    default void reportWork(dev.taskyard.v1.ReportWorkRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ReportWorkResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getReportWorkMethod(), responseObserver);
    }

    /**
     * <pre>
     * Stores log entries.  Safe to repeat.
     * Errors: INVALID_ARGUMENT (FIELD_INVALID).  Per batch as in LeaseService.AppendLogs.
     * </pre>
     */
    default void appendWorkLogs(dev.taskyard.v1.AppendWorkLogsRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.AppendWorkLogsResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getAppendWorkLogsMethod(), responseObserver);
    }

    /**
     * <pre>
     * Stores one checkpoint.  Safe to repeat.
     * Errors: as LeaseService.WriteCheckpoint.
     * </pre>
     */
    default io.grpc.stub.StreamObserver<dev.taskyard.v1.WriteWorkCheckpointRequest> writeWorkCheckpoint(
        io.grpc.stub.StreamObserver<dev.taskyard.v1.WriteWorkCheckpointResponse> responseObserver) {
      return io.grpc.stub.ServerCalls.asyncUnimplementedStreamingCall(getWriteWorkCheckpointMethod(), responseObserver);
    }

    /**
     * <pre>
     * Streams the newest checkpoint of a leased task.
     * Errors: as LeaseService.ReadLeasedCheckpoint.
     * </pre>
     */
    default void readWorkCheckpoint(dev.taskyard.v1.ReadWorkCheckpointRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ReadWorkCheckpointResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getReadWorkCheckpointMethod(), responseObserver);
    }
  }

  /**
   * Base class for the server implementation of the service WorkService.
   * <pre>
   * Claim, renew, report, logs and checkpoints for pull workers.
   * </pre>
   */
  public static abstract class WorkServiceImplBase
      implements io.grpc.BindableService, AsyncService {

    @java.lang.Override public final io.grpc.ServerServiceDefinition bindService() {
      return WorkServiceGrpc.bindService(this);
    }
  }

  /**
   * A stub to allow clients to do asynchronous rpc calls to service WorkService.
   * <pre>
   * Claim, renew, report, logs and checkpoints for pull workers.
   * </pre>
   */
  public static final class WorkServiceStub
      extends io.grpc.stub.AbstractAsyncStub<WorkServiceStub> {
    private WorkServiceStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected WorkServiceStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new WorkServiceStub(channel, callOptions);
    }

    /**
     * <pre>
     * Claims up to max_tasks, waiting for work up to `wait`.  Safe to repeat with the same
     * request_id: a lost answer strands nothing.
     * The worker is listed as a runner; one that drains gets nothing.
     * Errors: INVALID_ARGUMENT (FIELD_INVALID); PERMISSION_DENIED (worker_id outside the key's
     * scope, deleted while it worked, or of a runner with a key of another scope); UNAVAILABLE (SERVER_DRAINING).
     * </pre>
     */
    public void claimTasks(dev.taskyard.v1.ClaimTasksRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ClaimTasksResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getClaimTasksMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Renews leases; this is the heartbeat of a pull worker.  Safe to repeat.
     * Errors: INVALID_ARGUMENT (FIELD_INVALID).  Per lease: see LeaseVerdict.
     * </pre>
     */
    public void renewWork(dev.taskyard.v1.RenewWorkRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.RenewWorkResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getRenewWorkMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Applies up to 1000 reports, each on its own, in order per task.  Safe to repeat.
     * Errors: INVALID_ARGUMENT (FIELD_INVALID).  Per report as in LeaseService.ReportRuns.
     * </pre>
     */
    public void reportWork(dev.taskyard.v1.ReportWorkRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ReportWorkResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getReportWorkMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Stores log entries.  Safe to repeat.
     * Errors: INVALID_ARGUMENT (FIELD_INVALID).  Per batch as in LeaseService.AppendLogs.
     * </pre>
     */
    public void appendWorkLogs(dev.taskyard.v1.AppendWorkLogsRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.AppendWorkLogsResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getAppendWorkLogsMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Stores one checkpoint.  Safe to repeat.
     * Errors: as LeaseService.WriteCheckpoint.
     * </pre>
     */
    public io.grpc.stub.StreamObserver<dev.taskyard.v1.WriteWorkCheckpointRequest> writeWorkCheckpoint(
        io.grpc.stub.StreamObserver<dev.taskyard.v1.WriteWorkCheckpointResponse> responseObserver) {
      return io.grpc.stub.ClientCalls.asyncClientStreamingCall(
          getChannel().newCall(getWriteWorkCheckpointMethod(), getCallOptions()), responseObserver);
    }

    /**
     * <pre>
     * Streams the newest checkpoint of a leased task.
     * Errors: as LeaseService.ReadLeasedCheckpoint.
     * </pre>
     */
    public void readWorkCheckpoint(dev.taskyard.v1.ReadWorkCheckpointRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ReadWorkCheckpointResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncServerStreamingCall(
          getChannel().newCall(getReadWorkCheckpointMethod(), getCallOptions()), request, responseObserver);
    }
  }

  /**
   * A stub to allow clients to do synchronous rpc calls to service WorkService.
   * <pre>
   * Claim, renew, report, logs and checkpoints for pull workers.
   * </pre>
   */
  public static final class WorkServiceBlockingV2Stub
      extends io.grpc.stub.AbstractBlockingStub<WorkServiceBlockingV2Stub> {
    private WorkServiceBlockingV2Stub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected WorkServiceBlockingV2Stub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new WorkServiceBlockingV2Stub(channel, callOptions);
    }

    /**
     * <pre>
     * Claims up to max_tasks, waiting for work up to `wait`.  Safe to repeat with the same
     * request_id: a lost answer strands nothing.
     * The worker is listed as a runner; one that drains gets nothing.
     * Errors: INVALID_ARGUMENT (FIELD_INVALID); PERMISSION_DENIED (worker_id outside the key's
     * scope, deleted while it worked, or of a runner with a key of another scope); UNAVAILABLE (SERVER_DRAINING).
     * </pre>
     */
    public dev.taskyard.v1.ClaimTasksResponse claimTasks(dev.taskyard.v1.ClaimTasksRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getClaimTasksMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Renews leases; this is the heartbeat of a pull worker.  Safe to repeat.
     * Errors: INVALID_ARGUMENT (FIELD_INVALID).  Per lease: see LeaseVerdict.
     * </pre>
     */
    public dev.taskyard.v1.RenewWorkResponse renewWork(dev.taskyard.v1.RenewWorkRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getRenewWorkMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Applies up to 1000 reports, each on its own, in order per task.  Safe to repeat.
     * Errors: INVALID_ARGUMENT (FIELD_INVALID).  Per report as in LeaseService.ReportRuns.
     * </pre>
     */
    public dev.taskyard.v1.ReportWorkResponse reportWork(dev.taskyard.v1.ReportWorkRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getReportWorkMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Stores log entries.  Safe to repeat.
     * Errors: INVALID_ARGUMENT (FIELD_INVALID).  Per batch as in LeaseService.AppendLogs.
     * </pre>
     */
    public dev.taskyard.v1.AppendWorkLogsResponse appendWorkLogs(dev.taskyard.v1.AppendWorkLogsRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getAppendWorkLogsMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Stores one checkpoint.  Safe to repeat.
     * Errors: as LeaseService.WriteCheckpoint.
     * </pre>
     */
    @io.grpc.ExperimentalApi("https://github.com/grpc/grpc-java/issues/10918")
    public io.grpc.stub.BlockingClientCall<dev.taskyard.v1.WriteWorkCheckpointRequest, dev.taskyard.v1.WriteWorkCheckpointResponse>
        writeWorkCheckpoint() {
      return io.grpc.stub.ClientCalls.blockingClientStreamingCall(
          getChannel(), getWriteWorkCheckpointMethod(), getCallOptions());
    }

    /**
     * <pre>
     * Streams the newest checkpoint of a leased task.
     * Errors: as LeaseService.ReadLeasedCheckpoint.
     * </pre>
     */
    @io.grpc.ExperimentalApi("https://github.com/grpc/grpc-java/issues/10918")
    public io.grpc.stub.BlockingClientCall<?, dev.taskyard.v1.ReadWorkCheckpointResponse>
        readWorkCheckpoint(dev.taskyard.v1.ReadWorkCheckpointRequest request) {
      return io.grpc.stub.ClientCalls.blockingV2ServerStreamingCall(
          getChannel(), getReadWorkCheckpointMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do limited synchronous rpc calls to service WorkService.
   * <pre>
   * Claim, renew, report, logs and checkpoints for pull workers.
   * </pre>
   */
  public static final class WorkServiceBlockingStub
      extends io.grpc.stub.AbstractBlockingStub<WorkServiceBlockingStub> {
    private WorkServiceBlockingStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected WorkServiceBlockingStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new WorkServiceBlockingStub(channel, callOptions);
    }

    /**
     * <pre>
     * Claims up to max_tasks, waiting for work up to `wait`.  Safe to repeat with the same
     * request_id: a lost answer strands nothing.
     * The worker is listed as a runner; one that drains gets nothing.
     * Errors: INVALID_ARGUMENT (FIELD_INVALID); PERMISSION_DENIED (worker_id outside the key's
     * scope, deleted while it worked, or of a runner with a key of another scope); UNAVAILABLE (SERVER_DRAINING).
     * </pre>
     */
    public dev.taskyard.v1.ClaimTasksResponse claimTasks(dev.taskyard.v1.ClaimTasksRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getClaimTasksMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Renews leases; this is the heartbeat of a pull worker.  Safe to repeat.
     * Errors: INVALID_ARGUMENT (FIELD_INVALID).  Per lease: see LeaseVerdict.
     * </pre>
     */
    public dev.taskyard.v1.RenewWorkResponse renewWork(dev.taskyard.v1.RenewWorkRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getRenewWorkMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Applies up to 1000 reports, each on its own, in order per task.  Safe to repeat.
     * Errors: INVALID_ARGUMENT (FIELD_INVALID).  Per report as in LeaseService.ReportRuns.
     * </pre>
     */
    public dev.taskyard.v1.ReportWorkResponse reportWork(dev.taskyard.v1.ReportWorkRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getReportWorkMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Stores log entries.  Safe to repeat.
     * Errors: INVALID_ARGUMENT (FIELD_INVALID).  Per batch as in LeaseService.AppendLogs.
     * </pre>
     */
    public dev.taskyard.v1.AppendWorkLogsResponse appendWorkLogs(dev.taskyard.v1.AppendWorkLogsRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getAppendWorkLogsMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Streams the newest checkpoint of a leased task.
     * Errors: as LeaseService.ReadLeasedCheckpoint.
     * </pre>
     */
    public java.util.Iterator<dev.taskyard.v1.ReadWorkCheckpointResponse> readWorkCheckpoint(
        dev.taskyard.v1.ReadWorkCheckpointRequest request) {
      return io.grpc.stub.ClientCalls.blockingServerStreamingCall(
          getChannel(), getReadWorkCheckpointMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do ListenableFuture-style rpc calls to service WorkService.
   * <pre>
   * Claim, renew, report, logs and checkpoints for pull workers.
   * </pre>
   */
  public static final class WorkServiceFutureStub
      extends io.grpc.stub.AbstractFutureStub<WorkServiceFutureStub> {
    private WorkServiceFutureStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected WorkServiceFutureStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new WorkServiceFutureStub(channel, callOptions);
    }

    /**
     * <pre>
     * Claims up to max_tasks, waiting for work up to `wait`.  Safe to repeat with the same
     * request_id: a lost answer strands nothing.
     * The worker is listed as a runner; one that drains gets nothing.
     * Errors: INVALID_ARGUMENT (FIELD_INVALID); PERMISSION_DENIED (worker_id outside the key's
     * scope, deleted while it worked, or of a runner with a key of another scope); UNAVAILABLE (SERVER_DRAINING).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.ClaimTasksResponse> claimTasks(
        dev.taskyard.v1.ClaimTasksRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getClaimTasksMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Renews leases; this is the heartbeat of a pull worker.  Safe to repeat.
     * Errors: INVALID_ARGUMENT (FIELD_INVALID).  Per lease: see LeaseVerdict.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.RenewWorkResponse> renewWork(
        dev.taskyard.v1.RenewWorkRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getRenewWorkMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Applies up to 1000 reports, each on its own, in order per task.  Safe to repeat.
     * Errors: INVALID_ARGUMENT (FIELD_INVALID).  Per report as in LeaseService.ReportRuns.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.ReportWorkResponse> reportWork(
        dev.taskyard.v1.ReportWorkRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getReportWorkMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Stores log entries.  Safe to repeat.
     * Errors: INVALID_ARGUMENT (FIELD_INVALID).  Per batch as in LeaseService.AppendLogs.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.AppendWorkLogsResponse> appendWorkLogs(
        dev.taskyard.v1.AppendWorkLogsRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getAppendWorkLogsMethod(), getCallOptions()), request);
    }
  }

  private static final int METHODID_CLAIM_TASKS = 0;
  private static final int METHODID_RENEW_WORK = 1;
  private static final int METHODID_REPORT_WORK = 2;
  private static final int METHODID_APPEND_WORK_LOGS = 3;
  private static final int METHODID_READ_WORK_CHECKPOINT = 4;
  private static final int METHODID_WRITE_WORK_CHECKPOINT = 5;

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
        case METHODID_CLAIM_TASKS:
          serviceImpl.claimTasks((dev.taskyard.v1.ClaimTasksRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.ClaimTasksResponse>) responseObserver);
          break;
        case METHODID_RENEW_WORK:
          serviceImpl.renewWork((dev.taskyard.v1.RenewWorkRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.RenewWorkResponse>) responseObserver);
          break;
        case METHODID_REPORT_WORK:
          serviceImpl.reportWork((dev.taskyard.v1.ReportWorkRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.ReportWorkResponse>) responseObserver);
          break;
        case METHODID_APPEND_WORK_LOGS:
          serviceImpl.appendWorkLogs((dev.taskyard.v1.AppendWorkLogsRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.AppendWorkLogsResponse>) responseObserver);
          break;
        case METHODID_READ_WORK_CHECKPOINT:
          serviceImpl.readWorkCheckpoint((dev.taskyard.v1.ReadWorkCheckpointRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.ReadWorkCheckpointResponse>) responseObserver);
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
        case METHODID_WRITE_WORK_CHECKPOINT:
          return (io.grpc.stub.StreamObserver<Req>) serviceImpl.writeWorkCheckpoint(
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.WriteWorkCheckpointResponse>) responseObserver);
        default:
          throw new AssertionError();
      }
    }
  }

  public static final io.grpc.ServerServiceDefinition bindService(AsyncService service) {
    return io.grpc.ServerServiceDefinition.builder(getServiceDescriptor())
        .addMethod(
          getClaimTasksMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.ClaimTasksRequest,
              dev.taskyard.v1.ClaimTasksResponse>(
                service, METHODID_CLAIM_TASKS)))
        .addMethod(
          getRenewWorkMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.RenewWorkRequest,
              dev.taskyard.v1.RenewWorkResponse>(
                service, METHODID_RENEW_WORK)))
        .addMethod(
          getReportWorkMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.ReportWorkRequest,
              dev.taskyard.v1.ReportWorkResponse>(
                service, METHODID_REPORT_WORK)))
        .addMethod(
          getAppendWorkLogsMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.AppendWorkLogsRequest,
              dev.taskyard.v1.AppendWorkLogsResponse>(
                service, METHODID_APPEND_WORK_LOGS)))
        .addMethod(
          getWriteWorkCheckpointMethod(),
          io.grpc.stub.ServerCalls.asyncClientStreamingCall(
            new MethodHandlers<
              dev.taskyard.v1.WriteWorkCheckpointRequest,
              dev.taskyard.v1.WriteWorkCheckpointResponse>(
                service, METHODID_WRITE_WORK_CHECKPOINT)))
        .addMethod(
          getReadWorkCheckpointMethod(),
          io.grpc.stub.ServerCalls.asyncServerStreamingCall(
            new MethodHandlers<
              dev.taskyard.v1.ReadWorkCheckpointRequest,
              dev.taskyard.v1.ReadWorkCheckpointResponse>(
                service, METHODID_READ_WORK_CHECKPOINT)))
        .build();
  }

  private static volatile io.grpc.ServiceDescriptor serviceDescriptor;

  public static io.grpc.ServiceDescriptor getServiceDescriptor() {
    io.grpc.ServiceDescriptor result = serviceDescriptor;
    if (result == null) {
      synchronized (WorkServiceGrpc.class) {
        result = serviceDescriptor;
        if (result == null) {
          serviceDescriptor = result = io.grpc.ServiceDescriptor.newBuilder(SERVICE_NAME)
              .addMethod(getClaimTasksMethod())
              .addMethod(getRenewWorkMethod())
              .addMethod(getReportWorkMethod())
              .addMethod(getAppendWorkLogsMethod())
              .addMethod(getWriteWorkCheckpointMethod())
              .addMethod(getReadWorkCheckpointMethod())
              .build();
        }
      }
    }
    return result;
  }
}
