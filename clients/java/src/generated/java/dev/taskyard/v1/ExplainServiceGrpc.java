package dev.taskyard.v1;

import static io.grpc.MethodDescriptor.generateFullMethodName;

/**
 * <pre>
 * Answers "why is it not running?".  Served by the scheduler, which decides it.
 * </pre>
 */
@io.grpc.stub.annotations.GrpcGenerated
public final class ExplainServiceGrpc {

  private ExplainServiceGrpc() {}

  public static final java.lang.String SERVICE_NAME = "taskyard.v1.ExplainService";

  // Static method descriptors that strictly reflect the proto.
  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.ExplainTaskRequest,
      dev.taskyard.v1.ExplainTaskResponse> getExplainTaskMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ExplainTask",
      requestType = dev.taskyard.v1.ExplainTaskRequest.class,
      responseType = dev.taskyard.v1.ExplainTaskResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.ExplainTaskRequest,
      dev.taskyard.v1.ExplainTaskResponse> getExplainTaskMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.ExplainTaskRequest, dev.taskyard.v1.ExplainTaskResponse> getExplainTaskMethod;
    if ((getExplainTaskMethod = ExplainServiceGrpc.getExplainTaskMethod) == null) {
      synchronized (ExplainServiceGrpc.class) {
        if ((getExplainTaskMethod = ExplainServiceGrpc.getExplainTaskMethod) == null) {
          ExplainServiceGrpc.getExplainTaskMethod = getExplainTaskMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.ExplainTaskRequest, dev.taskyard.v1.ExplainTaskResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ExplainTask"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ExplainTaskRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ExplainTaskResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getExplainTaskMethod;
  }

  /**
   * Creates a new async stub that supports all call types for the service
   */
  public static ExplainServiceStub newStub(io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<ExplainServiceStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<ExplainServiceStub>() {
        @java.lang.Override
        public ExplainServiceStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new ExplainServiceStub(channel, callOptions);
        }
      };
    return ExplainServiceStub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports all types of calls on the service
   */
  public static ExplainServiceBlockingV2Stub newBlockingV2Stub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<ExplainServiceBlockingV2Stub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<ExplainServiceBlockingV2Stub>() {
        @java.lang.Override
        public ExplainServiceBlockingV2Stub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new ExplainServiceBlockingV2Stub(channel, callOptions);
        }
      };
    return ExplainServiceBlockingV2Stub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports unary and streaming output calls on the service
   */
  public static ExplainServiceBlockingStub newBlockingStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<ExplainServiceBlockingStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<ExplainServiceBlockingStub>() {
        @java.lang.Override
        public ExplainServiceBlockingStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new ExplainServiceBlockingStub(channel, callOptions);
        }
      };
    return ExplainServiceBlockingStub.newStub(factory, channel);
  }

  /**
   * Creates a new ListenableFuture-style stub that supports unary calls on the service
   */
  public static ExplainServiceFutureStub newFutureStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<ExplainServiceFutureStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<ExplainServiceFutureStub>() {
        @java.lang.Override
        public ExplainServiceFutureStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new ExplainServiceFutureStub(channel, callOptions);
        }
      };
    return ExplainServiceFutureStub.newStub(factory, channel);
  }

  /**
   * <pre>
   * Answers "why is it not running?".  Served by the scheduler, which decides it.
   * </pre>
   */
  public interface AsyncService {

    /**
     * <pre>
     * Explains a task, or a spec that was not submitted (dry run).  Reads only; safe to repeat.
     * A dry run checks the spec as CreateTask does.
     * Errors: NOT_FOUND (NOT_FOUND, TASK_TYPE_UNKNOWN); INVALID_ARGUMENT (FIELD_INVALID,
     * TOO_LARGE, PAYLOAD_SCHEMA_VIOLATION); UNAVAILABLE (STORAGE_UNAVAILABLE).
     * </pre>
     */
    default void explainTask(dev.taskyard.v1.ExplainTaskRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ExplainTaskResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getExplainTaskMethod(), responseObserver);
    }
  }

  /**
   * Base class for the server implementation of the service ExplainService.
   * <pre>
   * Answers "why is it not running?".  Served by the scheduler, which decides it.
   * </pre>
   */
  public static abstract class ExplainServiceImplBase
      implements io.grpc.BindableService, AsyncService {

    @java.lang.Override public final io.grpc.ServerServiceDefinition bindService() {
      return ExplainServiceGrpc.bindService(this);
    }
  }

  /**
   * A stub to allow clients to do asynchronous rpc calls to service ExplainService.
   * <pre>
   * Answers "why is it not running?".  Served by the scheduler, which decides it.
   * </pre>
   */
  public static final class ExplainServiceStub
      extends io.grpc.stub.AbstractAsyncStub<ExplainServiceStub> {
    private ExplainServiceStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected ExplainServiceStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new ExplainServiceStub(channel, callOptions);
    }

    /**
     * <pre>
     * Explains a task, or a spec that was not submitted (dry run).  Reads only; safe to repeat.
     * A dry run checks the spec as CreateTask does.
     * Errors: NOT_FOUND (NOT_FOUND, TASK_TYPE_UNKNOWN); INVALID_ARGUMENT (FIELD_INVALID,
     * TOO_LARGE, PAYLOAD_SCHEMA_VIOLATION); UNAVAILABLE (STORAGE_UNAVAILABLE).
     * </pre>
     */
    public void explainTask(dev.taskyard.v1.ExplainTaskRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ExplainTaskResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getExplainTaskMethod(), getCallOptions()), request, responseObserver);
    }
  }

  /**
   * A stub to allow clients to do synchronous rpc calls to service ExplainService.
   * <pre>
   * Answers "why is it not running?".  Served by the scheduler, which decides it.
   * </pre>
   */
  public static final class ExplainServiceBlockingV2Stub
      extends io.grpc.stub.AbstractBlockingStub<ExplainServiceBlockingV2Stub> {
    private ExplainServiceBlockingV2Stub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected ExplainServiceBlockingV2Stub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new ExplainServiceBlockingV2Stub(channel, callOptions);
    }

    /**
     * <pre>
     * Explains a task, or a spec that was not submitted (dry run).  Reads only; safe to repeat.
     * A dry run checks the spec as CreateTask does.
     * Errors: NOT_FOUND (NOT_FOUND, TASK_TYPE_UNKNOWN); INVALID_ARGUMENT (FIELD_INVALID,
     * TOO_LARGE, PAYLOAD_SCHEMA_VIOLATION); UNAVAILABLE (STORAGE_UNAVAILABLE).
     * </pre>
     */
    public dev.taskyard.v1.ExplainTaskResponse explainTask(dev.taskyard.v1.ExplainTaskRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getExplainTaskMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do limited synchronous rpc calls to service ExplainService.
   * <pre>
   * Answers "why is it not running?".  Served by the scheduler, which decides it.
   * </pre>
   */
  public static final class ExplainServiceBlockingStub
      extends io.grpc.stub.AbstractBlockingStub<ExplainServiceBlockingStub> {
    private ExplainServiceBlockingStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected ExplainServiceBlockingStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new ExplainServiceBlockingStub(channel, callOptions);
    }

    /**
     * <pre>
     * Explains a task, or a spec that was not submitted (dry run).  Reads only; safe to repeat.
     * A dry run checks the spec as CreateTask does.
     * Errors: NOT_FOUND (NOT_FOUND, TASK_TYPE_UNKNOWN); INVALID_ARGUMENT (FIELD_INVALID,
     * TOO_LARGE, PAYLOAD_SCHEMA_VIOLATION); UNAVAILABLE (STORAGE_UNAVAILABLE).
     * </pre>
     */
    public dev.taskyard.v1.ExplainTaskResponse explainTask(dev.taskyard.v1.ExplainTaskRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getExplainTaskMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do ListenableFuture-style rpc calls to service ExplainService.
   * <pre>
   * Answers "why is it not running?".  Served by the scheduler, which decides it.
   * </pre>
   */
  public static final class ExplainServiceFutureStub
      extends io.grpc.stub.AbstractFutureStub<ExplainServiceFutureStub> {
    private ExplainServiceFutureStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected ExplainServiceFutureStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new ExplainServiceFutureStub(channel, callOptions);
    }

    /**
     * <pre>
     * Explains a task, or a spec that was not submitted (dry run).  Reads only; safe to repeat.
     * A dry run checks the spec as CreateTask does.
     * Errors: NOT_FOUND (NOT_FOUND, TASK_TYPE_UNKNOWN); INVALID_ARGUMENT (FIELD_INVALID,
     * TOO_LARGE, PAYLOAD_SCHEMA_VIOLATION); UNAVAILABLE (STORAGE_UNAVAILABLE).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.ExplainTaskResponse> explainTask(
        dev.taskyard.v1.ExplainTaskRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getExplainTaskMethod(), getCallOptions()), request);
    }
  }

  private static final int METHODID_EXPLAIN_TASK = 0;

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
        case METHODID_EXPLAIN_TASK:
          serviceImpl.explainTask((dev.taskyard.v1.ExplainTaskRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.ExplainTaskResponse>) responseObserver);
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
          getExplainTaskMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.ExplainTaskRequest,
              dev.taskyard.v1.ExplainTaskResponse>(
                service, METHODID_EXPLAIN_TASK)))
        .build();
  }

  private static volatile io.grpc.ServiceDescriptor serviceDescriptor;

  public static io.grpc.ServiceDescriptor getServiceDescriptor() {
    io.grpc.ServiceDescriptor result = serviceDescriptor;
    if (result == null) {
      synchronized (ExplainServiceGrpc.class) {
        result = serviceDescriptor;
        if (result == null) {
          serviceDescriptor = result = io.grpc.ServiceDescriptor.newBuilder(SERVICE_NAME)
              .addMethod(getExplainTaskMethod())
              .build();
        }
      }
    }
    return result;
  }
}
