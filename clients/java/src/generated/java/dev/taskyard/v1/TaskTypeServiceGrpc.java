package dev.taskyard.v1;

import static io.grpc.MethodDescriptor.generateFullMethodName;

/**
 * <pre>
 * Task types: function registry and workload configurations.  Served by taskdb.
 * </pre>
 */
@io.grpc.stub.annotations.GrpcGenerated
public final class TaskTypeServiceGrpc {

  private TaskTypeServiceGrpc() {}

  public static final java.lang.String SERVICE_NAME = "taskyard.v1.TaskTypeService";

  // Static method descriptors that strictly reflect the proto.
  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.CreateTaskTypeRequest,
      dev.taskyard.v1.CreateTaskTypeResponse> getCreateTaskTypeMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "CreateTaskType",
      requestType = dev.taskyard.v1.CreateTaskTypeRequest.class,
      responseType = dev.taskyard.v1.CreateTaskTypeResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.CreateTaskTypeRequest,
      dev.taskyard.v1.CreateTaskTypeResponse> getCreateTaskTypeMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.CreateTaskTypeRequest, dev.taskyard.v1.CreateTaskTypeResponse> getCreateTaskTypeMethod;
    if ((getCreateTaskTypeMethod = TaskTypeServiceGrpc.getCreateTaskTypeMethod) == null) {
      synchronized (TaskTypeServiceGrpc.class) {
        if ((getCreateTaskTypeMethod = TaskTypeServiceGrpc.getCreateTaskTypeMethod) == null) {
          TaskTypeServiceGrpc.getCreateTaskTypeMethod = getCreateTaskTypeMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.CreateTaskTypeRequest, dev.taskyard.v1.CreateTaskTypeResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "CreateTaskType"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.CreateTaskTypeRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.CreateTaskTypeResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getCreateTaskTypeMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.GetTaskTypeRequest,
      dev.taskyard.v1.GetTaskTypeResponse> getGetTaskTypeMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "GetTaskType",
      requestType = dev.taskyard.v1.GetTaskTypeRequest.class,
      responseType = dev.taskyard.v1.GetTaskTypeResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.GetTaskTypeRequest,
      dev.taskyard.v1.GetTaskTypeResponse> getGetTaskTypeMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.GetTaskTypeRequest, dev.taskyard.v1.GetTaskTypeResponse> getGetTaskTypeMethod;
    if ((getGetTaskTypeMethod = TaskTypeServiceGrpc.getGetTaskTypeMethod) == null) {
      synchronized (TaskTypeServiceGrpc.class) {
        if ((getGetTaskTypeMethod = TaskTypeServiceGrpc.getGetTaskTypeMethod) == null) {
          TaskTypeServiceGrpc.getGetTaskTypeMethod = getGetTaskTypeMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.GetTaskTypeRequest, dev.taskyard.v1.GetTaskTypeResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "GetTaskType"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.GetTaskTypeRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.GetTaskTypeResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getGetTaskTypeMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.ListTaskTypesRequest,
      dev.taskyard.v1.ListTaskTypesResponse> getListTaskTypesMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ListTaskTypes",
      requestType = dev.taskyard.v1.ListTaskTypesRequest.class,
      responseType = dev.taskyard.v1.ListTaskTypesResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.ListTaskTypesRequest,
      dev.taskyard.v1.ListTaskTypesResponse> getListTaskTypesMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.ListTaskTypesRequest, dev.taskyard.v1.ListTaskTypesResponse> getListTaskTypesMethod;
    if ((getListTaskTypesMethod = TaskTypeServiceGrpc.getListTaskTypesMethod) == null) {
      synchronized (TaskTypeServiceGrpc.class) {
        if ((getListTaskTypesMethod = TaskTypeServiceGrpc.getListTaskTypesMethod) == null) {
          TaskTypeServiceGrpc.getListTaskTypesMethod = getListTaskTypesMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.ListTaskTypesRequest, dev.taskyard.v1.ListTaskTypesResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ListTaskTypes"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ListTaskTypesRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ListTaskTypesResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getListTaskTypesMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.UpdateTaskTypeRequest,
      dev.taskyard.v1.UpdateTaskTypeResponse> getUpdateTaskTypeMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "UpdateTaskType",
      requestType = dev.taskyard.v1.UpdateTaskTypeRequest.class,
      responseType = dev.taskyard.v1.UpdateTaskTypeResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.UpdateTaskTypeRequest,
      dev.taskyard.v1.UpdateTaskTypeResponse> getUpdateTaskTypeMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.UpdateTaskTypeRequest, dev.taskyard.v1.UpdateTaskTypeResponse> getUpdateTaskTypeMethod;
    if ((getUpdateTaskTypeMethod = TaskTypeServiceGrpc.getUpdateTaskTypeMethod) == null) {
      synchronized (TaskTypeServiceGrpc.class) {
        if ((getUpdateTaskTypeMethod = TaskTypeServiceGrpc.getUpdateTaskTypeMethod) == null) {
          TaskTypeServiceGrpc.getUpdateTaskTypeMethod = getUpdateTaskTypeMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.UpdateTaskTypeRequest, dev.taskyard.v1.UpdateTaskTypeResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "UpdateTaskType"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.UpdateTaskTypeRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.UpdateTaskTypeResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getUpdateTaskTypeMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.DeleteTaskTypeRequest,
      dev.taskyard.v1.DeleteTaskTypeResponse> getDeleteTaskTypeMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "DeleteTaskType",
      requestType = dev.taskyard.v1.DeleteTaskTypeRequest.class,
      responseType = dev.taskyard.v1.DeleteTaskTypeResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.DeleteTaskTypeRequest,
      dev.taskyard.v1.DeleteTaskTypeResponse> getDeleteTaskTypeMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.DeleteTaskTypeRequest, dev.taskyard.v1.DeleteTaskTypeResponse> getDeleteTaskTypeMethod;
    if ((getDeleteTaskTypeMethod = TaskTypeServiceGrpc.getDeleteTaskTypeMethod) == null) {
      synchronized (TaskTypeServiceGrpc.class) {
        if ((getDeleteTaskTypeMethod = TaskTypeServiceGrpc.getDeleteTaskTypeMethod) == null) {
          TaskTypeServiceGrpc.getDeleteTaskTypeMethod = getDeleteTaskTypeMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.DeleteTaskTypeRequest, dev.taskyard.v1.DeleteTaskTypeResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "DeleteTaskType"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.DeleteTaskTypeRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.DeleteTaskTypeResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getDeleteTaskTypeMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.ValidatePayloadRequest,
      dev.taskyard.v1.ValidatePayloadResponse> getValidatePayloadMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ValidatePayload",
      requestType = dev.taskyard.v1.ValidatePayloadRequest.class,
      responseType = dev.taskyard.v1.ValidatePayloadResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.ValidatePayloadRequest,
      dev.taskyard.v1.ValidatePayloadResponse> getValidatePayloadMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.ValidatePayloadRequest, dev.taskyard.v1.ValidatePayloadResponse> getValidatePayloadMethod;
    if ((getValidatePayloadMethod = TaskTypeServiceGrpc.getValidatePayloadMethod) == null) {
      synchronized (TaskTypeServiceGrpc.class) {
        if ((getValidatePayloadMethod = TaskTypeServiceGrpc.getValidatePayloadMethod) == null) {
          TaskTypeServiceGrpc.getValidatePayloadMethod = getValidatePayloadMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.ValidatePayloadRequest, dev.taskyard.v1.ValidatePayloadResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ValidatePayload"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ValidatePayloadRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ValidatePayloadResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getValidatePayloadMethod;
  }

  /**
   * Creates a new async stub that supports all call types for the service
   */
  public static TaskTypeServiceStub newStub(io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<TaskTypeServiceStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<TaskTypeServiceStub>() {
        @java.lang.Override
        public TaskTypeServiceStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new TaskTypeServiceStub(channel, callOptions);
        }
      };
    return TaskTypeServiceStub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports all types of calls on the service
   */
  public static TaskTypeServiceBlockingV2Stub newBlockingV2Stub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<TaskTypeServiceBlockingV2Stub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<TaskTypeServiceBlockingV2Stub>() {
        @java.lang.Override
        public TaskTypeServiceBlockingV2Stub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new TaskTypeServiceBlockingV2Stub(channel, callOptions);
        }
      };
    return TaskTypeServiceBlockingV2Stub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports unary and streaming output calls on the service
   */
  public static TaskTypeServiceBlockingStub newBlockingStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<TaskTypeServiceBlockingStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<TaskTypeServiceBlockingStub>() {
        @java.lang.Override
        public TaskTypeServiceBlockingStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new TaskTypeServiceBlockingStub(channel, callOptions);
        }
      };
    return TaskTypeServiceBlockingStub.newStub(factory, channel);
  }

  /**
   * Creates a new ListenableFuture-style stub that supports unary calls on the service
   */
  public static TaskTypeServiceFutureStub newFutureStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<TaskTypeServiceFutureStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<TaskTypeServiceFutureStub>() {
        @java.lang.Override
        public TaskTypeServiceFutureStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new TaskTypeServiceFutureStub(channel, callOptions);
        }
      };
    return TaskTypeServiceFutureStub.newStub(factory, channel);
  }

  /**
   * <pre>
   * Task types: function registry and workload configurations.  Served by taskdb.
   * </pre>
   */
  public interface AsyncService {

    /**
     * <pre>
     * Registers a task type.  A repeat is ALREADY_EXISTS.
     * Errors: NOT_FOUND (NOT_FOUND: tenant); ALREADY_EXISTS; INVALID_ARGUMENT (FIELD_INVALID:
     * schema is not valid JSON Schema, defaults contradict bounds).
     * </pre>
     */
    default void createTaskType(dev.taskyard.v1.CreateTaskTypeRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.CreateTaskTypeResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getCreateTaskTypeMethod(), responseObserver);
    }

    /**
     * <pre>
     * Returns a task type.
     * Errors: NOT_FOUND.
     * </pre>
     */
    default void getTaskType(dev.taskyard.v1.GetTaskTypeRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.GetTaskTypeResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getGetTaskTypeMethod(), responseObserver);
    }

    /**
     * <pre>
     * Lists task types.  Filter fields: id, disabled, create_time.
     * Errors: INVALID_ARGUMENT (FILTER_INVALID, PAGE_TOKEN_INVALID).
     * </pre>
     */
    default void listTaskTypes(dev.taskyard.v1.ListTaskTypesRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ListTaskTypesResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getListTaskTypesMethod(), responseObserver);
    }

    /**
     * <pre>
     * Changes a task type; existing tasks keep the defaults they were created with.  In force
     * at once on the replica that answers, everywhere else within 2 s.  Safe to repeat, but with
     * a resource_version: the first call has moved it on.
     * Errors: NOT_FOUND (NOT_FOUND: unless allow_missing); INVALID_ARGUMENT (FIELD_INVALID,
     * FIELD_IMMUTABLE); ABORTED (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    default void updateTaskType(dev.taskyard.v1.UpdateTaskTypeRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.UpdateTaskTypeResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getUpdateTaskTypeMethod(), responseObserver);
    }

    /**
     * <pre>
     * Deletes a task type with its revisions.  A repeat is NOT_FOUND.
     * Errors: NOT_FOUND; FAILED_PRECONDITION (NOT_EMPTY: live tasks use it); ABORTED
     * (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    default void deleteTaskType(dev.taskyard.v1.DeleteTaskTypeRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.DeleteTaskTypeResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getDeleteTaskTypeMethod(), responseObserver);
    }

    /**
     * <pre>
     * Checks a payload against the schema; a payload that does not match is an answer,
     * not an error.
     * Errors: NOT_FOUND.
     * </pre>
     */
    default void validatePayload(dev.taskyard.v1.ValidatePayloadRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ValidatePayloadResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getValidatePayloadMethod(), responseObserver);
    }
  }

  /**
   * Base class for the server implementation of the service TaskTypeService.
   * <pre>
   * Task types: function registry and workload configurations.  Served by taskdb.
   * </pre>
   */
  public static abstract class TaskTypeServiceImplBase
      implements io.grpc.BindableService, AsyncService {

    @java.lang.Override public final io.grpc.ServerServiceDefinition bindService() {
      return TaskTypeServiceGrpc.bindService(this);
    }
  }

  /**
   * A stub to allow clients to do asynchronous rpc calls to service TaskTypeService.
   * <pre>
   * Task types: function registry and workload configurations.  Served by taskdb.
   * </pre>
   */
  public static final class TaskTypeServiceStub
      extends io.grpc.stub.AbstractAsyncStub<TaskTypeServiceStub> {
    private TaskTypeServiceStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected TaskTypeServiceStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new TaskTypeServiceStub(channel, callOptions);
    }

    /**
     * <pre>
     * Registers a task type.  A repeat is ALREADY_EXISTS.
     * Errors: NOT_FOUND (NOT_FOUND: tenant); ALREADY_EXISTS; INVALID_ARGUMENT (FIELD_INVALID:
     * schema is not valid JSON Schema, defaults contradict bounds).
     * </pre>
     */
    public void createTaskType(dev.taskyard.v1.CreateTaskTypeRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.CreateTaskTypeResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getCreateTaskTypeMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Returns a task type.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public void getTaskType(dev.taskyard.v1.GetTaskTypeRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.GetTaskTypeResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getGetTaskTypeMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Lists task types.  Filter fields: id, disabled, create_time.
     * Errors: INVALID_ARGUMENT (FILTER_INVALID, PAGE_TOKEN_INVALID).
     * </pre>
     */
    public void listTaskTypes(dev.taskyard.v1.ListTaskTypesRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ListTaskTypesResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getListTaskTypesMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Changes a task type; existing tasks keep the defaults they were created with.  In force
     * at once on the replica that answers, everywhere else within 2 s.  Safe to repeat, but with
     * a resource_version: the first call has moved it on.
     * Errors: NOT_FOUND (NOT_FOUND: unless allow_missing); INVALID_ARGUMENT (FIELD_INVALID,
     * FIELD_IMMUTABLE); ABORTED (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    public void updateTaskType(dev.taskyard.v1.UpdateTaskTypeRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.UpdateTaskTypeResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getUpdateTaskTypeMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Deletes a task type with its revisions.  A repeat is NOT_FOUND.
     * Errors: NOT_FOUND; FAILED_PRECONDITION (NOT_EMPTY: live tasks use it); ABORTED
     * (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    public void deleteTaskType(dev.taskyard.v1.DeleteTaskTypeRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.DeleteTaskTypeResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getDeleteTaskTypeMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Checks a payload against the schema; a payload that does not match is an answer,
     * not an error.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public void validatePayload(dev.taskyard.v1.ValidatePayloadRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ValidatePayloadResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getValidatePayloadMethod(), getCallOptions()), request, responseObserver);
    }
  }

  /**
   * A stub to allow clients to do synchronous rpc calls to service TaskTypeService.
   * <pre>
   * Task types: function registry and workload configurations.  Served by taskdb.
   * </pre>
   */
  public static final class TaskTypeServiceBlockingV2Stub
      extends io.grpc.stub.AbstractBlockingStub<TaskTypeServiceBlockingV2Stub> {
    private TaskTypeServiceBlockingV2Stub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected TaskTypeServiceBlockingV2Stub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new TaskTypeServiceBlockingV2Stub(channel, callOptions);
    }

    /**
     * <pre>
     * Registers a task type.  A repeat is ALREADY_EXISTS.
     * Errors: NOT_FOUND (NOT_FOUND: tenant); ALREADY_EXISTS; INVALID_ARGUMENT (FIELD_INVALID:
     * schema is not valid JSON Schema, defaults contradict bounds).
     * </pre>
     */
    public dev.taskyard.v1.CreateTaskTypeResponse createTaskType(dev.taskyard.v1.CreateTaskTypeRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getCreateTaskTypeMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Returns a task type.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public dev.taskyard.v1.GetTaskTypeResponse getTaskType(dev.taskyard.v1.GetTaskTypeRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getGetTaskTypeMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Lists task types.  Filter fields: id, disabled, create_time.
     * Errors: INVALID_ARGUMENT (FILTER_INVALID, PAGE_TOKEN_INVALID).
     * </pre>
     */
    public dev.taskyard.v1.ListTaskTypesResponse listTaskTypes(dev.taskyard.v1.ListTaskTypesRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getListTaskTypesMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Changes a task type; existing tasks keep the defaults they were created with.  In force
     * at once on the replica that answers, everywhere else within 2 s.  Safe to repeat, but with
     * a resource_version: the first call has moved it on.
     * Errors: NOT_FOUND (NOT_FOUND: unless allow_missing); INVALID_ARGUMENT (FIELD_INVALID,
     * FIELD_IMMUTABLE); ABORTED (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    public dev.taskyard.v1.UpdateTaskTypeResponse updateTaskType(dev.taskyard.v1.UpdateTaskTypeRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getUpdateTaskTypeMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Deletes a task type with its revisions.  A repeat is NOT_FOUND.
     * Errors: NOT_FOUND; FAILED_PRECONDITION (NOT_EMPTY: live tasks use it); ABORTED
     * (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    public dev.taskyard.v1.DeleteTaskTypeResponse deleteTaskType(dev.taskyard.v1.DeleteTaskTypeRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getDeleteTaskTypeMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Checks a payload against the schema; a payload that does not match is an answer,
     * not an error.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public dev.taskyard.v1.ValidatePayloadResponse validatePayload(dev.taskyard.v1.ValidatePayloadRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getValidatePayloadMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do limited synchronous rpc calls to service TaskTypeService.
   * <pre>
   * Task types: function registry and workload configurations.  Served by taskdb.
   * </pre>
   */
  public static final class TaskTypeServiceBlockingStub
      extends io.grpc.stub.AbstractBlockingStub<TaskTypeServiceBlockingStub> {
    private TaskTypeServiceBlockingStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected TaskTypeServiceBlockingStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new TaskTypeServiceBlockingStub(channel, callOptions);
    }

    /**
     * <pre>
     * Registers a task type.  A repeat is ALREADY_EXISTS.
     * Errors: NOT_FOUND (NOT_FOUND: tenant); ALREADY_EXISTS; INVALID_ARGUMENT (FIELD_INVALID:
     * schema is not valid JSON Schema, defaults contradict bounds).
     * </pre>
     */
    public dev.taskyard.v1.CreateTaskTypeResponse createTaskType(dev.taskyard.v1.CreateTaskTypeRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getCreateTaskTypeMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Returns a task type.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public dev.taskyard.v1.GetTaskTypeResponse getTaskType(dev.taskyard.v1.GetTaskTypeRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getGetTaskTypeMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Lists task types.  Filter fields: id, disabled, create_time.
     * Errors: INVALID_ARGUMENT (FILTER_INVALID, PAGE_TOKEN_INVALID).
     * </pre>
     */
    public dev.taskyard.v1.ListTaskTypesResponse listTaskTypes(dev.taskyard.v1.ListTaskTypesRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getListTaskTypesMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Changes a task type; existing tasks keep the defaults they were created with.  In force
     * at once on the replica that answers, everywhere else within 2 s.  Safe to repeat, but with
     * a resource_version: the first call has moved it on.
     * Errors: NOT_FOUND (NOT_FOUND: unless allow_missing); INVALID_ARGUMENT (FIELD_INVALID,
     * FIELD_IMMUTABLE); ABORTED (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    public dev.taskyard.v1.UpdateTaskTypeResponse updateTaskType(dev.taskyard.v1.UpdateTaskTypeRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getUpdateTaskTypeMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Deletes a task type with its revisions.  A repeat is NOT_FOUND.
     * Errors: NOT_FOUND; FAILED_PRECONDITION (NOT_EMPTY: live tasks use it); ABORTED
     * (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    public dev.taskyard.v1.DeleteTaskTypeResponse deleteTaskType(dev.taskyard.v1.DeleteTaskTypeRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getDeleteTaskTypeMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Checks a payload against the schema; a payload that does not match is an answer,
     * not an error.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public dev.taskyard.v1.ValidatePayloadResponse validatePayload(dev.taskyard.v1.ValidatePayloadRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getValidatePayloadMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do ListenableFuture-style rpc calls to service TaskTypeService.
   * <pre>
   * Task types: function registry and workload configurations.  Served by taskdb.
   * </pre>
   */
  public static final class TaskTypeServiceFutureStub
      extends io.grpc.stub.AbstractFutureStub<TaskTypeServiceFutureStub> {
    private TaskTypeServiceFutureStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected TaskTypeServiceFutureStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new TaskTypeServiceFutureStub(channel, callOptions);
    }

    /**
     * <pre>
     * Registers a task type.  A repeat is ALREADY_EXISTS.
     * Errors: NOT_FOUND (NOT_FOUND: tenant); ALREADY_EXISTS; INVALID_ARGUMENT (FIELD_INVALID:
     * schema is not valid JSON Schema, defaults contradict bounds).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.CreateTaskTypeResponse> createTaskType(
        dev.taskyard.v1.CreateTaskTypeRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getCreateTaskTypeMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Returns a task type.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.GetTaskTypeResponse> getTaskType(
        dev.taskyard.v1.GetTaskTypeRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getGetTaskTypeMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Lists task types.  Filter fields: id, disabled, create_time.
     * Errors: INVALID_ARGUMENT (FILTER_INVALID, PAGE_TOKEN_INVALID).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.ListTaskTypesResponse> listTaskTypes(
        dev.taskyard.v1.ListTaskTypesRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getListTaskTypesMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Changes a task type; existing tasks keep the defaults they were created with.  In force
     * at once on the replica that answers, everywhere else within 2 s.  Safe to repeat, but with
     * a resource_version: the first call has moved it on.
     * Errors: NOT_FOUND (NOT_FOUND: unless allow_missing); INVALID_ARGUMENT (FIELD_INVALID,
     * FIELD_IMMUTABLE); ABORTED (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.UpdateTaskTypeResponse> updateTaskType(
        dev.taskyard.v1.UpdateTaskTypeRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getUpdateTaskTypeMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Deletes a task type with its revisions.  A repeat is NOT_FOUND.
     * Errors: NOT_FOUND; FAILED_PRECONDITION (NOT_EMPTY: live tasks use it); ABORTED
     * (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.DeleteTaskTypeResponse> deleteTaskType(
        dev.taskyard.v1.DeleteTaskTypeRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getDeleteTaskTypeMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Checks a payload against the schema; a payload that does not match is an answer,
     * not an error.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.ValidatePayloadResponse> validatePayload(
        dev.taskyard.v1.ValidatePayloadRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getValidatePayloadMethod(), getCallOptions()), request);
    }
  }

  private static final int METHODID_CREATE_TASK_TYPE = 0;
  private static final int METHODID_GET_TASK_TYPE = 1;
  private static final int METHODID_LIST_TASK_TYPES = 2;
  private static final int METHODID_UPDATE_TASK_TYPE = 3;
  private static final int METHODID_DELETE_TASK_TYPE = 4;
  private static final int METHODID_VALIDATE_PAYLOAD = 5;

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
        case METHODID_CREATE_TASK_TYPE:
          serviceImpl.createTaskType((dev.taskyard.v1.CreateTaskTypeRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.CreateTaskTypeResponse>) responseObserver);
          break;
        case METHODID_GET_TASK_TYPE:
          serviceImpl.getTaskType((dev.taskyard.v1.GetTaskTypeRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.GetTaskTypeResponse>) responseObserver);
          break;
        case METHODID_LIST_TASK_TYPES:
          serviceImpl.listTaskTypes((dev.taskyard.v1.ListTaskTypesRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.ListTaskTypesResponse>) responseObserver);
          break;
        case METHODID_UPDATE_TASK_TYPE:
          serviceImpl.updateTaskType((dev.taskyard.v1.UpdateTaskTypeRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.UpdateTaskTypeResponse>) responseObserver);
          break;
        case METHODID_DELETE_TASK_TYPE:
          serviceImpl.deleteTaskType((dev.taskyard.v1.DeleteTaskTypeRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.DeleteTaskTypeResponse>) responseObserver);
          break;
        case METHODID_VALIDATE_PAYLOAD:
          serviceImpl.validatePayload((dev.taskyard.v1.ValidatePayloadRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.ValidatePayloadResponse>) responseObserver);
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
          getCreateTaskTypeMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.CreateTaskTypeRequest,
              dev.taskyard.v1.CreateTaskTypeResponse>(
                service, METHODID_CREATE_TASK_TYPE)))
        .addMethod(
          getGetTaskTypeMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.GetTaskTypeRequest,
              dev.taskyard.v1.GetTaskTypeResponse>(
                service, METHODID_GET_TASK_TYPE)))
        .addMethod(
          getListTaskTypesMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.ListTaskTypesRequest,
              dev.taskyard.v1.ListTaskTypesResponse>(
                service, METHODID_LIST_TASK_TYPES)))
        .addMethod(
          getUpdateTaskTypeMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.UpdateTaskTypeRequest,
              dev.taskyard.v1.UpdateTaskTypeResponse>(
                service, METHODID_UPDATE_TASK_TYPE)))
        .addMethod(
          getDeleteTaskTypeMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.DeleteTaskTypeRequest,
              dev.taskyard.v1.DeleteTaskTypeResponse>(
                service, METHODID_DELETE_TASK_TYPE)))
        .addMethod(
          getValidatePayloadMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.ValidatePayloadRequest,
              dev.taskyard.v1.ValidatePayloadResponse>(
                service, METHODID_VALIDATE_PAYLOAD)))
        .build();
  }

  private static volatile io.grpc.ServiceDescriptor serviceDescriptor;

  public static io.grpc.ServiceDescriptor getServiceDescriptor() {
    io.grpc.ServiceDescriptor result = serviceDescriptor;
    if (result == null) {
      synchronized (TaskTypeServiceGrpc.class) {
        result = serviceDescriptor;
        if (result == null) {
          serviceDescriptor = result = io.grpc.ServiceDescriptor.newBuilder(SERVICE_NAME)
              .addMethod(getCreateTaskTypeMethod())
              .addMethod(getGetTaskTypeMethod())
              .addMethod(getListTaskTypesMethod())
              .addMethod(getUpdateTaskTypeMethod())
              .addMethod(getDeleteTaskTypeMethod())
              .addMethod(getValidatePayloadMethod())
              .build();
        }
      }
    }
    return result;
  }
}
