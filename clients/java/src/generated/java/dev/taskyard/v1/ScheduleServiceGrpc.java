package dev.taskyard.v1;

import static io.grpc.MethodDescriptor.generateFullMethodName;

/**
 * <pre>
 * Schedules: tasks that are created by time.  Served by taskdb.
 * </pre>
 */
@io.grpc.stub.annotations.GrpcGenerated
public final class ScheduleServiceGrpc {

  private ScheduleServiceGrpc() {}

  public static final java.lang.String SERVICE_NAME = "taskyard.v1.ScheduleService";

  // Static method descriptors that strictly reflect the proto.
  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.CreateScheduleRequest,
      dev.taskyard.v1.CreateScheduleResponse> getCreateScheduleMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "CreateSchedule",
      requestType = dev.taskyard.v1.CreateScheduleRequest.class,
      responseType = dev.taskyard.v1.CreateScheduleResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.CreateScheduleRequest,
      dev.taskyard.v1.CreateScheduleResponse> getCreateScheduleMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.CreateScheduleRequest, dev.taskyard.v1.CreateScheduleResponse> getCreateScheduleMethod;
    if ((getCreateScheduleMethod = ScheduleServiceGrpc.getCreateScheduleMethod) == null) {
      synchronized (ScheduleServiceGrpc.class) {
        if ((getCreateScheduleMethod = ScheduleServiceGrpc.getCreateScheduleMethod) == null) {
          ScheduleServiceGrpc.getCreateScheduleMethod = getCreateScheduleMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.CreateScheduleRequest, dev.taskyard.v1.CreateScheduleResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "CreateSchedule"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.CreateScheduleRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.CreateScheduleResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getCreateScheduleMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.GetScheduleRequest,
      dev.taskyard.v1.GetScheduleResponse> getGetScheduleMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "GetSchedule",
      requestType = dev.taskyard.v1.GetScheduleRequest.class,
      responseType = dev.taskyard.v1.GetScheduleResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.GetScheduleRequest,
      dev.taskyard.v1.GetScheduleResponse> getGetScheduleMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.GetScheduleRequest, dev.taskyard.v1.GetScheduleResponse> getGetScheduleMethod;
    if ((getGetScheduleMethod = ScheduleServiceGrpc.getGetScheduleMethod) == null) {
      synchronized (ScheduleServiceGrpc.class) {
        if ((getGetScheduleMethod = ScheduleServiceGrpc.getGetScheduleMethod) == null) {
          ScheduleServiceGrpc.getGetScheduleMethod = getGetScheduleMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.GetScheduleRequest, dev.taskyard.v1.GetScheduleResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "GetSchedule"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.GetScheduleRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.GetScheduleResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getGetScheduleMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.ListSchedulesRequest,
      dev.taskyard.v1.ListSchedulesResponse> getListSchedulesMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ListSchedules",
      requestType = dev.taskyard.v1.ListSchedulesRequest.class,
      responseType = dev.taskyard.v1.ListSchedulesResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.ListSchedulesRequest,
      dev.taskyard.v1.ListSchedulesResponse> getListSchedulesMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.ListSchedulesRequest, dev.taskyard.v1.ListSchedulesResponse> getListSchedulesMethod;
    if ((getListSchedulesMethod = ScheduleServiceGrpc.getListSchedulesMethod) == null) {
      synchronized (ScheduleServiceGrpc.class) {
        if ((getListSchedulesMethod = ScheduleServiceGrpc.getListSchedulesMethod) == null) {
          ScheduleServiceGrpc.getListSchedulesMethod = getListSchedulesMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.ListSchedulesRequest, dev.taskyard.v1.ListSchedulesResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ListSchedules"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ListSchedulesRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ListSchedulesResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getListSchedulesMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.UpdateScheduleRequest,
      dev.taskyard.v1.UpdateScheduleResponse> getUpdateScheduleMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "UpdateSchedule",
      requestType = dev.taskyard.v1.UpdateScheduleRequest.class,
      responseType = dev.taskyard.v1.UpdateScheduleResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.UpdateScheduleRequest,
      dev.taskyard.v1.UpdateScheduleResponse> getUpdateScheduleMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.UpdateScheduleRequest, dev.taskyard.v1.UpdateScheduleResponse> getUpdateScheduleMethod;
    if ((getUpdateScheduleMethod = ScheduleServiceGrpc.getUpdateScheduleMethod) == null) {
      synchronized (ScheduleServiceGrpc.class) {
        if ((getUpdateScheduleMethod = ScheduleServiceGrpc.getUpdateScheduleMethod) == null) {
          ScheduleServiceGrpc.getUpdateScheduleMethod = getUpdateScheduleMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.UpdateScheduleRequest, dev.taskyard.v1.UpdateScheduleResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "UpdateSchedule"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.UpdateScheduleRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.UpdateScheduleResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getUpdateScheduleMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.DeleteScheduleRequest,
      dev.taskyard.v1.DeleteScheduleResponse> getDeleteScheduleMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "DeleteSchedule",
      requestType = dev.taskyard.v1.DeleteScheduleRequest.class,
      responseType = dev.taskyard.v1.DeleteScheduleResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.DeleteScheduleRequest,
      dev.taskyard.v1.DeleteScheduleResponse> getDeleteScheduleMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.DeleteScheduleRequest, dev.taskyard.v1.DeleteScheduleResponse> getDeleteScheduleMethod;
    if ((getDeleteScheduleMethod = ScheduleServiceGrpc.getDeleteScheduleMethod) == null) {
      synchronized (ScheduleServiceGrpc.class) {
        if ((getDeleteScheduleMethod = ScheduleServiceGrpc.getDeleteScheduleMethod) == null) {
          ScheduleServiceGrpc.getDeleteScheduleMethod = getDeleteScheduleMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.DeleteScheduleRequest, dev.taskyard.v1.DeleteScheduleResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "DeleteSchedule"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.DeleteScheduleRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.DeleteScheduleResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getDeleteScheduleMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.PauseScheduleRequest,
      dev.taskyard.v1.PauseScheduleResponse> getPauseScheduleMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "PauseSchedule",
      requestType = dev.taskyard.v1.PauseScheduleRequest.class,
      responseType = dev.taskyard.v1.PauseScheduleResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.PauseScheduleRequest,
      dev.taskyard.v1.PauseScheduleResponse> getPauseScheduleMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.PauseScheduleRequest, dev.taskyard.v1.PauseScheduleResponse> getPauseScheduleMethod;
    if ((getPauseScheduleMethod = ScheduleServiceGrpc.getPauseScheduleMethod) == null) {
      synchronized (ScheduleServiceGrpc.class) {
        if ((getPauseScheduleMethod = ScheduleServiceGrpc.getPauseScheduleMethod) == null) {
          ScheduleServiceGrpc.getPauseScheduleMethod = getPauseScheduleMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.PauseScheduleRequest, dev.taskyard.v1.PauseScheduleResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "PauseSchedule"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.PauseScheduleRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.PauseScheduleResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getPauseScheduleMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.ResumeScheduleRequest,
      dev.taskyard.v1.ResumeScheduleResponse> getResumeScheduleMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ResumeSchedule",
      requestType = dev.taskyard.v1.ResumeScheduleRequest.class,
      responseType = dev.taskyard.v1.ResumeScheduleResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.ResumeScheduleRequest,
      dev.taskyard.v1.ResumeScheduleResponse> getResumeScheduleMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.ResumeScheduleRequest, dev.taskyard.v1.ResumeScheduleResponse> getResumeScheduleMethod;
    if ((getResumeScheduleMethod = ScheduleServiceGrpc.getResumeScheduleMethod) == null) {
      synchronized (ScheduleServiceGrpc.class) {
        if ((getResumeScheduleMethod = ScheduleServiceGrpc.getResumeScheduleMethod) == null) {
          ScheduleServiceGrpc.getResumeScheduleMethod = getResumeScheduleMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.ResumeScheduleRequest, dev.taskyard.v1.ResumeScheduleResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ResumeSchedule"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ResumeScheduleRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ResumeScheduleResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getResumeScheduleMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.RunScheduleRequest,
      dev.taskyard.v1.RunScheduleResponse> getRunScheduleMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "RunSchedule",
      requestType = dev.taskyard.v1.RunScheduleRequest.class,
      responseType = dev.taskyard.v1.RunScheduleResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.RunScheduleRequest,
      dev.taskyard.v1.RunScheduleResponse> getRunScheduleMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.RunScheduleRequest, dev.taskyard.v1.RunScheduleResponse> getRunScheduleMethod;
    if ((getRunScheduleMethod = ScheduleServiceGrpc.getRunScheduleMethod) == null) {
      synchronized (ScheduleServiceGrpc.class) {
        if ((getRunScheduleMethod = ScheduleServiceGrpc.getRunScheduleMethod) == null) {
          ScheduleServiceGrpc.getRunScheduleMethod = getRunScheduleMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.RunScheduleRequest, dev.taskyard.v1.RunScheduleResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "RunSchedule"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.RunScheduleRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.RunScheduleResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getRunScheduleMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.BackfillScheduleRequest,
      dev.taskyard.v1.BackfillScheduleResponse> getBackfillScheduleMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "BackfillSchedule",
      requestType = dev.taskyard.v1.BackfillScheduleRequest.class,
      responseType = dev.taskyard.v1.BackfillScheduleResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.BackfillScheduleRequest,
      dev.taskyard.v1.BackfillScheduleResponse> getBackfillScheduleMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.BackfillScheduleRequest, dev.taskyard.v1.BackfillScheduleResponse> getBackfillScheduleMethod;
    if ((getBackfillScheduleMethod = ScheduleServiceGrpc.getBackfillScheduleMethod) == null) {
      synchronized (ScheduleServiceGrpc.class) {
        if ((getBackfillScheduleMethod = ScheduleServiceGrpc.getBackfillScheduleMethod) == null) {
          ScheduleServiceGrpc.getBackfillScheduleMethod = getBackfillScheduleMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.BackfillScheduleRequest, dev.taskyard.v1.BackfillScheduleResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "BackfillSchedule"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.BackfillScheduleRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.BackfillScheduleResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getBackfillScheduleMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.PreviewScheduleRequest,
      dev.taskyard.v1.PreviewScheduleResponse> getPreviewScheduleMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "PreviewSchedule",
      requestType = dev.taskyard.v1.PreviewScheduleRequest.class,
      responseType = dev.taskyard.v1.PreviewScheduleResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.PreviewScheduleRequest,
      dev.taskyard.v1.PreviewScheduleResponse> getPreviewScheduleMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.PreviewScheduleRequest, dev.taskyard.v1.PreviewScheduleResponse> getPreviewScheduleMethod;
    if ((getPreviewScheduleMethod = ScheduleServiceGrpc.getPreviewScheduleMethod) == null) {
      synchronized (ScheduleServiceGrpc.class) {
        if ((getPreviewScheduleMethod = ScheduleServiceGrpc.getPreviewScheduleMethod) == null) {
          ScheduleServiceGrpc.getPreviewScheduleMethod = getPreviewScheduleMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.PreviewScheduleRequest, dev.taskyard.v1.PreviewScheduleResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "PreviewSchedule"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.PreviewScheduleRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.PreviewScheduleResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getPreviewScheduleMethod;
  }

  /**
   * Creates a new async stub that supports all call types for the service
   */
  public static ScheduleServiceStub newStub(io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<ScheduleServiceStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<ScheduleServiceStub>() {
        @java.lang.Override
        public ScheduleServiceStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new ScheduleServiceStub(channel, callOptions);
        }
      };
    return ScheduleServiceStub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports all types of calls on the service
   */
  public static ScheduleServiceBlockingV2Stub newBlockingV2Stub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<ScheduleServiceBlockingV2Stub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<ScheduleServiceBlockingV2Stub>() {
        @java.lang.Override
        public ScheduleServiceBlockingV2Stub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new ScheduleServiceBlockingV2Stub(channel, callOptions);
        }
      };
    return ScheduleServiceBlockingV2Stub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports unary and streaming output calls on the service
   */
  public static ScheduleServiceBlockingStub newBlockingStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<ScheduleServiceBlockingStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<ScheduleServiceBlockingStub>() {
        @java.lang.Override
        public ScheduleServiceBlockingStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new ScheduleServiceBlockingStub(channel, callOptions);
        }
      };
    return ScheduleServiceBlockingStub.newStub(factory, channel);
  }

  /**
   * Creates a new ListenableFuture-style stub that supports unary calls on the service
   */
  public static ScheduleServiceFutureStub newFutureStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<ScheduleServiceFutureStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<ScheduleServiceFutureStub>() {
        @java.lang.Override
        public ScheduleServiceFutureStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new ScheduleServiceFutureStub(channel, callOptions);
        }
      };
    return ScheduleServiceFutureStub.newStub(factory, channel);
  }

  /**
   * <pre>
   * Schedules: tasks that are created by time.  Served by taskdb.
   * </pre>
   */
  public interface AsyncService {

    /**
     * <pre>
     * Creates a schedule; its first instant is the first one after now and not before start_time.
     * A repeat is ALREADY_EXISTS, with the same request_id the schedule.
     * Errors: NOT_FOUND (NOT_FOUND: tenant; TASK_TYPE_UNKNOWN); ALREADY_EXISTS; INVALID_ARGUMENT
     * (FIELD_INVALID: cron line without an instant, unknown zone, neither cron nor every, a template
     * that CreateTask refuses, 1,000 schedules exist; PAYLOAD_SCHEMA_VIOLATION, TOO_LARGE);
     * FAILED_PRECONDITION (TENANT_SUSPENDED, TASK_TYPE_DISABLED).
     * </pre>
     */
    default void createSchedule(dev.taskyard.v1.CreateScheduleRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.CreateScheduleResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getCreateScheduleMethod(), responseObserver);
    }

    /**
     * <pre>
     * Returns a schedule.
     * Errors: NOT_FOUND.
     * </pre>
     */
    default void getSchedule(dev.taskyard.v1.GetScheduleRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.GetScheduleResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getGetScheduleMethod(), responseObserver);
    }

    /**
     * <pre>
     * Lists schedules, by id.  Filter fields: id, paused, create_time.
     * Errors: INVALID_ARGUMENT (FILTER_INVALID, PAGE_TOKEN_INVALID).
     * </pre>
     */
    default void listSchedules(dev.taskyard.v1.ListSchedulesRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ListSchedulesResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getListSchedulesMethod(), responseObserver);
    }

    /**
     * <pre>
     * Changes a schedule; tasks that it created stay as they are.  After a change of its times the
     * next instant is the first one after now, and instants that were due and not handled are
     * missed.  Safe to repeat, but with a resource_version: the first call has moved it on.
     * Errors: NOT_FOUND (NOT_FOUND: unless allow_missing; TASK_TYPE_UNKNOWN); INVALID_ARGUMENT
     * (FIELD_INVALID, FIELD_IMMUTABLE, PAYLOAD_SCHEMA_VIOLATION, TOO_LARGE); ABORTED
     * (RESOURCE_VERSION_MISMATCH); FAILED_PRECONDITION (TENANT_SUSPENDED, TASK_TYPE_DISABLED).
     * </pre>
     */
    default void updateSchedule(dev.taskyard.v1.UpdateScheduleRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.UpdateScheduleResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getUpdateScheduleMethod(), responseObserver);
    }

    /**
     * <pre>
     * Deletes a schedule; its tasks stay.  A repeat is NOT_FOUND.
     * Errors: NOT_FOUND; ABORTED (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    default void deleteSchedule(dev.taskyard.v1.DeleteScheduleRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.DeleteScheduleResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getDeleteScheduleMethod(), responseObserver);
    }

    /**
     * <pre>
     * Pauses a schedule; its live tasks go on.  Safe to repeat: the note is replaced.
     * Errors: NOT_FOUND.
     * </pre>
     */
    default void pauseSchedule(dev.taskyard.v1.PauseScheduleRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.PauseScheduleResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getPauseScheduleMethod(), responseObserver);
    }

    /**
     * <pre>
     * Resumes a schedule at its first instant after now; what fell into the pause is not caught up.
     * Safe to repeat.
     * Errors: NOT_FOUND.
     * </pre>
     */
    default void resumeSchedule(dev.taskyard.v1.ResumeScheduleRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ResumeScheduleResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getResumeScheduleMethod(), responseObserver);
    }

    /**
     * <pre>
     * Creates a task now, also while the schedule is paused; `overlap` applies.  Its instant is the
     * time of the call.  remaining_runs is not touched.  A repeat with the same request_id returns
     * the same task.
     * Errors: NOT_FOUND (NOT_FOUND, TASK_TYPE_UNKNOWN); those of CreateTask for its template:
     * INVALID_ARGUMENT (FIELD_INVALID, PAYLOAD_SCHEMA_VIOLATION); ALREADY_EXISTS (REQUEST_ID_REUSED);
     * FAILED_PRECONDITION (TENANT_SUSPENDED, TASK_TYPE_DISABLED); RESOURCE_EXHAUSTED (RATE_LIMITED,
     * QUEUE_DEPTH_EXCEEDED, SLOT_QUEUE_FULL, PLACEMENT_CLASS_LIMIT, STORAGE_QUOTA_EXCEEDED).
     * </pre>
     */
    default void runSchedule(dev.taskyard.v1.RunScheduleRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.RunScheduleResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getRunScheduleMethod(), responseObserver);
    }

    /**
     * <pre>
     * Creates the tasks of past instants, oldest first, all or none; instants whose task exists are
     * left out.  Safe to repeat while those tasks exist.
     * Errors: NOT_FOUND (NOT_FOUND, TASK_TYPE_UNKNOWN); INVALID_ARGUMENT (FIELD_INVALID: more than
     * 1,000 instants, or a range that does not end in the past; PAYLOAD_SCHEMA_VIOLATION);
     * FAILED_PRECONDITION (TENANT_SUSPENDED, TASK_TYPE_DISABLED); RESOURCE_EXHAUSTED (RATE_LIMITED,
     * QUEUE_DEPTH_EXCEEDED, SLOT_QUEUE_FULL, PLACEMENT_CLASS_LIMIT, STORAGE_QUOTA_EXCEEDED).
     * </pre>
     */
    default void backfillSchedule(dev.taskyard.v1.BackfillScheduleRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.BackfillScheduleResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getBackfillScheduleMethod(), responseObserver);
    }

    /**
     * <pre>
     * Returns the next instants of a schedule, stored or not; changes nothing.  Safe to repeat.
     * Errors: NOT_FOUND; INVALID_ARGUMENT (FIELD_INVALID: neither name nor schedule, or both, or
     * times of `schedule` that a new schedule may not have).
     * </pre>
     */
    default void previewSchedule(dev.taskyard.v1.PreviewScheduleRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.PreviewScheduleResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getPreviewScheduleMethod(), responseObserver);
    }
  }

  /**
   * Base class for the server implementation of the service ScheduleService.
   * <pre>
   * Schedules: tasks that are created by time.  Served by taskdb.
   * </pre>
   */
  public static abstract class ScheduleServiceImplBase
      implements io.grpc.BindableService, AsyncService {

    @java.lang.Override public final io.grpc.ServerServiceDefinition bindService() {
      return ScheduleServiceGrpc.bindService(this);
    }
  }

  /**
   * A stub to allow clients to do asynchronous rpc calls to service ScheduleService.
   * <pre>
   * Schedules: tasks that are created by time.  Served by taskdb.
   * </pre>
   */
  public static final class ScheduleServiceStub
      extends io.grpc.stub.AbstractAsyncStub<ScheduleServiceStub> {
    private ScheduleServiceStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected ScheduleServiceStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new ScheduleServiceStub(channel, callOptions);
    }

    /**
     * <pre>
     * Creates a schedule; its first instant is the first one after now and not before start_time.
     * A repeat is ALREADY_EXISTS, with the same request_id the schedule.
     * Errors: NOT_FOUND (NOT_FOUND: tenant; TASK_TYPE_UNKNOWN); ALREADY_EXISTS; INVALID_ARGUMENT
     * (FIELD_INVALID: cron line without an instant, unknown zone, neither cron nor every, a template
     * that CreateTask refuses, 1,000 schedules exist; PAYLOAD_SCHEMA_VIOLATION, TOO_LARGE);
     * FAILED_PRECONDITION (TENANT_SUSPENDED, TASK_TYPE_DISABLED).
     * </pre>
     */
    public void createSchedule(dev.taskyard.v1.CreateScheduleRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.CreateScheduleResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getCreateScheduleMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Returns a schedule.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public void getSchedule(dev.taskyard.v1.GetScheduleRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.GetScheduleResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getGetScheduleMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Lists schedules, by id.  Filter fields: id, paused, create_time.
     * Errors: INVALID_ARGUMENT (FILTER_INVALID, PAGE_TOKEN_INVALID).
     * </pre>
     */
    public void listSchedules(dev.taskyard.v1.ListSchedulesRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ListSchedulesResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getListSchedulesMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Changes a schedule; tasks that it created stay as they are.  After a change of its times the
     * next instant is the first one after now, and instants that were due and not handled are
     * missed.  Safe to repeat, but with a resource_version: the first call has moved it on.
     * Errors: NOT_FOUND (NOT_FOUND: unless allow_missing; TASK_TYPE_UNKNOWN); INVALID_ARGUMENT
     * (FIELD_INVALID, FIELD_IMMUTABLE, PAYLOAD_SCHEMA_VIOLATION, TOO_LARGE); ABORTED
     * (RESOURCE_VERSION_MISMATCH); FAILED_PRECONDITION (TENANT_SUSPENDED, TASK_TYPE_DISABLED).
     * </pre>
     */
    public void updateSchedule(dev.taskyard.v1.UpdateScheduleRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.UpdateScheduleResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getUpdateScheduleMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Deletes a schedule; its tasks stay.  A repeat is NOT_FOUND.
     * Errors: NOT_FOUND; ABORTED (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    public void deleteSchedule(dev.taskyard.v1.DeleteScheduleRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.DeleteScheduleResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getDeleteScheduleMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Pauses a schedule; its live tasks go on.  Safe to repeat: the note is replaced.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public void pauseSchedule(dev.taskyard.v1.PauseScheduleRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.PauseScheduleResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getPauseScheduleMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Resumes a schedule at its first instant after now; what fell into the pause is not caught up.
     * Safe to repeat.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public void resumeSchedule(dev.taskyard.v1.ResumeScheduleRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ResumeScheduleResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getResumeScheduleMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Creates a task now, also while the schedule is paused; `overlap` applies.  Its instant is the
     * time of the call.  remaining_runs is not touched.  A repeat with the same request_id returns
     * the same task.
     * Errors: NOT_FOUND (NOT_FOUND, TASK_TYPE_UNKNOWN); those of CreateTask for its template:
     * INVALID_ARGUMENT (FIELD_INVALID, PAYLOAD_SCHEMA_VIOLATION); ALREADY_EXISTS (REQUEST_ID_REUSED);
     * FAILED_PRECONDITION (TENANT_SUSPENDED, TASK_TYPE_DISABLED); RESOURCE_EXHAUSTED (RATE_LIMITED,
     * QUEUE_DEPTH_EXCEEDED, SLOT_QUEUE_FULL, PLACEMENT_CLASS_LIMIT, STORAGE_QUOTA_EXCEEDED).
     * </pre>
     */
    public void runSchedule(dev.taskyard.v1.RunScheduleRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.RunScheduleResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getRunScheduleMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Creates the tasks of past instants, oldest first, all or none; instants whose task exists are
     * left out.  Safe to repeat while those tasks exist.
     * Errors: NOT_FOUND (NOT_FOUND, TASK_TYPE_UNKNOWN); INVALID_ARGUMENT (FIELD_INVALID: more than
     * 1,000 instants, or a range that does not end in the past; PAYLOAD_SCHEMA_VIOLATION);
     * FAILED_PRECONDITION (TENANT_SUSPENDED, TASK_TYPE_DISABLED); RESOURCE_EXHAUSTED (RATE_LIMITED,
     * QUEUE_DEPTH_EXCEEDED, SLOT_QUEUE_FULL, PLACEMENT_CLASS_LIMIT, STORAGE_QUOTA_EXCEEDED).
     * </pre>
     */
    public void backfillSchedule(dev.taskyard.v1.BackfillScheduleRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.BackfillScheduleResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getBackfillScheduleMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Returns the next instants of a schedule, stored or not; changes nothing.  Safe to repeat.
     * Errors: NOT_FOUND; INVALID_ARGUMENT (FIELD_INVALID: neither name nor schedule, or both, or
     * times of `schedule` that a new schedule may not have).
     * </pre>
     */
    public void previewSchedule(dev.taskyard.v1.PreviewScheduleRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.PreviewScheduleResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getPreviewScheduleMethod(), getCallOptions()), request, responseObserver);
    }
  }

  /**
   * A stub to allow clients to do synchronous rpc calls to service ScheduleService.
   * <pre>
   * Schedules: tasks that are created by time.  Served by taskdb.
   * </pre>
   */
  public static final class ScheduleServiceBlockingV2Stub
      extends io.grpc.stub.AbstractBlockingStub<ScheduleServiceBlockingV2Stub> {
    private ScheduleServiceBlockingV2Stub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected ScheduleServiceBlockingV2Stub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new ScheduleServiceBlockingV2Stub(channel, callOptions);
    }

    /**
     * <pre>
     * Creates a schedule; its first instant is the first one after now and not before start_time.
     * A repeat is ALREADY_EXISTS, with the same request_id the schedule.
     * Errors: NOT_FOUND (NOT_FOUND: tenant; TASK_TYPE_UNKNOWN); ALREADY_EXISTS; INVALID_ARGUMENT
     * (FIELD_INVALID: cron line without an instant, unknown zone, neither cron nor every, a template
     * that CreateTask refuses, 1,000 schedules exist; PAYLOAD_SCHEMA_VIOLATION, TOO_LARGE);
     * FAILED_PRECONDITION (TENANT_SUSPENDED, TASK_TYPE_DISABLED).
     * </pre>
     */
    public dev.taskyard.v1.CreateScheduleResponse createSchedule(dev.taskyard.v1.CreateScheduleRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getCreateScheduleMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Returns a schedule.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public dev.taskyard.v1.GetScheduleResponse getSchedule(dev.taskyard.v1.GetScheduleRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getGetScheduleMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Lists schedules, by id.  Filter fields: id, paused, create_time.
     * Errors: INVALID_ARGUMENT (FILTER_INVALID, PAGE_TOKEN_INVALID).
     * </pre>
     */
    public dev.taskyard.v1.ListSchedulesResponse listSchedules(dev.taskyard.v1.ListSchedulesRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getListSchedulesMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Changes a schedule; tasks that it created stay as they are.  After a change of its times the
     * next instant is the first one after now, and instants that were due and not handled are
     * missed.  Safe to repeat, but with a resource_version: the first call has moved it on.
     * Errors: NOT_FOUND (NOT_FOUND: unless allow_missing; TASK_TYPE_UNKNOWN); INVALID_ARGUMENT
     * (FIELD_INVALID, FIELD_IMMUTABLE, PAYLOAD_SCHEMA_VIOLATION, TOO_LARGE); ABORTED
     * (RESOURCE_VERSION_MISMATCH); FAILED_PRECONDITION (TENANT_SUSPENDED, TASK_TYPE_DISABLED).
     * </pre>
     */
    public dev.taskyard.v1.UpdateScheduleResponse updateSchedule(dev.taskyard.v1.UpdateScheduleRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getUpdateScheduleMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Deletes a schedule; its tasks stay.  A repeat is NOT_FOUND.
     * Errors: NOT_FOUND; ABORTED (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    public dev.taskyard.v1.DeleteScheduleResponse deleteSchedule(dev.taskyard.v1.DeleteScheduleRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getDeleteScheduleMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Pauses a schedule; its live tasks go on.  Safe to repeat: the note is replaced.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public dev.taskyard.v1.PauseScheduleResponse pauseSchedule(dev.taskyard.v1.PauseScheduleRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getPauseScheduleMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Resumes a schedule at its first instant after now; what fell into the pause is not caught up.
     * Safe to repeat.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public dev.taskyard.v1.ResumeScheduleResponse resumeSchedule(dev.taskyard.v1.ResumeScheduleRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getResumeScheduleMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Creates a task now, also while the schedule is paused; `overlap` applies.  Its instant is the
     * time of the call.  remaining_runs is not touched.  A repeat with the same request_id returns
     * the same task.
     * Errors: NOT_FOUND (NOT_FOUND, TASK_TYPE_UNKNOWN); those of CreateTask for its template:
     * INVALID_ARGUMENT (FIELD_INVALID, PAYLOAD_SCHEMA_VIOLATION); ALREADY_EXISTS (REQUEST_ID_REUSED);
     * FAILED_PRECONDITION (TENANT_SUSPENDED, TASK_TYPE_DISABLED); RESOURCE_EXHAUSTED (RATE_LIMITED,
     * QUEUE_DEPTH_EXCEEDED, SLOT_QUEUE_FULL, PLACEMENT_CLASS_LIMIT, STORAGE_QUOTA_EXCEEDED).
     * </pre>
     */
    public dev.taskyard.v1.RunScheduleResponse runSchedule(dev.taskyard.v1.RunScheduleRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getRunScheduleMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Creates the tasks of past instants, oldest first, all or none; instants whose task exists are
     * left out.  Safe to repeat while those tasks exist.
     * Errors: NOT_FOUND (NOT_FOUND, TASK_TYPE_UNKNOWN); INVALID_ARGUMENT (FIELD_INVALID: more than
     * 1,000 instants, or a range that does not end in the past; PAYLOAD_SCHEMA_VIOLATION);
     * FAILED_PRECONDITION (TENANT_SUSPENDED, TASK_TYPE_DISABLED); RESOURCE_EXHAUSTED (RATE_LIMITED,
     * QUEUE_DEPTH_EXCEEDED, SLOT_QUEUE_FULL, PLACEMENT_CLASS_LIMIT, STORAGE_QUOTA_EXCEEDED).
     * </pre>
     */
    public dev.taskyard.v1.BackfillScheduleResponse backfillSchedule(dev.taskyard.v1.BackfillScheduleRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getBackfillScheduleMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Returns the next instants of a schedule, stored or not; changes nothing.  Safe to repeat.
     * Errors: NOT_FOUND; INVALID_ARGUMENT (FIELD_INVALID: neither name nor schedule, or both, or
     * times of `schedule` that a new schedule may not have).
     * </pre>
     */
    public dev.taskyard.v1.PreviewScheduleResponse previewSchedule(dev.taskyard.v1.PreviewScheduleRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getPreviewScheduleMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do limited synchronous rpc calls to service ScheduleService.
   * <pre>
   * Schedules: tasks that are created by time.  Served by taskdb.
   * </pre>
   */
  public static final class ScheduleServiceBlockingStub
      extends io.grpc.stub.AbstractBlockingStub<ScheduleServiceBlockingStub> {
    private ScheduleServiceBlockingStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected ScheduleServiceBlockingStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new ScheduleServiceBlockingStub(channel, callOptions);
    }

    /**
     * <pre>
     * Creates a schedule; its first instant is the first one after now and not before start_time.
     * A repeat is ALREADY_EXISTS, with the same request_id the schedule.
     * Errors: NOT_FOUND (NOT_FOUND: tenant; TASK_TYPE_UNKNOWN); ALREADY_EXISTS; INVALID_ARGUMENT
     * (FIELD_INVALID: cron line without an instant, unknown zone, neither cron nor every, a template
     * that CreateTask refuses, 1,000 schedules exist; PAYLOAD_SCHEMA_VIOLATION, TOO_LARGE);
     * FAILED_PRECONDITION (TENANT_SUSPENDED, TASK_TYPE_DISABLED).
     * </pre>
     */
    public dev.taskyard.v1.CreateScheduleResponse createSchedule(dev.taskyard.v1.CreateScheduleRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getCreateScheduleMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Returns a schedule.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public dev.taskyard.v1.GetScheduleResponse getSchedule(dev.taskyard.v1.GetScheduleRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getGetScheduleMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Lists schedules, by id.  Filter fields: id, paused, create_time.
     * Errors: INVALID_ARGUMENT (FILTER_INVALID, PAGE_TOKEN_INVALID).
     * </pre>
     */
    public dev.taskyard.v1.ListSchedulesResponse listSchedules(dev.taskyard.v1.ListSchedulesRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getListSchedulesMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Changes a schedule; tasks that it created stay as they are.  After a change of its times the
     * next instant is the first one after now, and instants that were due and not handled are
     * missed.  Safe to repeat, but with a resource_version: the first call has moved it on.
     * Errors: NOT_FOUND (NOT_FOUND: unless allow_missing; TASK_TYPE_UNKNOWN); INVALID_ARGUMENT
     * (FIELD_INVALID, FIELD_IMMUTABLE, PAYLOAD_SCHEMA_VIOLATION, TOO_LARGE); ABORTED
     * (RESOURCE_VERSION_MISMATCH); FAILED_PRECONDITION (TENANT_SUSPENDED, TASK_TYPE_DISABLED).
     * </pre>
     */
    public dev.taskyard.v1.UpdateScheduleResponse updateSchedule(dev.taskyard.v1.UpdateScheduleRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getUpdateScheduleMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Deletes a schedule; its tasks stay.  A repeat is NOT_FOUND.
     * Errors: NOT_FOUND; ABORTED (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    public dev.taskyard.v1.DeleteScheduleResponse deleteSchedule(dev.taskyard.v1.DeleteScheduleRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getDeleteScheduleMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Pauses a schedule; its live tasks go on.  Safe to repeat: the note is replaced.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public dev.taskyard.v1.PauseScheduleResponse pauseSchedule(dev.taskyard.v1.PauseScheduleRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getPauseScheduleMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Resumes a schedule at its first instant after now; what fell into the pause is not caught up.
     * Safe to repeat.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public dev.taskyard.v1.ResumeScheduleResponse resumeSchedule(dev.taskyard.v1.ResumeScheduleRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getResumeScheduleMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Creates a task now, also while the schedule is paused; `overlap` applies.  Its instant is the
     * time of the call.  remaining_runs is not touched.  A repeat with the same request_id returns
     * the same task.
     * Errors: NOT_FOUND (NOT_FOUND, TASK_TYPE_UNKNOWN); those of CreateTask for its template:
     * INVALID_ARGUMENT (FIELD_INVALID, PAYLOAD_SCHEMA_VIOLATION); ALREADY_EXISTS (REQUEST_ID_REUSED);
     * FAILED_PRECONDITION (TENANT_SUSPENDED, TASK_TYPE_DISABLED); RESOURCE_EXHAUSTED (RATE_LIMITED,
     * QUEUE_DEPTH_EXCEEDED, SLOT_QUEUE_FULL, PLACEMENT_CLASS_LIMIT, STORAGE_QUOTA_EXCEEDED).
     * </pre>
     */
    public dev.taskyard.v1.RunScheduleResponse runSchedule(dev.taskyard.v1.RunScheduleRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getRunScheduleMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Creates the tasks of past instants, oldest first, all or none; instants whose task exists are
     * left out.  Safe to repeat while those tasks exist.
     * Errors: NOT_FOUND (NOT_FOUND, TASK_TYPE_UNKNOWN); INVALID_ARGUMENT (FIELD_INVALID: more than
     * 1,000 instants, or a range that does not end in the past; PAYLOAD_SCHEMA_VIOLATION);
     * FAILED_PRECONDITION (TENANT_SUSPENDED, TASK_TYPE_DISABLED); RESOURCE_EXHAUSTED (RATE_LIMITED,
     * QUEUE_DEPTH_EXCEEDED, SLOT_QUEUE_FULL, PLACEMENT_CLASS_LIMIT, STORAGE_QUOTA_EXCEEDED).
     * </pre>
     */
    public dev.taskyard.v1.BackfillScheduleResponse backfillSchedule(dev.taskyard.v1.BackfillScheduleRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getBackfillScheduleMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Returns the next instants of a schedule, stored or not; changes nothing.  Safe to repeat.
     * Errors: NOT_FOUND; INVALID_ARGUMENT (FIELD_INVALID: neither name nor schedule, or both, or
     * times of `schedule` that a new schedule may not have).
     * </pre>
     */
    public dev.taskyard.v1.PreviewScheduleResponse previewSchedule(dev.taskyard.v1.PreviewScheduleRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getPreviewScheduleMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do ListenableFuture-style rpc calls to service ScheduleService.
   * <pre>
   * Schedules: tasks that are created by time.  Served by taskdb.
   * </pre>
   */
  public static final class ScheduleServiceFutureStub
      extends io.grpc.stub.AbstractFutureStub<ScheduleServiceFutureStub> {
    private ScheduleServiceFutureStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected ScheduleServiceFutureStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new ScheduleServiceFutureStub(channel, callOptions);
    }

    /**
     * <pre>
     * Creates a schedule; its first instant is the first one after now and not before start_time.
     * A repeat is ALREADY_EXISTS, with the same request_id the schedule.
     * Errors: NOT_FOUND (NOT_FOUND: tenant; TASK_TYPE_UNKNOWN); ALREADY_EXISTS; INVALID_ARGUMENT
     * (FIELD_INVALID: cron line without an instant, unknown zone, neither cron nor every, a template
     * that CreateTask refuses, 1,000 schedules exist; PAYLOAD_SCHEMA_VIOLATION, TOO_LARGE);
     * FAILED_PRECONDITION (TENANT_SUSPENDED, TASK_TYPE_DISABLED).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.CreateScheduleResponse> createSchedule(
        dev.taskyard.v1.CreateScheduleRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getCreateScheduleMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Returns a schedule.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.GetScheduleResponse> getSchedule(
        dev.taskyard.v1.GetScheduleRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getGetScheduleMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Lists schedules, by id.  Filter fields: id, paused, create_time.
     * Errors: INVALID_ARGUMENT (FILTER_INVALID, PAGE_TOKEN_INVALID).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.ListSchedulesResponse> listSchedules(
        dev.taskyard.v1.ListSchedulesRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getListSchedulesMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Changes a schedule; tasks that it created stay as they are.  After a change of its times the
     * next instant is the first one after now, and instants that were due and not handled are
     * missed.  Safe to repeat, but with a resource_version: the first call has moved it on.
     * Errors: NOT_FOUND (NOT_FOUND: unless allow_missing; TASK_TYPE_UNKNOWN); INVALID_ARGUMENT
     * (FIELD_INVALID, FIELD_IMMUTABLE, PAYLOAD_SCHEMA_VIOLATION, TOO_LARGE); ABORTED
     * (RESOURCE_VERSION_MISMATCH); FAILED_PRECONDITION (TENANT_SUSPENDED, TASK_TYPE_DISABLED).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.UpdateScheduleResponse> updateSchedule(
        dev.taskyard.v1.UpdateScheduleRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getUpdateScheduleMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Deletes a schedule; its tasks stay.  A repeat is NOT_FOUND.
     * Errors: NOT_FOUND; ABORTED (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.DeleteScheduleResponse> deleteSchedule(
        dev.taskyard.v1.DeleteScheduleRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getDeleteScheduleMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Pauses a schedule; its live tasks go on.  Safe to repeat: the note is replaced.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.PauseScheduleResponse> pauseSchedule(
        dev.taskyard.v1.PauseScheduleRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getPauseScheduleMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Resumes a schedule at its first instant after now; what fell into the pause is not caught up.
     * Safe to repeat.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.ResumeScheduleResponse> resumeSchedule(
        dev.taskyard.v1.ResumeScheduleRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getResumeScheduleMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Creates a task now, also while the schedule is paused; `overlap` applies.  Its instant is the
     * time of the call.  remaining_runs is not touched.  A repeat with the same request_id returns
     * the same task.
     * Errors: NOT_FOUND (NOT_FOUND, TASK_TYPE_UNKNOWN); those of CreateTask for its template:
     * INVALID_ARGUMENT (FIELD_INVALID, PAYLOAD_SCHEMA_VIOLATION); ALREADY_EXISTS (REQUEST_ID_REUSED);
     * FAILED_PRECONDITION (TENANT_SUSPENDED, TASK_TYPE_DISABLED); RESOURCE_EXHAUSTED (RATE_LIMITED,
     * QUEUE_DEPTH_EXCEEDED, SLOT_QUEUE_FULL, PLACEMENT_CLASS_LIMIT, STORAGE_QUOTA_EXCEEDED).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.RunScheduleResponse> runSchedule(
        dev.taskyard.v1.RunScheduleRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getRunScheduleMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Creates the tasks of past instants, oldest first, all or none; instants whose task exists are
     * left out.  Safe to repeat while those tasks exist.
     * Errors: NOT_FOUND (NOT_FOUND, TASK_TYPE_UNKNOWN); INVALID_ARGUMENT (FIELD_INVALID: more than
     * 1,000 instants, or a range that does not end in the past; PAYLOAD_SCHEMA_VIOLATION);
     * FAILED_PRECONDITION (TENANT_SUSPENDED, TASK_TYPE_DISABLED); RESOURCE_EXHAUSTED (RATE_LIMITED,
     * QUEUE_DEPTH_EXCEEDED, SLOT_QUEUE_FULL, PLACEMENT_CLASS_LIMIT, STORAGE_QUOTA_EXCEEDED).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.BackfillScheduleResponse> backfillSchedule(
        dev.taskyard.v1.BackfillScheduleRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getBackfillScheduleMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Returns the next instants of a schedule, stored or not; changes nothing.  Safe to repeat.
     * Errors: NOT_FOUND; INVALID_ARGUMENT (FIELD_INVALID: neither name nor schedule, or both, or
     * times of `schedule` that a new schedule may not have).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.PreviewScheduleResponse> previewSchedule(
        dev.taskyard.v1.PreviewScheduleRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getPreviewScheduleMethod(), getCallOptions()), request);
    }
  }

  private static final int METHODID_CREATE_SCHEDULE = 0;
  private static final int METHODID_GET_SCHEDULE = 1;
  private static final int METHODID_LIST_SCHEDULES = 2;
  private static final int METHODID_UPDATE_SCHEDULE = 3;
  private static final int METHODID_DELETE_SCHEDULE = 4;
  private static final int METHODID_PAUSE_SCHEDULE = 5;
  private static final int METHODID_RESUME_SCHEDULE = 6;
  private static final int METHODID_RUN_SCHEDULE = 7;
  private static final int METHODID_BACKFILL_SCHEDULE = 8;
  private static final int METHODID_PREVIEW_SCHEDULE = 9;

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
        case METHODID_CREATE_SCHEDULE:
          serviceImpl.createSchedule((dev.taskyard.v1.CreateScheduleRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.CreateScheduleResponse>) responseObserver);
          break;
        case METHODID_GET_SCHEDULE:
          serviceImpl.getSchedule((dev.taskyard.v1.GetScheduleRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.GetScheduleResponse>) responseObserver);
          break;
        case METHODID_LIST_SCHEDULES:
          serviceImpl.listSchedules((dev.taskyard.v1.ListSchedulesRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.ListSchedulesResponse>) responseObserver);
          break;
        case METHODID_UPDATE_SCHEDULE:
          serviceImpl.updateSchedule((dev.taskyard.v1.UpdateScheduleRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.UpdateScheduleResponse>) responseObserver);
          break;
        case METHODID_DELETE_SCHEDULE:
          serviceImpl.deleteSchedule((dev.taskyard.v1.DeleteScheduleRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.DeleteScheduleResponse>) responseObserver);
          break;
        case METHODID_PAUSE_SCHEDULE:
          serviceImpl.pauseSchedule((dev.taskyard.v1.PauseScheduleRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.PauseScheduleResponse>) responseObserver);
          break;
        case METHODID_RESUME_SCHEDULE:
          serviceImpl.resumeSchedule((dev.taskyard.v1.ResumeScheduleRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.ResumeScheduleResponse>) responseObserver);
          break;
        case METHODID_RUN_SCHEDULE:
          serviceImpl.runSchedule((dev.taskyard.v1.RunScheduleRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.RunScheduleResponse>) responseObserver);
          break;
        case METHODID_BACKFILL_SCHEDULE:
          serviceImpl.backfillSchedule((dev.taskyard.v1.BackfillScheduleRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.BackfillScheduleResponse>) responseObserver);
          break;
        case METHODID_PREVIEW_SCHEDULE:
          serviceImpl.previewSchedule((dev.taskyard.v1.PreviewScheduleRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.PreviewScheduleResponse>) responseObserver);
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
          getCreateScheduleMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.CreateScheduleRequest,
              dev.taskyard.v1.CreateScheduleResponse>(
                service, METHODID_CREATE_SCHEDULE)))
        .addMethod(
          getGetScheduleMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.GetScheduleRequest,
              dev.taskyard.v1.GetScheduleResponse>(
                service, METHODID_GET_SCHEDULE)))
        .addMethod(
          getListSchedulesMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.ListSchedulesRequest,
              dev.taskyard.v1.ListSchedulesResponse>(
                service, METHODID_LIST_SCHEDULES)))
        .addMethod(
          getUpdateScheduleMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.UpdateScheduleRequest,
              dev.taskyard.v1.UpdateScheduleResponse>(
                service, METHODID_UPDATE_SCHEDULE)))
        .addMethod(
          getDeleteScheduleMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.DeleteScheduleRequest,
              dev.taskyard.v1.DeleteScheduleResponse>(
                service, METHODID_DELETE_SCHEDULE)))
        .addMethod(
          getPauseScheduleMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.PauseScheduleRequest,
              dev.taskyard.v1.PauseScheduleResponse>(
                service, METHODID_PAUSE_SCHEDULE)))
        .addMethod(
          getResumeScheduleMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.ResumeScheduleRequest,
              dev.taskyard.v1.ResumeScheduleResponse>(
                service, METHODID_RESUME_SCHEDULE)))
        .addMethod(
          getRunScheduleMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.RunScheduleRequest,
              dev.taskyard.v1.RunScheduleResponse>(
                service, METHODID_RUN_SCHEDULE)))
        .addMethod(
          getBackfillScheduleMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.BackfillScheduleRequest,
              dev.taskyard.v1.BackfillScheduleResponse>(
                service, METHODID_BACKFILL_SCHEDULE)))
        .addMethod(
          getPreviewScheduleMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.PreviewScheduleRequest,
              dev.taskyard.v1.PreviewScheduleResponse>(
                service, METHODID_PREVIEW_SCHEDULE)))
        .build();
  }

  private static volatile io.grpc.ServiceDescriptor serviceDescriptor;

  public static io.grpc.ServiceDescriptor getServiceDescriptor() {
    io.grpc.ServiceDescriptor result = serviceDescriptor;
    if (result == null) {
      synchronized (ScheduleServiceGrpc.class) {
        result = serviceDescriptor;
        if (result == null) {
          serviceDescriptor = result = io.grpc.ServiceDescriptor.newBuilder(SERVICE_NAME)
              .addMethod(getCreateScheduleMethod())
              .addMethod(getGetScheduleMethod())
              .addMethod(getListSchedulesMethod())
              .addMethod(getUpdateScheduleMethod())
              .addMethod(getDeleteScheduleMethod())
              .addMethod(getPauseScheduleMethod())
              .addMethod(getResumeScheduleMethod())
              .addMethod(getRunScheduleMethod())
              .addMethod(getBackfillScheduleMethod())
              .addMethod(getPreviewScheduleMethod())
              .build();
        }
      }
    }
    return result;
  }
}
