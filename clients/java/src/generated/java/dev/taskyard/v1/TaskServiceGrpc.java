package dev.taskyard.v1;

import static io.grpc.MethodDescriptor.generateFullMethodName;

/**
 * <pre>
 * Tasks, their runs, logs, checkpoints, statistics and audit trail.
 * </pre>
 */
@io.grpc.stub.annotations.GrpcGenerated
public final class TaskServiceGrpc {

  private TaskServiceGrpc() {}

  public static final java.lang.String SERVICE_NAME = "taskyard.v1.TaskService";

  // Static method descriptors that strictly reflect the proto.
  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.CreateTaskRequest,
      dev.taskyard.v1.CreateTaskResponse> getCreateTaskMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "CreateTask",
      requestType = dev.taskyard.v1.CreateTaskRequest.class,
      responseType = dev.taskyard.v1.CreateTaskResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.CreateTaskRequest,
      dev.taskyard.v1.CreateTaskResponse> getCreateTaskMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.CreateTaskRequest, dev.taskyard.v1.CreateTaskResponse> getCreateTaskMethod;
    if ((getCreateTaskMethod = TaskServiceGrpc.getCreateTaskMethod) == null) {
      synchronized (TaskServiceGrpc.class) {
        if ((getCreateTaskMethod = TaskServiceGrpc.getCreateTaskMethod) == null) {
          TaskServiceGrpc.getCreateTaskMethod = getCreateTaskMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.CreateTaskRequest, dev.taskyard.v1.CreateTaskResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "CreateTask"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.CreateTaskRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.CreateTaskResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getCreateTaskMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.BatchCreateTasksRequest,
      dev.taskyard.v1.BatchCreateTasksResponse> getBatchCreateTasksMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "BatchCreateTasks",
      requestType = dev.taskyard.v1.BatchCreateTasksRequest.class,
      responseType = dev.taskyard.v1.BatchCreateTasksResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.BatchCreateTasksRequest,
      dev.taskyard.v1.BatchCreateTasksResponse> getBatchCreateTasksMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.BatchCreateTasksRequest, dev.taskyard.v1.BatchCreateTasksResponse> getBatchCreateTasksMethod;
    if ((getBatchCreateTasksMethod = TaskServiceGrpc.getBatchCreateTasksMethod) == null) {
      synchronized (TaskServiceGrpc.class) {
        if ((getBatchCreateTasksMethod = TaskServiceGrpc.getBatchCreateTasksMethod) == null) {
          TaskServiceGrpc.getBatchCreateTasksMethod = getBatchCreateTasksMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.BatchCreateTasksRequest, dev.taskyard.v1.BatchCreateTasksResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "BatchCreateTasks"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.BatchCreateTasksRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.BatchCreateTasksResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getBatchCreateTasksMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.GetTaskRequest,
      dev.taskyard.v1.GetTaskResponse> getGetTaskMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "GetTask",
      requestType = dev.taskyard.v1.GetTaskRequest.class,
      responseType = dev.taskyard.v1.GetTaskResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.GetTaskRequest,
      dev.taskyard.v1.GetTaskResponse> getGetTaskMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.GetTaskRequest, dev.taskyard.v1.GetTaskResponse> getGetTaskMethod;
    if ((getGetTaskMethod = TaskServiceGrpc.getGetTaskMethod) == null) {
      synchronized (TaskServiceGrpc.class) {
        if ((getGetTaskMethod = TaskServiceGrpc.getGetTaskMethod) == null) {
          TaskServiceGrpc.getGetTaskMethod = getGetTaskMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.GetTaskRequest, dev.taskyard.v1.GetTaskResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "GetTask"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.GetTaskRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.GetTaskResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getGetTaskMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.BatchGetTasksRequest,
      dev.taskyard.v1.BatchGetTasksResponse> getBatchGetTasksMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "BatchGetTasks",
      requestType = dev.taskyard.v1.BatchGetTasksRequest.class,
      responseType = dev.taskyard.v1.BatchGetTasksResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.BatchGetTasksRequest,
      dev.taskyard.v1.BatchGetTasksResponse> getBatchGetTasksMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.BatchGetTasksRequest, dev.taskyard.v1.BatchGetTasksResponse> getBatchGetTasksMethod;
    if ((getBatchGetTasksMethod = TaskServiceGrpc.getBatchGetTasksMethod) == null) {
      synchronized (TaskServiceGrpc.class) {
        if ((getBatchGetTasksMethod = TaskServiceGrpc.getBatchGetTasksMethod) == null) {
          TaskServiceGrpc.getBatchGetTasksMethod = getBatchGetTasksMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.BatchGetTasksRequest, dev.taskyard.v1.BatchGetTasksResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "BatchGetTasks"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.BatchGetTasksRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.BatchGetTasksResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getBatchGetTasksMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.ListTasksRequest,
      dev.taskyard.v1.ListTasksResponse> getListTasksMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ListTasks",
      requestType = dev.taskyard.v1.ListTasksRequest.class,
      responseType = dev.taskyard.v1.ListTasksResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.ListTasksRequest,
      dev.taskyard.v1.ListTasksResponse> getListTasksMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.ListTasksRequest, dev.taskyard.v1.ListTasksResponse> getListTasksMethod;
    if ((getListTasksMethod = TaskServiceGrpc.getListTasksMethod) == null) {
      synchronized (TaskServiceGrpc.class) {
        if ((getListTasksMethod = TaskServiceGrpc.getListTasksMethod) == null) {
          TaskServiceGrpc.getListTasksMethod = getListTasksMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.ListTasksRequest, dev.taskyard.v1.ListTasksResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ListTasks"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ListTasksRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ListTasksResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getListTasksMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.UpdateTaskRequest,
      dev.taskyard.v1.UpdateTaskResponse> getUpdateTaskMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "UpdateTask",
      requestType = dev.taskyard.v1.UpdateTaskRequest.class,
      responseType = dev.taskyard.v1.UpdateTaskResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.UpdateTaskRequest,
      dev.taskyard.v1.UpdateTaskResponse> getUpdateTaskMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.UpdateTaskRequest, dev.taskyard.v1.UpdateTaskResponse> getUpdateTaskMethod;
    if ((getUpdateTaskMethod = TaskServiceGrpc.getUpdateTaskMethod) == null) {
      synchronized (TaskServiceGrpc.class) {
        if ((getUpdateTaskMethod = TaskServiceGrpc.getUpdateTaskMethod) == null) {
          TaskServiceGrpc.getUpdateTaskMethod = getUpdateTaskMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.UpdateTaskRequest, dev.taskyard.v1.UpdateTaskResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "UpdateTask"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.UpdateTaskRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.UpdateTaskResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getUpdateTaskMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.DeleteTaskRequest,
      dev.taskyard.v1.DeleteTaskResponse> getDeleteTaskMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "DeleteTask",
      requestType = dev.taskyard.v1.DeleteTaskRequest.class,
      responseType = dev.taskyard.v1.DeleteTaskResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.DeleteTaskRequest,
      dev.taskyard.v1.DeleteTaskResponse> getDeleteTaskMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.DeleteTaskRequest, dev.taskyard.v1.DeleteTaskResponse> getDeleteTaskMethod;
    if ((getDeleteTaskMethod = TaskServiceGrpc.getDeleteTaskMethod) == null) {
      synchronized (TaskServiceGrpc.class) {
        if ((getDeleteTaskMethod = TaskServiceGrpc.getDeleteTaskMethod) == null) {
          TaskServiceGrpc.getDeleteTaskMethod = getDeleteTaskMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.DeleteTaskRequest, dev.taskyard.v1.DeleteTaskResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "DeleteTask"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.DeleteTaskRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.DeleteTaskResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getDeleteTaskMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.CancelTaskRequest,
      dev.taskyard.v1.CancelTaskResponse> getCancelTaskMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "CancelTask",
      requestType = dev.taskyard.v1.CancelTaskRequest.class,
      responseType = dev.taskyard.v1.CancelTaskResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.CancelTaskRequest,
      dev.taskyard.v1.CancelTaskResponse> getCancelTaskMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.CancelTaskRequest, dev.taskyard.v1.CancelTaskResponse> getCancelTaskMethod;
    if ((getCancelTaskMethod = TaskServiceGrpc.getCancelTaskMethod) == null) {
      synchronized (TaskServiceGrpc.class) {
        if ((getCancelTaskMethod = TaskServiceGrpc.getCancelTaskMethod) == null) {
          TaskServiceGrpc.getCancelTaskMethod = getCancelTaskMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.CancelTaskRequest, dev.taskyard.v1.CancelTaskResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "CancelTask"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.CancelTaskRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.CancelTaskResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getCancelTaskMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.BatchCancelTasksRequest,
      dev.taskyard.v1.BatchCancelTasksResponse> getBatchCancelTasksMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "BatchCancelTasks",
      requestType = dev.taskyard.v1.BatchCancelTasksRequest.class,
      responseType = dev.taskyard.v1.BatchCancelTasksResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.BatchCancelTasksRequest,
      dev.taskyard.v1.BatchCancelTasksResponse> getBatchCancelTasksMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.BatchCancelTasksRequest, dev.taskyard.v1.BatchCancelTasksResponse> getBatchCancelTasksMethod;
    if ((getBatchCancelTasksMethod = TaskServiceGrpc.getBatchCancelTasksMethod) == null) {
      synchronized (TaskServiceGrpc.class) {
        if ((getBatchCancelTasksMethod = TaskServiceGrpc.getBatchCancelTasksMethod) == null) {
          TaskServiceGrpc.getBatchCancelTasksMethod = getBatchCancelTasksMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.BatchCancelTasksRequest, dev.taskyard.v1.BatchCancelTasksResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "BatchCancelTasks"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.BatchCancelTasksRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.BatchCancelTasksResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getBatchCancelTasksMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.PauseTaskRequest,
      dev.taskyard.v1.PauseTaskResponse> getPauseTaskMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "PauseTask",
      requestType = dev.taskyard.v1.PauseTaskRequest.class,
      responseType = dev.taskyard.v1.PauseTaskResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.PauseTaskRequest,
      dev.taskyard.v1.PauseTaskResponse> getPauseTaskMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.PauseTaskRequest, dev.taskyard.v1.PauseTaskResponse> getPauseTaskMethod;
    if ((getPauseTaskMethod = TaskServiceGrpc.getPauseTaskMethod) == null) {
      synchronized (TaskServiceGrpc.class) {
        if ((getPauseTaskMethod = TaskServiceGrpc.getPauseTaskMethod) == null) {
          TaskServiceGrpc.getPauseTaskMethod = getPauseTaskMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.PauseTaskRequest, dev.taskyard.v1.PauseTaskResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "PauseTask"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.PauseTaskRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.PauseTaskResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getPauseTaskMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.ResumeTaskRequest,
      dev.taskyard.v1.ResumeTaskResponse> getResumeTaskMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ResumeTask",
      requestType = dev.taskyard.v1.ResumeTaskRequest.class,
      responseType = dev.taskyard.v1.ResumeTaskResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.ResumeTaskRequest,
      dev.taskyard.v1.ResumeTaskResponse> getResumeTaskMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.ResumeTaskRequest, dev.taskyard.v1.ResumeTaskResponse> getResumeTaskMethod;
    if ((getResumeTaskMethod = TaskServiceGrpc.getResumeTaskMethod) == null) {
      synchronized (TaskServiceGrpc.class) {
        if ((getResumeTaskMethod = TaskServiceGrpc.getResumeTaskMethod) == null) {
          TaskServiceGrpc.getResumeTaskMethod = getResumeTaskMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.ResumeTaskRequest, dev.taskyard.v1.ResumeTaskResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ResumeTask"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ResumeTaskRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ResumeTaskResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getResumeTaskMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.RetryTaskRequest,
      dev.taskyard.v1.RetryTaskResponse> getRetryTaskMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "RetryTask",
      requestType = dev.taskyard.v1.RetryTaskRequest.class,
      responseType = dev.taskyard.v1.RetryTaskResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.RetryTaskRequest,
      dev.taskyard.v1.RetryTaskResponse> getRetryTaskMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.RetryTaskRequest, dev.taskyard.v1.RetryTaskResponse> getRetryTaskMethod;
    if ((getRetryTaskMethod = TaskServiceGrpc.getRetryTaskMethod) == null) {
      synchronized (TaskServiceGrpc.class) {
        if ((getRetryTaskMethod = TaskServiceGrpc.getRetryTaskMethod) == null) {
          TaskServiceGrpc.getRetryTaskMethod = getRetryTaskMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.RetryTaskRequest, dev.taskyard.v1.RetryTaskResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "RetryTask"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.RetryTaskRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.RetryTaskResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getRetryTaskMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.BatchRetryTasksRequest,
      dev.taskyard.v1.BatchRetryTasksResponse> getBatchRetryTasksMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "BatchRetryTasks",
      requestType = dev.taskyard.v1.BatchRetryTasksRequest.class,
      responseType = dev.taskyard.v1.BatchRetryTasksResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.BatchRetryTasksRequest,
      dev.taskyard.v1.BatchRetryTasksResponse> getBatchRetryTasksMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.BatchRetryTasksRequest, dev.taskyard.v1.BatchRetryTasksResponse> getBatchRetryTasksMethod;
    if ((getBatchRetryTasksMethod = TaskServiceGrpc.getBatchRetryTasksMethod) == null) {
      synchronized (TaskServiceGrpc.class) {
        if ((getBatchRetryTasksMethod = TaskServiceGrpc.getBatchRetryTasksMethod) == null) {
          TaskServiceGrpc.getBatchRetryTasksMethod = getBatchRetryTasksMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.BatchRetryTasksRequest, dev.taskyard.v1.BatchRetryTasksResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "BatchRetryTasks"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.BatchRetryTasksRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.BatchRetryTasksResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getBatchRetryTasksMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.BatchResetTasksRequest,
      dev.taskyard.v1.BatchResetTasksResponse> getBatchResetTasksMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "BatchResetTasks",
      requestType = dev.taskyard.v1.BatchResetTasksRequest.class,
      responseType = dev.taskyard.v1.BatchResetTasksResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.BatchResetTasksRequest,
      dev.taskyard.v1.BatchResetTasksResponse> getBatchResetTasksMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.BatchResetTasksRequest, dev.taskyard.v1.BatchResetTasksResponse> getBatchResetTasksMethod;
    if ((getBatchResetTasksMethod = TaskServiceGrpc.getBatchResetTasksMethod) == null) {
      synchronized (TaskServiceGrpc.class) {
        if ((getBatchResetTasksMethod = TaskServiceGrpc.getBatchResetTasksMethod) == null) {
          TaskServiceGrpc.getBatchResetTasksMethod = getBatchResetTasksMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.BatchResetTasksRequest, dev.taskyard.v1.BatchResetTasksResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "BatchResetTasks"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.BatchResetTasksRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.BatchResetTasksResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getBatchResetTasksMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.ReportTaskStatusRequest,
      dev.taskyard.v1.ReportTaskStatusResponse> getReportTaskStatusMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ReportTaskStatus",
      requestType = dev.taskyard.v1.ReportTaskStatusRequest.class,
      responseType = dev.taskyard.v1.ReportTaskStatusResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.ReportTaskStatusRequest,
      dev.taskyard.v1.ReportTaskStatusResponse> getReportTaskStatusMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.ReportTaskStatusRequest, dev.taskyard.v1.ReportTaskStatusResponse> getReportTaskStatusMethod;
    if ((getReportTaskStatusMethod = TaskServiceGrpc.getReportTaskStatusMethod) == null) {
      synchronized (TaskServiceGrpc.class) {
        if ((getReportTaskStatusMethod = TaskServiceGrpc.getReportTaskStatusMethod) == null) {
          TaskServiceGrpc.getReportTaskStatusMethod = getReportTaskStatusMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.ReportTaskStatusRequest, dev.taskyard.v1.ReportTaskStatusResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ReportTaskStatus"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ReportTaskStatusRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ReportTaskStatusResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getReportTaskStatusMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.WaitTaskRequest,
      dev.taskyard.v1.WaitTaskResponse> getWaitTaskMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "WaitTask",
      requestType = dev.taskyard.v1.WaitTaskRequest.class,
      responseType = dev.taskyard.v1.WaitTaskResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.WaitTaskRequest,
      dev.taskyard.v1.WaitTaskResponse> getWaitTaskMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.WaitTaskRequest, dev.taskyard.v1.WaitTaskResponse> getWaitTaskMethod;
    if ((getWaitTaskMethod = TaskServiceGrpc.getWaitTaskMethod) == null) {
      synchronized (TaskServiceGrpc.class) {
        if ((getWaitTaskMethod = TaskServiceGrpc.getWaitTaskMethod) == null) {
          TaskServiceGrpc.getWaitTaskMethod = getWaitTaskMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.WaitTaskRequest, dev.taskyard.v1.WaitTaskResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "WaitTask"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.WaitTaskRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.WaitTaskResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getWaitTaskMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.CheckFenceRequest,
      dev.taskyard.v1.CheckFenceResponse> getCheckFenceMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "CheckFence",
      requestType = dev.taskyard.v1.CheckFenceRequest.class,
      responseType = dev.taskyard.v1.CheckFenceResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.CheckFenceRequest,
      dev.taskyard.v1.CheckFenceResponse> getCheckFenceMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.CheckFenceRequest, dev.taskyard.v1.CheckFenceResponse> getCheckFenceMethod;
    if ((getCheckFenceMethod = TaskServiceGrpc.getCheckFenceMethod) == null) {
      synchronized (TaskServiceGrpc.class) {
        if ((getCheckFenceMethod = TaskServiceGrpc.getCheckFenceMethod) == null) {
          TaskServiceGrpc.getCheckFenceMethod = getCheckFenceMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.CheckFenceRequest, dev.taskyard.v1.CheckFenceResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "CheckFence"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.CheckFenceRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.CheckFenceResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getCheckFenceMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.WatchTasksRequest,
      dev.taskyard.v1.WatchTasksResponse> getWatchTasksMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "WatchTasks",
      requestType = dev.taskyard.v1.WatchTasksRequest.class,
      responseType = dev.taskyard.v1.WatchTasksResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.SERVER_STREAMING)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.WatchTasksRequest,
      dev.taskyard.v1.WatchTasksResponse> getWatchTasksMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.WatchTasksRequest, dev.taskyard.v1.WatchTasksResponse> getWatchTasksMethod;
    if ((getWatchTasksMethod = TaskServiceGrpc.getWatchTasksMethod) == null) {
      synchronized (TaskServiceGrpc.class) {
        if ((getWatchTasksMethod = TaskServiceGrpc.getWatchTasksMethod) == null) {
          TaskServiceGrpc.getWatchTasksMethod = getWatchTasksMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.WatchTasksRequest, dev.taskyard.v1.WatchTasksResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.SERVER_STREAMING)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "WatchTasks"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.WatchTasksRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.WatchTasksResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getWatchTasksMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.ListTaskRunsRequest,
      dev.taskyard.v1.ListTaskRunsResponse> getListTaskRunsMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ListTaskRuns",
      requestType = dev.taskyard.v1.ListTaskRunsRequest.class,
      responseType = dev.taskyard.v1.ListTaskRunsResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.ListTaskRunsRequest,
      dev.taskyard.v1.ListTaskRunsResponse> getListTaskRunsMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.ListTaskRunsRequest, dev.taskyard.v1.ListTaskRunsResponse> getListTaskRunsMethod;
    if ((getListTaskRunsMethod = TaskServiceGrpc.getListTaskRunsMethod) == null) {
      synchronized (TaskServiceGrpc.class) {
        if ((getListTaskRunsMethod = TaskServiceGrpc.getListTaskRunsMethod) == null) {
          TaskServiceGrpc.getListTaskRunsMethod = getListTaskRunsMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.ListTaskRunsRequest, dev.taskyard.v1.ListTaskRunsResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ListTaskRuns"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ListTaskRunsRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ListTaskRunsResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getListTaskRunsMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.ListTaskLogsRequest,
      dev.taskyard.v1.ListTaskLogsResponse> getListTaskLogsMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ListTaskLogs",
      requestType = dev.taskyard.v1.ListTaskLogsRequest.class,
      responseType = dev.taskyard.v1.ListTaskLogsResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.ListTaskLogsRequest,
      dev.taskyard.v1.ListTaskLogsResponse> getListTaskLogsMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.ListTaskLogsRequest, dev.taskyard.v1.ListTaskLogsResponse> getListTaskLogsMethod;
    if ((getListTaskLogsMethod = TaskServiceGrpc.getListTaskLogsMethod) == null) {
      synchronized (TaskServiceGrpc.class) {
        if ((getListTaskLogsMethod = TaskServiceGrpc.getListTaskLogsMethod) == null) {
          TaskServiceGrpc.getListTaskLogsMethod = getListTaskLogsMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.ListTaskLogsRequest, dev.taskyard.v1.ListTaskLogsResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ListTaskLogs"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ListTaskLogsRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ListTaskLogsResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getListTaskLogsMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.TailTaskLogsRequest,
      dev.taskyard.v1.TailTaskLogsResponse> getTailTaskLogsMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "TailTaskLogs",
      requestType = dev.taskyard.v1.TailTaskLogsRequest.class,
      responseType = dev.taskyard.v1.TailTaskLogsResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.SERVER_STREAMING)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.TailTaskLogsRequest,
      dev.taskyard.v1.TailTaskLogsResponse> getTailTaskLogsMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.TailTaskLogsRequest, dev.taskyard.v1.TailTaskLogsResponse> getTailTaskLogsMethod;
    if ((getTailTaskLogsMethod = TaskServiceGrpc.getTailTaskLogsMethod) == null) {
      synchronized (TaskServiceGrpc.class) {
        if ((getTailTaskLogsMethod = TaskServiceGrpc.getTailTaskLogsMethod) == null) {
          TaskServiceGrpc.getTailTaskLogsMethod = getTailTaskLogsMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.TailTaskLogsRequest, dev.taskyard.v1.TailTaskLogsResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.SERVER_STREAMING)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "TailTaskLogs"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.TailTaskLogsRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.TailTaskLogsResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getTailTaskLogsMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.GetTaskStatsRequest,
      dev.taskyard.v1.GetTaskStatsResponse> getGetTaskStatsMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "GetTaskStats",
      requestType = dev.taskyard.v1.GetTaskStatsRequest.class,
      responseType = dev.taskyard.v1.GetTaskStatsResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.GetTaskStatsRequest,
      dev.taskyard.v1.GetTaskStatsResponse> getGetTaskStatsMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.GetTaskStatsRequest, dev.taskyard.v1.GetTaskStatsResponse> getGetTaskStatsMethod;
    if ((getGetTaskStatsMethod = TaskServiceGrpc.getGetTaskStatsMethod) == null) {
      synchronized (TaskServiceGrpc.class) {
        if ((getGetTaskStatsMethod = TaskServiceGrpc.getGetTaskStatsMethod) == null) {
          TaskServiceGrpc.getGetTaskStatsMethod = getGetTaskStatsMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.GetTaskStatsRequest, dev.taskyard.v1.GetTaskStatsResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "GetTaskStats"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.GetTaskStatsRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.GetTaskStatsResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getGetTaskStatsMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.GetTaskSeriesRequest,
      dev.taskyard.v1.GetTaskSeriesResponse> getGetTaskSeriesMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "GetTaskSeries",
      requestType = dev.taskyard.v1.GetTaskSeriesRequest.class,
      responseType = dev.taskyard.v1.GetTaskSeriesResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.GetTaskSeriesRequest,
      dev.taskyard.v1.GetTaskSeriesResponse> getGetTaskSeriesMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.GetTaskSeriesRequest, dev.taskyard.v1.GetTaskSeriesResponse> getGetTaskSeriesMethod;
    if ((getGetTaskSeriesMethod = TaskServiceGrpc.getGetTaskSeriesMethod) == null) {
      synchronized (TaskServiceGrpc.class) {
        if ((getGetTaskSeriesMethod = TaskServiceGrpc.getGetTaskSeriesMethod) == null) {
          TaskServiceGrpc.getGetTaskSeriesMethod = getGetTaskSeriesMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.GetTaskSeriesRequest, dev.taskyard.v1.GetTaskSeriesResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "GetTaskSeries"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.GetTaskSeriesRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.GetTaskSeriesResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getGetTaskSeriesMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.ListCheckpointsRequest,
      dev.taskyard.v1.ListCheckpointsResponse> getListCheckpointsMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ListCheckpoints",
      requestType = dev.taskyard.v1.ListCheckpointsRequest.class,
      responseType = dev.taskyard.v1.ListCheckpointsResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.ListCheckpointsRequest,
      dev.taskyard.v1.ListCheckpointsResponse> getListCheckpointsMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.ListCheckpointsRequest, dev.taskyard.v1.ListCheckpointsResponse> getListCheckpointsMethod;
    if ((getListCheckpointsMethod = TaskServiceGrpc.getListCheckpointsMethod) == null) {
      synchronized (TaskServiceGrpc.class) {
        if ((getListCheckpointsMethod = TaskServiceGrpc.getListCheckpointsMethod) == null) {
          TaskServiceGrpc.getListCheckpointsMethod = getListCheckpointsMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.ListCheckpointsRequest, dev.taskyard.v1.ListCheckpointsResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ListCheckpoints"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ListCheckpointsRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ListCheckpointsResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getListCheckpointsMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.ReadCheckpointRequest,
      dev.taskyard.v1.ReadCheckpointResponse> getReadCheckpointMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ReadCheckpoint",
      requestType = dev.taskyard.v1.ReadCheckpointRequest.class,
      responseType = dev.taskyard.v1.ReadCheckpointResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.SERVER_STREAMING)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.ReadCheckpointRequest,
      dev.taskyard.v1.ReadCheckpointResponse> getReadCheckpointMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.ReadCheckpointRequest, dev.taskyard.v1.ReadCheckpointResponse> getReadCheckpointMethod;
    if ((getReadCheckpointMethod = TaskServiceGrpc.getReadCheckpointMethod) == null) {
      synchronized (TaskServiceGrpc.class) {
        if ((getReadCheckpointMethod = TaskServiceGrpc.getReadCheckpointMethod) == null) {
          TaskServiceGrpc.getReadCheckpointMethod = getReadCheckpointMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.ReadCheckpointRequest, dev.taskyard.v1.ReadCheckpointResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.SERVER_STREAMING)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ReadCheckpoint"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ReadCheckpointRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ReadCheckpointResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getReadCheckpointMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.ListAuditEventsRequest,
      dev.taskyard.v1.ListAuditEventsResponse> getListAuditEventsMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ListAuditEvents",
      requestType = dev.taskyard.v1.ListAuditEventsRequest.class,
      responseType = dev.taskyard.v1.ListAuditEventsResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.ListAuditEventsRequest,
      dev.taskyard.v1.ListAuditEventsResponse> getListAuditEventsMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.ListAuditEventsRequest, dev.taskyard.v1.ListAuditEventsResponse> getListAuditEventsMethod;
    if ((getListAuditEventsMethod = TaskServiceGrpc.getListAuditEventsMethod) == null) {
      synchronized (TaskServiceGrpc.class) {
        if ((getListAuditEventsMethod = TaskServiceGrpc.getListAuditEventsMethod) == null) {
          TaskServiceGrpc.getListAuditEventsMethod = getListAuditEventsMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.ListAuditEventsRequest, dev.taskyard.v1.ListAuditEventsResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ListAuditEvents"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ListAuditEventsRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ListAuditEventsResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getListAuditEventsMethod;
  }

  /**
   * Creates a new async stub that supports all call types for the service
   */
  public static TaskServiceStub newStub(io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<TaskServiceStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<TaskServiceStub>() {
        @java.lang.Override
        public TaskServiceStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new TaskServiceStub(channel, callOptions);
        }
      };
    return TaskServiceStub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports all types of calls on the service
   */
  public static TaskServiceBlockingV2Stub newBlockingV2Stub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<TaskServiceBlockingV2Stub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<TaskServiceBlockingV2Stub>() {
        @java.lang.Override
        public TaskServiceBlockingV2Stub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new TaskServiceBlockingV2Stub(channel, callOptions);
        }
      };
    return TaskServiceBlockingV2Stub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports unary and streaming output calls on the service
   */
  public static TaskServiceBlockingStub newBlockingStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<TaskServiceBlockingStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<TaskServiceBlockingStub>() {
        @java.lang.Override
        public TaskServiceBlockingStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new TaskServiceBlockingStub(channel, callOptions);
        }
      };
    return TaskServiceBlockingStub.newStub(factory, channel);
  }

  /**
   * Creates a new ListenableFuture-style stub that supports unary calls on the service
   */
  public static TaskServiceFutureStub newFutureStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<TaskServiceFutureStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<TaskServiceFutureStub>() {
        @java.lang.Override
        public TaskServiceFutureStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new TaskServiceFutureStub(channel, callOptions);
        }
      };
    return TaskServiceFutureStub.newStub(factory, channel);
  }

  /**
   * <pre>
   * Tasks, their runs, logs, checkpoints, statistics and audit trail.
   * </pre>
   */
  public interface AsyncService {

    /**
     * <pre>
     * Creates a task in PENDING, or claimed already and SCHEDULED if a runner had a place for it.  Safe to
     * repeat with the same request_id or task_id.
     * Errors: NOT_FOUND (NOT_FOUND: tenant, a task or group of spec.after, a limit, or an entity that must exist;
     * TASK_TYPE_UNKNOWN); ALREADY_EXISTS (ALREADY_EXISTS:
     * id, REQUEST_ID_REUSED); INVALID_ARGUMENT (FIELD_INVALID, PAYLOAD_SCHEMA_VIOLATION,
     * TOO_LARGE); FAILED_PRECONDITION (TASK_TYPE_DISABLED, TENANT_SUSPENDED, GROUP_CLOSED);
     * RESOURCE_EXHAUSTED (QUEUE_DEPTH_EXCEEDED, RATE_LIMITED, SLOT_QUEUE_FULL,
     * PLACEMENT_CLASS_LIMIT, STORAGE_QUOTA_EXCEEDED).
     * </pre>
     */
    default void createTask(dev.taskyard.v1.CreateTaskRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.CreateTaskResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getCreateTaskMethod(), responseObserver);
    }

    /**
     * <pre>
     * Creates up to 1000 tasks in one transaction (ATOMIC) or independently (PER_ITEM).  Safe
     * to repeat when every item has a request_id or task_id.
     * Errors: as CreateTask; INVALID_ARGUMENT/BATCH_TOO_LARGE.
     * </pre>
     */
    default void batchCreateTasks(dev.taskyard.v1.BatchCreateTasksRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.BatchCreateTasksResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getBatchCreateTasksMethod(), responseObserver);
    }

    /**
     * <pre>
     * Returns a task, archived ones included.
     * Errors: NOT_FOUND.
     * </pre>
     */
    default void getTask(dev.taskyard.v1.GetTaskRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.GetTaskResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getGetTaskMethod(), responseObserver);
    }

    /**
     * <pre>
     * Returns up to 1000 tasks in the order asked for.  A response has at most 3.5 MB, unless one
     * task alone is larger.
     * Errors: NOT_FOUND if any is missing, unless allow_missing; INVALID_ARGUMENT
     * (BATCH_TOO_LARGE: more than 1000 names, or more bytes; ask for fewer names or view BASIC).
     * </pre>
     */
    default void batchGetTasks(dev.taskyard.v1.BatchGetTasksRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.BatchGetTasksResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getBatchGetTasksMethod(), responseObserver);
    }

    /**
     * <pre>
     * Lists tasks.  parent "tenants/-" lists over all tenants the caller may see.
     * Errors: INVALID_ARGUMENT (FILTER_INVALID, ORDER_BY_INVALID, PAGE_TOKEN_INVALID).
     * </pre>
     */
    default void listTasks(dev.taskyard.v1.ListTasksRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ListTasksResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getListTasksMethod(), responseObserver);
    }

    /**
     * <pre>
     * Changes labels, annotations and the mutable part of the spec.  Always mutable:
     * metadata.labels, metadata.annotations, spec.callback, spec.retention.  While PENDING or
     * PAUSED: spec.priority too.  While PENDING or PAUSED and never started: every spec field
     * but task_type, slot and entity.  Status is never writable here.  Safe to repeat with a
     * resource_version.
     * Errors: NOT_FOUND; INVALID_ARGUMENT (FIELD_INVALID, FIELD_IMMUTABLE, TOO_LARGE,
     * PAYLOAD_SCHEMA_VIOLATION); ABORTED (RESOURCE_VERSION_MISMATCH); FAILED_PRECONDITION
     * (PHASE_CONFLICT).
     * </pre>
     */
    default void updateTask(dev.taskyard.v1.UpdateTaskRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.UpdateTaskResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getUpdateTaskMethod(), responseObserver);
    }

    /**
     * <pre>
     * Deletes an ended task with its runs, logs and checkpoints; the audit trail stays.  Safe to
     * repeat with allow_missing.
     * Errors: NOT_FOUND; ABORTED (RESOURCE_VERSION_MISMATCH); FAILED_PRECONDITION
     * (PHASE_CONFLICT: it is live, cancel it first; DELETION_PROTECTED: by its task type).
     * </pre>
     */
    default void deleteTask(dev.taskyard.v1.DeleteTaskRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.DeleteTaskResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getDeleteTaskMethod(), responseObserver);
    }

    /**
     * <pre>
     * Asks for cancellation; returns at once.  Idempotent: OK on a CANCELLED task.  Once it
     * is acknowledged no new attempt starts.
     * Errors: NOT_FOUND; FAILED_PRECONDITION (TASK_TERMINAL); ABORTED
     * (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    default void cancelTask(dev.taskyard.v1.CancelTaskRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.CancelTaskResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getCancelTaskMethod(), responseObserver);
    }

    /**
     * <pre>
     * Cancels up to 1000 tasks, by name or by filter, each on its own.  Idempotent.
     * Errors: INVALID_ARGUMENT (BATCH_TOO_LARGE, FILTER_INVALID).  Per task as CancelTask.
     * </pre>
     */
    default void batchCancelTasks(dev.taskyard.v1.BatchCancelTasksRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.BatchCancelTasksResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getBatchCancelTasksMethod(), responseObserver);
    }

    /**
     * <pre>
     * Asks for a pause: the holder checkpoints if it can and gives the lease back.
     * Idempotent: OK on a PAUSED task.
     * Errors: NOT_FOUND; FAILED_PRECONDITION (TASK_TERMINAL, PHASE_CONFLICT: external, or being
     * cancelled); ABORTED (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    default void pauseTask(dev.taskyard.v1.PauseTaskRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.PauseTaskResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getPauseTaskMethod(), responseObserver);
    }

    /**
     * <pre>
     * PAUSED -&gt; PENDING; also withdraws a pause that has not taken effect yet.  Idempotent: OK
     * on a live task that is not paused.
     * Errors: NOT_FOUND; FAILED_PRECONDITION (TASK_TERMINAL); ABORTED
     * (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    default void resumeTask(dev.taskyard.v1.ResumeTaskRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ResumeTaskResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getResumeTaskMethod(), responseObserver);
    }

    /**
     * <pre>
     * Terminal and not SUCCEEDED -&gt; PENDING, with fresh retry budgets.  The tasks of spec.after are
     * judged anew: the task waits for those that have not ended, and one that ended otherwise than
     * its condition requires refuses the retry.  Safe to repeat with a request_id or a
     * resource_version.
     * Errors: NOT_FOUND; FAILED_PRECONDITION (PHASE_CONFLICT, TASK_TYPE_DISABLED,
     * TENANT_SUSPENDED); RESOURCE_EXHAUSTED (QUEUE_DEPTH_EXCEEDED, SLOT_QUEUE_FULL);
     * ALREADY_EXISTS (REQUEST_ID_REUSED); ABORTED (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    default void retryTask(dev.taskyard.v1.RetryTaskRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.RetryTaskResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getRetryTaskMethod(), responseObserver);
    }

    /**
     * <pre>
     * Retries up to 1000 tasks, by name or by filter, each on its own.  A repeat finds them
     * live and returns PHASE_CONFLICT per task.
     * Errors: INVALID_ARGUMENT (BATCH_TOO_LARGE, FILTER_INVALID).  Per task as RetryTask.
     * </pre>
     */
    default void batchRetryTasks(dev.taskyard.v1.BatchRetryTasksRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.BatchRetryTasksResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getBatchRetryTasksMethod(), responseObserver);
    }

    /**
     * <pre>
     * Takes up to 1000 leased tasks, by name or by filter, from their holders and queues them
     * again, each on its own: for tasks that hang although their runner is alive.  Uses up a runner
     * loss, no retry; `reason` becomes status.error.message.  For work that must not overlap the
     * holder is asked to stop the run (status.requested_action RESET); the task is queued when it
     * has, or once its lease has expired.  A repeat finds them waiting and returns PHASE_CONFLICT
     * per task.
     * Errors: INVALID_ARGUMENT (BATCH_TOO_LARGE, FILTER_INVALID).  Per task: NOT_FOUND;
     * FAILED_PRECONDITION (PHASE_CONFLICT: no lease, or being cancelled).
     * </pre>
     */
    default void batchResetTasks(dev.taskyard.v1.BatchResetTasksRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.BatchResetTasksResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getBatchResetTasksMethod(), responseObserver);
    }

    /**
     * <pre>
     * Owner of an external task (spec.execution.external) reports status.  With `enqueue` the
     * report is stored durably and applied later, per task in order, and only NOT_FOUND is
     * answered at once.  Safe to repeat with a request_id.
     * Errors: NOT_FOUND; FAILED_PRECONDITION (PHASE_CONFLICT: not external, or not a
     * transition; TASK_TERMINAL); ALREADY_EXISTS (REQUEST_ID_REUSED); ABORTED
     * (RESOURCE_VERSION_MISMATCH); INVALID_ARGUMENT (TOO_LARGE: details).
     * </pre>
     */
    default void reportTaskStatus(dev.taskyard.v1.ReportTaskStatusRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ReportTaskStatusResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getReportTaskStatusMethod(), responseObserver);
    }

    /**
     * <pre>
     * Waits until the task is terminal (or past a version) or the time is up, then returns
     * its current state; running out of time is not an error.  A wait counts as an open stream
     * of the tenant.
     * Errors: NOT_FOUND; RESOURCE_EXHAUSTED (STREAM_LIMIT).
     * </pre>
     */
    default void waitTask(dev.taskyard.v1.WaitTaskRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.WaitTaskResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getWaitTaskMethod(), responseObserver);
    }

    /**
     * <pre>
     * Returns whether a fencing token (TASKYARD_FENCE of a run) is still the current one, so
     * that a workload can guard its own side effects.
     * Errors: NOT_FOUND.
     * </pre>
     */
    default void checkFence(dev.taskyard.v1.CheckFenceRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.CheckFenceResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getCheckFenceMethod(), responseObserver);
    }

    /**
     * <pre>
     * Streams changes.  Guarantees:
     *   order    changes of one task arrive in resource_version order; across tasks the
     *            order is that of the change log, the same for every watcher, and respects
     *            real time;
     *   no gaps  everything after resume_token is delivered at least once; after a repeat
     *            drop an event whose resource_version is not above the cached one;
     *   coalesce only if asked for: intermediate versions of a task may then be skipped,
     *            never the newest one and never a phase change to a terminal phase;
     *   resume   each response carries a token that covers everything up to and including
     *            it; idle streams get a bookmark (token without events) every
     *            bookmark_interval;
     *   end      after at most 60 min (+-10 %) the server sends closing and ends with OK;
     *            reconnect with the last token.
     * The stream is a cursor on a durable log, so a slow reader only falls behind; if it
     * accepts nothing for 60 s the stream ends with RESOURCE_EXHAUSTED/CONSUMER_STALLED and
     * can be resumed.
     * An event carries the status at that change; the full task is as it is at delivery.
     * Errors: INVALID_ARGUMENT (FILTER_INVALID, RESUME_TOKEN_INVALID); OUT_OF_RANGE
     * (RESUME_TOKEN_EXPIRED: history, at least 24 h, is gone; LOG_EPOCH_CHANGED: a backup was
     * restored, or a standby took over that is not known to have everything up to the token;
     * start over with snapshot); RESOURCE_EXHAUSTED (CONSUMER_STALLED, STREAM_LIMIT).
     * </pre>
     */
    default void watchTasks(dev.taskyard.v1.WatchTasksRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.WatchTasksResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getWatchTasksMethod(), responseObserver);
    }

    /**
     * <pre>
     * Lists the runs of a task, newest first.
     * Errors: NOT_FOUND; INVALID_ARGUMENT (PAGE_TOKEN_INVALID).
     * </pre>
     */
    default void listTaskRuns(dev.taskyard.v1.ListTaskRunsRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ListTaskRunsResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getListTaskRunsMethod(), responseObserver);
    }

    /**
     * <pre>
     * Lists log entries in (generation, sequence) order.
     * Errors: NOT_FOUND; INVALID_ARGUMENT (PAGE_TOKEN_INVALID).
     * </pre>
     */
    default void listTaskLogs(dev.taskyard.v1.ListTaskLogsRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ListTaskLogsResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getListTaskLogsMethod(), responseObserver);
    }

    /**
     * <pre>
     * Streams log entries; with follow until the task is terminal and all logs are sent.
     * Ends like WatchTasks; resume with resume_token.
     * Errors: NOT_FOUND; INVALID_ARGUMENT (RESUME_TOKEN_INVALID); RESOURCE_EXHAUSTED
     * (CONSUMER_STALLED, STREAM_LIMIT).
     * </pre>
     */
    default void tailTaskLogs(dev.taskyard.v1.TailTaskLogsRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.TailTaskLogsResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getTailTaskLogsMethod(), responseObserver);
    }

    /**
     * <pre>
     * Counts and durations.
     * Errors: INVALID_ARGUMENT (FILTER_INVALID).
     * </pre>
     */
    default void getTaskStats(dev.taskyard.v1.GetTaskStatsRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.GetTaskStatsResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getGetTaskStatsMethod(), responseObserver);
    }

    /**
     * <pre>
     * Counts and waiting times of each minute, for charts.  A minute without changes has no
     * point.  Kept for two days.
     * Errors: INVALID_ARGUMENT (FIELD_INVALID).
     * </pre>
     */
    default void getTaskSeries(dev.taskyard.v1.GetTaskSeriesRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.GetTaskSeriesResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getGetTaskSeriesMethod(), responseObserver);
    }

    /**
     * <pre>
     * Lists checkpoints, newest first.
     * Errors: NOT_FOUND.
     * </pre>
     */
    default void listCheckpoints(dev.taskyard.v1.ListCheckpointsRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ListCheckpointsResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getListCheckpointsMethod(), responseObserver);
    }

    /**
     * <pre>
     * Streams the content of a checkpoint.  The id "latest" names the newest one.
     * Errors: NOT_FOUND; DATA_LOSS (DIGEST_MISMATCH); RESOURCE_EXHAUSTED (STREAM_LIMIT).
     * </pre>
     */
    default void readCheckpoint(dev.taskyard.v1.ReadCheckpointRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ReadCheckpointResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getReadCheckpointMethod(), responseObserver);
    }

    /**
     * <pre>
     * Lists audit events, newest first.  Filter fields: event_type, actor.type, actor.id,
     * resource, time.
     * Errors: INVALID_ARGUMENT (FILTER_INVALID, PAGE_TOKEN_INVALID).
     * </pre>
     */
    default void listAuditEvents(dev.taskyard.v1.ListAuditEventsRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ListAuditEventsResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getListAuditEventsMethod(), responseObserver);
    }
  }

  /**
   * Base class for the server implementation of the service TaskService.
   * <pre>
   * Tasks, their runs, logs, checkpoints, statistics and audit trail.
   * </pre>
   */
  public static abstract class TaskServiceImplBase
      implements io.grpc.BindableService, AsyncService {

    @java.lang.Override public final io.grpc.ServerServiceDefinition bindService() {
      return TaskServiceGrpc.bindService(this);
    }
  }

  /**
   * A stub to allow clients to do asynchronous rpc calls to service TaskService.
   * <pre>
   * Tasks, their runs, logs, checkpoints, statistics and audit trail.
   * </pre>
   */
  public static final class TaskServiceStub
      extends io.grpc.stub.AbstractAsyncStub<TaskServiceStub> {
    private TaskServiceStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected TaskServiceStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new TaskServiceStub(channel, callOptions);
    }

    /**
     * <pre>
     * Creates a task in PENDING, or claimed already and SCHEDULED if a runner had a place for it.  Safe to
     * repeat with the same request_id or task_id.
     * Errors: NOT_FOUND (NOT_FOUND: tenant, a task or group of spec.after, a limit, or an entity that must exist;
     * TASK_TYPE_UNKNOWN); ALREADY_EXISTS (ALREADY_EXISTS:
     * id, REQUEST_ID_REUSED); INVALID_ARGUMENT (FIELD_INVALID, PAYLOAD_SCHEMA_VIOLATION,
     * TOO_LARGE); FAILED_PRECONDITION (TASK_TYPE_DISABLED, TENANT_SUSPENDED, GROUP_CLOSED);
     * RESOURCE_EXHAUSTED (QUEUE_DEPTH_EXCEEDED, RATE_LIMITED, SLOT_QUEUE_FULL,
     * PLACEMENT_CLASS_LIMIT, STORAGE_QUOTA_EXCEEDED).
     * </pre>
     */
    public void createTask(dev.taskyard.v1.CreateTaskRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.CreateTaskResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getCreateTaskMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Creates up to 1000 tasks in one transaction (ATOMIC) or independently (PER_ITEM).  Safe
     * to repeat when every item has a request_id or task_id.
     * Errors: as CreateTask; INVALID_ARGUMENT/BATCH_TOO_LARGE.
     * </pre>
     */
    public void batchCreateTasks(dev.taskyard.v1.BatchCreateTasksRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.BatchCreateTasksResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getBatchCreateTasksMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Returns a task, archived ones included.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public void getTask(dev.taskyard.v1.GetTaskRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.GetTaskResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getGetTaskMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Returns up to 1000 tasks in the order asked for.  A response has at most 3.5 MB, unless one
     * task alone is larger.
     * Errors: NOT_FOUND if any is missing, unless allow_missing; INVALID_ARGUMENT
     * (BATCH_TOO_LARGE: more than 1000 names, or more bytes; ask for fewer names or view BASIC).
     * </pre>
     */
    public void batchGetTasks(dev.taskyard.v1.BatchGetTasksRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.BatchGetTasksResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getBatchGetTasksMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Lists tasks.  parent "tenants/-" lists over all tenants the caller may see.
     * Errors: INVALID_ARGUMENT (FILTER_INVALID, ORDER_BY_INVALID, PAGE_TOKEN_INVALID).
     * </pre>
     */
    public void listTasks(dev.taskyard.v1.ListTasksRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ListTasksResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getListTasksMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Changes labels, annotations and the mutable part of the spec.  Always mutable:
     * metadata.labels, metadata.annotations, spec.callback, spec.retention.  While PENDING or
     * PAUSED: spec.priority too.  While PENDING or PAUSED and never started: every spec field
     * but task_type, slot and entity.  Status is never writable here.  Safe to repeat with a
     * resource_version.
     * Errors: NOT_FOUND; INVALID_ARGUMENT (FIELD_INVALID, FIELD_IMMUTABLE, TOO_LARGE,
     * PAYLOAD_SCHEMA_VIOLATION); ABORTED (RESOURCE_VERSION_MISMATCH); FAILED_PRECONDITION
     * (PHASE_CONFLICT).
     * </pre>
     */
    public void updateTask(dev.taskyard.v1.UpdateTaskRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.UpdateTaskResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getUpdateTaskMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Deletes an ended task with its runs, logs and checkpoints; the audit trail stays.  Safe to
     * repeat with allow_missing.
     * Errors: NOT_FOUND; ABORTED (RESOURCE_VERSION_MISMATCH); FAILED_PRECONDITION
     * (PHASE_CONFLICT: it is live, cancel it first; DELETION_PROTECTED: by its task type).
     * </pre>
     */
    public void deleteTask(dev.taskyard.v1.DeleteTaskRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.DeleteTaskResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getDeleteTaskMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Asks for cancellation; returns at once.  Idempotent: OK on a CANCELLED task.  Once it
     * is acknowledged no new attempt starts.
     * Errors: NOT_FOUND; FAILED_PRECONDITION (TASK_TERMINAL); ABORTED
     * (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    public void cancelTask(dev.taskyard.v1.CancelTaskRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.CancelTaskResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getCancelTaskMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Cancels up to 1000 tasks, by name or by filter, each on its own.  Idempotent.
     * Errors: INVALID_ARGUMENT (BATCH_TOO_LARGE, FILTER_INVALID).  Per task as CancelTask.
     * </pre>
     */
    public void batchCancelTasks(dev.taskyard.v1.BatchCancelTasksRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.BatchCancelTasksResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getBatchCancelTasksMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Asks for a pause: the holder checkpoints if it can and gives the lease back.
     * Idempotent: OK on a PAUSED task.
     * Errors: NOT_FOUND; FAILED_PRECONDITION (TASK_TERMINAL, PHASE_CONFLICT: external, or being
     * cancelled); ABORTED (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    public void pauseTask(dev.taskyard.v1.PauseTaskRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.PauseTaskResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getPauseTaskMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * PAUSED -&gt; PENDING; also withdraws a pause that has not taken effect yet.  Idempotent: OK
     * on a live task that is not paused.
     * Errors: NOT_FOUND; FAILED_PRECONDITION (TASK_TERMINAL); ABORTED
     * (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    public void resumeTask(dev.taskyard.v1.ResumeTaskRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ResumeTaskResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getResumeTaskMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Terminal and not SUCCEEDED -&gt; PENDING, with fresh retry budgets.  The tasks of spec.after are
     * judged anew: the task waits for those that have not ended, and one that ended otherwise than
     * its condition requires refuses the retry.  Safe to repeat with a request_id or a
     * resource_version.
     * Errors: NOT_FOUND; FAILED_PRECONDITION (PHASE_CONFLICT, TASK_TYPE_DISABLED,
     * TENANT_SUSPENDED); RESOURCE_EXHAUSTED (QUEUE_DEPTH_EXCEEDED, SLOT_QUEUE_FULL);
     * ALREADY_EXISTS (REQUEST_ID_REUSED); ABORTED (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    public void retryTask(dev.taskyard.v1.RetryTaskRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.RetryTaskResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getRetryTaskMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Retries up to 1000 tasks, by name or by filter, each on its own.  A repeat finds them
     * live and returns PHASE_CONFLICT per task.
     * Errors: INVALID_ARGUMENT (BATCH_TOO_LARGE, FILTER_INVALID).  Per task as RetryTask.
     * </pre>
     */
    public void batchRetryTasks(dev.taskyard.v1.BatchRetryTasksRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.BatchRetryTasksResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getBatchRetryTasksMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Takes up to 1000 leased tasks, by name or by filter, from their holders and queues them
     * again, each on its own: for tasks that hang although their runner is alive.  Uses up a runner
     * loss, no retry; `reason` becomes status.error.message.  For work that must not overlap the
     * holder is asked to stop the run (status.requested_action RESET); the task is queued when it
     * has, or once its lease has expired.  A repeat finds them waiting and returns PHASE_CONFLICT
     * per task.
     * Errors: INVALID_ARGUMENT (BATCH_TOO_LARGE, FILTER_INVALID).  Per task: NOT_FOUND;
     * FAILED_PRECONDITION (PHASE_CONFLICT: no lease, or being cancelled).
     * </pre>
     */
    public void batchResetTasks(dev.taskyard.v1.BatchResetTasksRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.BatchResetTasksResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getBatchResetTasksMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Owner of an external task (spec.execution.external) reports status.  With `enqueue` the
     * report is stored durably and applied later, per task in order, and only NOT_FOUND is
     * answered at once.  Safe to repeat with a request_id.
     * Errors: NOT_FOUND; FAILED_PRECONDITION (PHASE_CONFLICT: not external, or not a
     * transition; TASK_TERMINAL); ALREADY_EXISTS (REQUEST_ID_REUSED); ABORTED
     * (RESOURCE_VERSION_MISMATCH); INVALID_ARGUMENT (TOO_LARGE: details).
     * </pre>
     */
    public void reportTaskStatus(dev.taskyard.v1.ReportTaskStatusRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ReportTaskStatusResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getReportTaskStatusMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Waits until the task is terminal (or past a version) or the time is up, then returns
     * its current state; running out of time is not an error.  A wait counts as an open stream
     * of the tenant.
     * Errors: NOT_FOUND; RESOURCE_EXHAUSTED (STREAM_LIMIT).
     * </pre>
     */
    public void waitTask(dev.taskyard.v1.WaitTaskRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.WaitTaskResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getWaitTaskMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Returns whether a fencing token (TASKYARD_FENCE of a run) is still the current one, so
     * that a workload can guard its own side effects.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public void checkFence(dev.taskyard.v1.CheckFenceRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.CheckFenceResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getCheckFenceMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Streams changes.  Guarantees:
     *   order    changes of one task arrive in resource_version order; across tasks the
     *            order is that of the change log, the same for every watcher, and respects
     *            real time;
     *   no gaps  everything after resume_token is delivered at least once; after a repeat
     *            drop an event whose resource_version is not above the cached one;
     *   coalesce only if asked for: intermediate versions of a task may then be skipped,
     *            never the newest one and never a phase change to a terminal phase;
     *   resume   each response carries a token that covers everything up to and including
     *            it; idle streams get a bookmark (token without events) every
     *            bookmark_interval;
     *   end      after at most 60 min (+-10 %) the server sends closing and ends with OK;
     *            reconnect with the last token.
     * The stream is a cursor on a durable log, so a slow reader only falls behind; if it
     * accepts nothing for 60 s the stream ends with RESOURCE_EXHAUSTED/CONSUMER_STALLED and
     * can be resumed.
     * An event carries the status at that change; the full task is as it is at delivery.
     * Errors: INVALID_ARGUMENT (FILTER_INVALID, RESUME_TOKEN_INVALID); OUT_OF_RANGE
     * (RESUME_TOKEN_EXPIRED: history, at least 24 h, is gone; LOG_EPOCH_CHANGED: a backup was
     * restored, or a standby took over that is not known to have everything up to the token;
     * start over with snapshot); RESOURCE_EXHAUSTED (CONSUMER_STALLED, STREAM_LIMIT).
     * </pre>
     */
    public void watchTasks(dev.taskyard.v1.WatchTasksRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.WatchTasksResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncServerStreamingCall(
          getChannel().newCall(getWatchTasksMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Lists the runs of a task, newest first.
     * Errors: NOT_FOUND; INVALID_ARGUMENT (PAGE_TOKEN_INVALID).
     * </pre>
     */
    public void listTaskRuns(dev.taskyard.v1.ListTaskRunsRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ListTaskRunsResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getListTaskRunsMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Lists log entries in (generation, sequence) order.
     * Errors: NOT_FOUND; INVALID_ARGUMENT (PAGE_TOKEN_INVALID).
     * </pre>
     */
    public void listTaskLogs(dev.taskyard.v1.ListTaskLogsRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ListTaskLogsResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getListTaskLogsMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Streams log entries; with follow until the task is terminal and all logs are sent.
     * Ends like WatchTasks; resume with resume_token.
     * Errors: NOT_FOUND; INVALID_ARGUMENT (RESUME_TOKEN_INVALID); RESOURCE_EXHAUSTED
     * (CONSUMER_STALLED, STREAM_LIMIT).
     * </pre>
     */
    public void tailTaskLogs(dev.taskyard.v1.TailTaskLogsRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.TailTaskLogsResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncServerStreamingCall(
          getChannel().newCall(getTailTaskLogsMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Counts and durations.
     * Errors: INVALID_ARGUMENT (FILTER_INVALID).
     * </pre>
     */
    public void getTaskStats(dev.taskyard.v1.GetTaskStatsRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.GetTaskStatsResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getGetTaskStatsMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Counts and waiting times of each minute, for charts.  A minute without changes has no
     * point.  Kept for two days.
     * Errors: INVALID_ARGUMENT (FIELD_INVALID).
     * </pre>
     */
    public void getTaskSeries(dev.taskyard.v1.GetTaskSeriesRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.GetTaskSeriesResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getGetTaskSeriesMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Lists checkpoints, newest first.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public void listCheckpoints(dev.taskyard.v1.ListCheckpointsRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ListCheckpointsResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getListCheckpointsMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Streams the content of a checkpoint.  The id "latest" names the newest one.
     * Errors: NOT_FOUND; DATA_LOSS (DIGEST_MISMATCH); RESOURCE_EXHAUSTED (STREAM_LIMIT).
     * </pre>
     */
    public void readCheckpoint(dev.taskyard.v1.ReadCheckpointRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ReadCheckpointResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncServerStreamingCall(
          getChannel().newCall(getReadCheckpointMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Lists audit events, newest first.  Filter fields: event_type, actor.type, actor.id,
     * resource, time.
     * Errors: INVALID_ARGUMENT (FILTER_INVALID, PAGE_TOKEN_INVALID).
     * </pre>
     */
    public void listAuditEvents(dev.taskyard.v1.ListAuditEventsRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ListAuditEventsResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getListAuditEventsMethod(), getCallOptions()), request, responseObserver);
    }
  }

  /**
   * A stub to allow clients to do synchronous rpc calls to service TaskService.
   * <pre>
   * Tasks, their runs, logs, checkpoints, statistics and audit trail.
   * </pre>
   */
  public static final class TaskServiceBlockingV2Stub
      extends io.grpc.stub.AbstractBlockingStub<TaskServiceBlockingV2Stub> {
    private TaskServiceBlockingV2Stub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected TaskServiceBlockingV2Stub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new TaskServiceBlockingV2Stub(channel, callOptions);
    }

    /**
     * <pre>
     * Creates a task in PENDING, or claimed already and SCHEDULED if a runner had a place for it.  Safe to
     * repeat with the same request_id or task_id.
     * Errors: NOT_FOUND (NOT_FOUND: tenant, a task or group of spec.after, a limit, or an entity that must exist;
     * TASK_TYPE_UNKNOWN); ALREADY_EXISTS (ALREADY_EXISTS:
     * id, REQUEST_ID_REUSED); INVALID_ARGUMENT (FIELD_INVALID, PAYLOAD_SCHEMA_VIOLATION,
     * TOO_LARGE); FAILED_PRECONDITION (TASK_TYPE_DISABLED, TENANT_SUSPENDED, GROUP_CLOSED);
     * RESOURCE_EXHAUSTED (QUEUE_DEPTH_EXCEEDED, RATE_LIMITED, SLOT_QUEUE_FULL,
     * PLACEMENT_CLASS_LIMIT, STORAGE_QUOTA_EXCEEDED).
     * </pre>
     */
    public dev.taskyard.v1.CreateTaskResponse createTask(dev.taskyard.v1.CreateTaskRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getCreateTaskMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Creates up to 1000 tasks in one transaction (ATOMIC) or independently (PER_ITEM).  Safe
     * to repeat when every item has a request_id or task_id.
     * Errors: as CreateTask; INVALID_ARGUMENT/BATCH_TOO_LARGE.
     * </pre>
     */
    public dev.taskyard.v1.BatchCreateTasksResponse batchCreateTasks(dev.taskyard.v1.BatchCreateTasksRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getBatchCreateTasksMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Returns a task, archived ones included.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public dev.taskyard.v1.GetTaskResponse getTask(dev.taskyard.v1.GetTaskRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getGetTaskMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Returns up to 1000 tasks in the order asked for.  A response has at most 3.5 MB, unless one
     * task alone is larger.
     * Errors: NOT_FOUND if any is missing, unless allow_missing; INVALID_ARGUMENT
     * (BATCH_TOO_LARGE: more than 1000 names, or more bytes; ask for fewer names or view BASIC).
     * </pre>
     */
    public dev.taskyard.v1.BatchGetTasksResponse batchGetTasks(dev.taskyard.v1.BatchGetTasksRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getBatchGetTasksMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Lists tasks.  parent "tenants/-" lists over all tenants the caller may see.
     * Errors: INVALID_ARGUMENT (FILTER_INVALID, ORDER_BY_INVALID, PAGE_TOKEN_INVALID).
     * </pre>
     */
    public dev.taskyard.v1.ListTasksResponse listTasks(dev.taskyard.v1.ListTasksRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getListTasksMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Changes labels, annotations and the mutable part of the spec.  Always mutable:
     * metadata.labels, metadata.annotations, spec.callback, spec.retention.  While PENDING or
     * PAUSED: spec.priority too.  While PENDING or PAUSED and never started: every spec field
     * but task_type, slot and entity.  Status is never writable here.  Safe to repeat with a
     * resource_version.
     * Errors: NOT_FOUND; INVALID_ARGUMENT (FIELD_INVALID, FIELD_IMMUTABLE, TOO_LARGE,
     * PAYLOAD_SCHEMA_VIOLATION); ABORTED (RESOURCE_VERSION_MISMATCH); FAILED_PRECONDITION
     * (PHASE_CONFLICT).
     * </pre>
     */
    public dev.taskyard.v1.UpdateTaskResponse updateTask(dev.taskyard.v1.UpdateTaskRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getUpdateTaskMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Deletes an ended task with its runs, logs and checkpoints; the audit trail stays.  Safe to
     * repeat with allow_missing.
     * Errors: NOT_FOUND; ABORTED (RESOURCE_VERSION_MISMATCH); FAILED_PRECONDITION
     * (PHASE_CONFLICT: it is live, cancel it first; DELETION_PROTECTED: by its task type).
     * </pre>
     */
    public dev.taskyard.v1.DeleteTaskResponse deleteTask(dev.taskyard.v1.DeleteTaskRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getDeleteTaskMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Asks for cancellation; returns at once.  Idempotent: OK on a CANCELLED task.  Once it
     * is acknowledged no new attempt starts.
     * Errors: NOT_FOUND; FAILED_PRECONDITION (TASK_TERMINAL); ABORTED
     * (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    public dev.taskyard.v1.CancelTaskResponse cancelTask(dev.taskyard.v1.CancelTaskRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getCancelTaskMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Cancels up to 1000 tasks, by name or by filter, each on its own.  Idempotent.
     * Errors: INVALID_ARGUMENT (BATCH_TOO_LARGE, FILTER_INVALID).  Per task as CancelTask.
     * </pre>
     */
    public dev.taskyard.v1.BatchCancelTasksResponse batchCancelTasks(dev.taskyard.v1.BatchCancelTasksRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getBatchCancelTasksMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Asks for a pause: the holder checkpoints if it can and gives the lease back.
     * Idempotent: OK on a PAUSED task.
     * Errors: NOT_FOUND; FAILED_PRECONDITION (TASK_TERMINAL, PHASE_CONFLICT: external, or being
     * cancelled); ABORTED (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    public dev.taskyard.v1.PauseTaskResponse pauseTask(dev.taskyard.v1.PauseTaskRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getPauseTaskMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * PAUSED -&gt; PENDING; also withdraws a pause that has not taken effect yet.  Idempotent: OK
     * on a live task that is not paused.
     * Errors: NOT_FOUND; FAILED_PRECONDITION (TASK_TERMINAL); ABORTED
     * (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    public dev.taskyard.v1.ResumeTaskResponse resumeTask(dev.taskyard.v1.ResumeTaskRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getResumeTaskMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Terminal and not SUCCEEDED -&gt; PENDING, with fresh retry budgets.  The tasks of spec.after are
     * judged anew: the task waits for those that have not ended, and one that ended otherwise than
     * its condition requires refuses the retry.  Safe to repeat with a request_id or a
     * resource_version.
     * Errors: NOT_FOUND; FAILED_PRECONDITION (PHASE_CONFLICT, TASK_TYPE_DISABLED,
     * TENANT_SUSPENDED); RESOURCE_EXHAUSTED (QUEUE_DEPTH_EXCEEDED, SLOT_QUEUE_FULL);
     * ALREADY_EXISTS (REQUEST_ID_REUSED); ABORTED (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    public dev.taskyard.v1.RetryTaskResponse retryTask(dev.taskyard.v1.RetryTaskRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getRetryTaskMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Retries up to 1000 tasks, by name or by filter, each on its own.  A repeat finds them
     * live and returns PHASE_CONFLICT per task.
     * Errors: INVALID_ARGUMENT (BATCH_TOO_LARGE, FILTER_INVALID).  Per task as RetryTask.
     * </pre>
     */
    public dev.taskyard.v1.BatchRetryTasksResponse batchRetryTasks(dev.taskyard.v1.BatchRetryTasksRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getBatchRetryTasksMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Takes up to 1000 leased tasks, by name or by filter, from their holders and queues them
     * again, each on its own: for tasks that hang although their runner is alive.  Uses up a runner
     * loss, no retry; `reason` becomes status.error.message.  For work that must not overlap the
     * holder is asked to stop the run (status.requested_action RESET); the task is queued when it
     * has, or once its lease has expired.  A repeat finds them waiting and returns PHASE_CONFLICT
     * per task.
     * Errors: INVALID_ARGUMENT (BATCH_TOO_LARGE, FILTER_INVALID).  Per task: NOT_FOUND;
     * FAILED_PRECONDITION (PHASE_CONFLICT: no lease, or being cancelled).
     * </pre>
     */
    public dev.taskyard.v1.BatchResetTasksResponse batchResetTasks(dev.taskyard.v1.BatchResetTasksRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getBatchResetTasksMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Owner of an external task (spec.execution.external) reports status.  With `enqueue` the
     * report is stored durably and applied later, per task in order, and only NOT_FOUND is
     * answered at once.  Safe to repeat with a request_id.
     * Errors: NOT_FOUND; FAILED_PRECONDITION (PHASE_CONFLICT: not external, or not a
     * transition; TASK_TERMINAL); ALREADY_EXISTS (REQUEST_ID_REUSED); ABORTED
     * (RESOURCE_VERSION_MISMATCH); INVALID_ARGUMENT (TOO_LARGE: details).
     * </pre>
     */
    public dev.taskyard.v1.ReportTaskStatusResponse reportTaskStatus(dev.taskyard.v1.ReportTaskStatusRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getReportTaskStatusMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Waits until the task is terminal (or past a version) or the time is up, then returns
     * its current state; running out of time is not an error.  A wait counts as an open stream
     * of the tenant.
     * Errors: NOT_FOUND; RESOURCE_EXHAUSTED (STREAM_LIMIT).
     * </pre>
     */
    public dev.taskyard.v1.WaitTaskResponse waitTask(dev.taskyard.v1.WaitTaskRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getWaitTaskMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Returns whether a fencing token (TASKYARD_FENCE of a run) is still the current one, so
     * that a workload can guard its own side effects.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public dev.taskyard.v1.CheckFenceResponse checkFence(dev.taskyard.v1.CheckFenceRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getCheckFenceMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Streams changes.  Guarantees:
     *   order    changes of one task arrive in resource_version order; across tasks the
     *            order is that of the change log, the same for every watcher, and respects
     *            real time;
     *   no gaps  everything after resume_token is delivered at least once; after a repeat
     *            drop an event whose resource_version is not above the cached one;
     *   coalesce only if asked for: intermediate versions of a task may then be skipped,
     *            never the newest one and never a phase change to a terminal phase;
     *   resume   each response carries a token that covers everything up to and including
     *            it; idle streams get a bookmark (token without events) every
     *            bookmark_interval;
     *   end      after at most 60 min (+-10 %) the server sends closing and ends with OK;
     *            reconnect with the last token.
     * The stream is a cursor on a durable log, so a slow reader only falls behind; if it
     * accepts nothing for 60 s the stream ends with RESOURCE_EXHAUSTED/CONSUMER_STALLED and
     * can be resumed.
     * An event carries the status at that change; the full task is as it is at delivery.
     * Errors: INVALID_ARGUMENT (FILTER_INVALID, RESUME_TOKEN_INVALID); OUT_OF_RANGE
     * (RESUME_TOKEN_EXPIRED: history, at least 24 h, is gone; LOG_EPOCH_CHANGED: a backup was
     * restored, or a standby took over that is not known to have everything up to the token;
     * start over with snapshot); RESOURCE_EXHAUSTED (CONSUMER_STALLED, STREAM_LIMIT).
     * </pre>
     */
    @io.grpc.ExperimentalApi("https://github.com/grpc/grpc-java/issues/10918")
    public io.grpc.stub.BlockingClientCall<?, dev.taskyard.v1.WatchTasksResponse>
        watchTasks(dev.taskyard.v1.WatchTasksRequest request) {
      return io.grpc.stub.ClientCalls.blockingV2ServerStreamingCall(
          getChannel(), getWatchTasksMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Lists the runs of a task, newest first.
     * Errors: NOT_FOUND; INVALID_ARGUMENT (PAGE_TOKEN_INVALID).
     * </pre>
     */
    public dev.taskyard.v1.ListTaskRunsResponse listTaskRuns(dev.taskyard.v1.ListTaskRunsRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getListTaskRunsMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Lists log entries in (generation, sequence) order.
     * Errors: NOT_FOUND; INVALID_ARGUMENT (PAGE_TOKEN_INVALID).
     * </pre>
     */
    public dev.taskyard.v1.ListTaskLogsResponse listTaskLogs(dev.taskyard.v1.ListTaskLogsRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getListTaskLogsMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Streams log entries; with follow until the task is terminal and all logs are sent.
     * Ends like WatchTasks; resume with resume_token.
     * Errors: NOT_FOUND; INVALID_ARGUMENT (RESUME_TOKEN_INVALID); RESOURCE_EXHAUSTED
     * (CONSUMER_STALLED, STREAM_LIMIT).
     * </pre>
     */
    @io.grpc.ExperimentalApi("https://github.com/grpc/grpc-java/issues/10918")
    public io.grpc.stub.BlockingClientCall<?, dev.taskyard.v1.TailTaskLogsResponse>
        tailTaskLogs(dev.taskyard.v1.TailTaskLogsRequest request) {
      return io.grpc.stub.ClientCalls.blockingV2ServerStreamingCall(
          getChannel(), getTailTaskLogsMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Counts and durations.
     * Errors: INVALID_ARGUMENT (FILTER_INVALID).
     * </pre>
     */
    public dev.taskyard.v1.GetTaskStatsResponse getTaskStats(dev.taskyard.v1.GetTaskStatsRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getGetTaskStatsMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Counts and waiting times of each minute, for charts.  A minute without changes has no
     * point.  Kept for two days.
     * Errors: INVALID_ARGUMENT (FIELD_INVALID).
     * </pre>
     */
    public dev.taskyard.v1.GetTaskSeriesResponse getTaskSeries(dev.taskyard.v1.GetTaskSeriesRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getGetTaskSeriesMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Lists checkpoints, newest first.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public dev.taskyard.v1.ListCheckpointsResponse listCheckpoints(dev.taskyard.v1.ListCheckpointsRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getListCheckpointsMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Streams the content of a checkpoint.  The id "latest" names the newest one.
     * Errors: NOT_FOUND; DATA_LOSS (DIGEST_MISMATCH); RESOURCE_EXHAUSTED (STREAM_LIMIT).
     * </pre>
     */
    @io.grpc.ExperimentalApi("https://github.com/grpc/grpc-java/issues/10918")
    public io.grpc.stub.BlockingClientCall<?, dev.taskyard.v1.ReadCheckpointResponse>
        readCheckpoint(dev.taskyard.v1.ReadCheckpointRequest request) {
      return io.grpc.stub.ClientCalls.blockingV2ServerStreamingCall(
          getChannel(), getReadCheckpointMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Lists audit events, newest first.  Filter fields: event_type, actor.type, actor.id,
     * resource, time.
     * Errors: INVALID_ARGUMENT (FILTER_INVALID, PAGE_TOKEN_INVALID).
     * </pre>
     */
    public dev.taskyard.v1.ListAuditEventsResponse listAuditEvents(dev.taskyard.v1.ListAuditEventsRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getListAuditEventsMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do limited synchronous rpc calls to service TaskService.
   * <pre>
   * Tasks, their runs, logs, checkpoints, statistics and audit trail.
   * </pre>
   */
  public static final class TaskServiceBlockingStub
      extends io.grpc.stub.AbstractBlockingStub<TaskServiceBlockingStub> {
    private TaskServiceBlockingStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected TaskServiceBlockingStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new TaskServiceBlockingStub(channel, callOptions);
    }

    /**
     * <pre>
     * Creates a task in PENDING, or claimed already and SCHEDULED if a runner had a place for it.  Safe to
     * repeat with the same request_id or task_id.
     * Errors: NOT_FOUND (NOT_FOUND: tenant, a task or group of spec.after, a limit, or an entity that must exist;
     * TASK_TYPE_UNKNOWN); ALREADY_EXISTS (ALREADY_EXISTS:
     * id, REQUEST_ID_REUSED); INVALID_ARGUMENT (FIELD_INVALID, PAYLOAD_SCHEMA_VIOLATION,
     * TOO_LARGE); FAILED_PRECONDITION (TASK_TYPE_DISABLED, TENANT_SUSPENDED, GROUP_CLOSED);
     * RESOURCE_EXHAUSTED (QUEUE_DEPTH_EXCEEDED, RATE_LIMITED, SLOT_QUEUE_FULL,
     * PLACEMENT_CLASS_LIMIT, STORAGE_QUOTA_EXCEEDED).
     * </pre>
     */
    public dev.taskyard.v1.CreateTaskResponse createTask(dev.taskyard.v1.CreateTaskRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getCreateTaskMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Creates up to 1000 tasks in one transaction (ATOMIC) or independently (PER_ITEM).  Safe
     * to repeat when every item has a request_id or task_id.
     * Errors: as CreateTask; INVALID_ARGUMENT/BATCH_TOO_LARGE.
     * </pre>
     */
    public dev.taskyard.v1.BatchCreateTasksResponse batchCreateTasks(dev.taskyard.v1.BatchCreateTasksRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getBatchCreateTasksMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Returns a task, archived ones included.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public dev.taskyard.v1.GetTaskResponse getTask(dev.taskyard.v1.GetTaskRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getGetTaskMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Returns up to 1000 tasks in the order asked for.  A response has at most 3.5 MB, unless one
     * task alone is larger.
     * Errors: NOT_FOUND if any is missing, unless allow_missing; INVALID_ARGUMENT
     * (BATCH_TOO_LARGE: more than 1000 names, or more bytes; ask for fewer names or view BASIC).
     * </pre>
     */
    public dev.taskyard.v1.BatchGetTasksResponse batchGetTasks(dev.taskyard.v1.BatchGetTasksRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getBatchGetTasksMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Lists tasks.  parent "tenants/-" lists over all tenants the caller may see.
     * Errors: INVALID_ARGUMENT (FILTER_INVALID, ORDER_BY_INVALID, PAGE_TOKEN_INVALID).
     * </pre>
     */
    public dev.taskyard.v1.ListTasksResponse listTasks(dev.taskyard.v1.ListTasksRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getListTasksMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Changes labels, annotations and the mutable part of the spec.  Always mutable:
     * metadata.labels, metadata.annotations, spec.callback, spec.retention.  While PENDING or
     * PAUSED: spec.priority too.  While PENDING or PAUSED and never started: every spec field
     * but task_type, slot and entity.  Status is never writable here.  Safe to repeat with a
     * resource_version.
     * Errors: NOT_FOUND; INVALID_ARGUMENT (FIELD_INVALID, FIELD_IMMUTABLE, TOO_LARGE,
     * PAYLOAD_SCHEMA_VIOLATION); ABORTED (RESOURCE_VERSION_MISMATCH); FAILED_PRECONDITION
     * (PHASE_CONFLICT).
     * </pre>
     */
    public dev.taskyard.v1.UpdateTaskResponse updateTask(dev.taskyard.v1.UpdateTaskRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getUpdateTaskMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Deletes an ended task with its runs, logs and checkpoints; the audit trail stays.  Safe to
     * repeat with allow_missing.
     * Errors: NOT_FOUND; ABORTED (RESOURCE_VERSION_MISMATCH); FAILED_PRECONDITION
     * (PHASE_CONFLICT: it is live, cancel it first; DELETION_PROTECTED: by its task type).
     * </pre>
     */
    public dev.taskyard.v1.DeleteTaskResponse deleteTask(dev.taskyard.v1.DeleteTaskRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getDeleteTaskMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Asks for cancellation; returns at once.  Idempotent: OK on a CANCELLED task.  Once it
     * is acknowledged no new attempt starts.
     * Errors: NOT_FOUND; FAILED_PRECONDITION (TASK_TERMINAL); ABORTED
     * (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    public dev.taskyard.v1.CancelTaskResponse cancelTask(dev.taskyard.v1.CancelTaskRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getCancelTaskMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Cancels up to 1000 tasks, by name or by filter, each on its own.  Idempotent.
     * Errors: INVALID_ARGUMENT (BATCH_TOO_LARGE, FILTER_INVALID).  Per task as CancelTask.
     * </pre>
     */
    public dev.taskyard.v1.BatchCancelTasksResponse batchCancelTasks(dev.taskyard.v1.BatchCancelTasksRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getBatchCancelTasksMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Asks for a pause: the holder checkpoints if it can and gives the lease back.
     * Idempotent: OK on a PAUSED task.
     * Errors: NOT_FOUND; FAILED_PRECONDITION (TASK_TERMINAL, PHASE_CONFLICT: external, or being
     * cancelled); ABORTED (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    public dev.taskyard.v1.PauseTaskResponse pauseTask(dev.taskyard.v1.PauseTaskRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getPauseTaskMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * PAUSED -&gt; PENDING; also withdraws a pause that has not taken effect yet.  Idempotent: OK
     * on a live task that is not paused.
     * Errors: NOT_FOUND; FAILED_PRECONDITION (TASK_TERMINAL); ABORTED
     * (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    public dev.taskyard.v1.ResumeTaskResponse resumeTask(dev.taskyard.v1.ResumeTaskRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getResumeTaskMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Terminal and not SUCCEEDED -&gt; PENDING, with fresh retry budgets.  The tasks of spec.after are
     * judged anew: the task waits for those that have not ended, and one that ended otherwise than
     * its condition requires refuses the retry.  Safe to repeat with a request_id or a
     * resource_version.
     * Errors: NOT_FOUND; FAILED_PRECONDITION (PHASE_CONFLICT, TASK_TYPE_DISABLED,
     * TENANT_SUSPENDED); RESOURCE_EXHAUSTED (QUEUE_DEPTH_EXCEEDED, SLOT_QUEUE_FULL);
     * ALREADY_EXISTS (REQUEST_ID_REUSED); ABORTED (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    public dev.taskyard.v1.RetryTaskResponse retryTask(dev.taskyard.v1.RetryTaskRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getRetryTaskMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Retries up to 1000 tasks, by name or by filter, each on its own.  A repeat finds them
     * live and returns PHASE_CONFLICT per task.
     * Errors: INVALID_ARGUMENT (BATCH_TOO_LARGE, FILTER_INVALID).  Per task as RetryTask.
     * </pre>
     */
    public dev.taskyard.v1.BatchRetryTasksResponse batchRetryTasks(dev.taskyard.v1.BatchRetryTasksRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getBatchRetryTasksMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Takes up to 1000 leased tasks, by name or by filter, from their holders and queues them
     * again, each on its own: for tasks that hang although their runner is alive.  Uses up a runner
     * loss, no retry; `reason` becomes status.error.message.  For work that must not overlap the
     * holder is asked to stop the run (status.requested_action RESET); the task is queued when it
     * has, or once its lease has expired.  A repeat finds them waiting and returns PHASE_CONFLICT
     * per task.
     * Errors: INVALID_ARGUMENT (BATCH_TOO_LARGE, FILTER_INVALID).  Per task: NOT_FOUND;
     * FAILED_PRECONDITION (PHASE_CONFLICT: no lease, or being cancelled).
     * </pre>
     */
    public dev.taskyard.v1.BatchResetTasksResponse batchResetTasks(dev.taskyard.v1.BatchResetTasksRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getBatchResetTasksMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Owner of an external task (spec.execution.external) reports status.  With `enqueue` the
     * report is stored durably and applied later, per task in order, and only NOT_FOUND is
     * answered at once.  Safe to repeat with a request_id.
     * Errors: NOT_FOUND; FAILED_PRECONDITION (PHASE_CONFLICT: not external, or not a
     * transition; TASK_TERMINAL); ALREADY_EXISTS (REQUEST_ID_REUSED); ABORTED
     * (RESOURCE_VERSION_MISMATCH); INVALID_ARGUMENT (TOO_LARGE: details).
     * </pre>
     */
    public dev.taskyard.v1.ReportTaskStatusResponse reportTaskStatus(dev.taskyard.v1.ReportTaskStatusRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getReportTaskStatusMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Waits until the task is terminal (or past a version) or the time is up, then returns
     * its current state; running out of time is not an error.  A wait counts as an open stream
     * of the tenant.
     * Errors: NOT_FOUND; RESOURCE_EXHAUSTED (STREAM_LIMIT).
     * </pre>
     */
    public dev.taskyard.v1.WaitTaskResponse waitTask(dev.taskyard.v1.WaitTaskRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getWaitTaskMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Returns whether a fencing token (TASKYARD_FENCE of a run) is still the current one, so
     * that a workload can guard its own side effects.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public dev.taskyard.v1.CheckFenceResponse checkFence(dev.taskyard.v1.CheckFenceRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getCheckFenceMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Streams changes.  Guarantees:
     *   order    changes of one task arrive in resource_version order; across tasks the
     *            order is that of the change log, the same for every watcher, and respects
     *            real time;
     *   no gaps  everything after resume_token is delivered at least once; after a repeat
     *            drop an event whose resource_version is not above the cached one;
     *   coalesce only if asked for: intermediate versions of a task may then be skipped,
     *            never the newest one and never a phase change to a terminal phase;
     *   resume   each response carries a token that covers everything up to and including
     *            it; idle streams get a bookmark (token without events) every
     *            bookmark_interval;
     *   end      after at most 60 min (+-10 %) the server sends closing and ends with OK;
     *            reconnect with the last token.
     * The stream is a cursor on a durable log, so a slow reader only falls behind; if it
     * accepts nothing for 60 s the stream ends with RESOURCE_EXHAUSTED/CONSUMER_STALLED and
     * can be resumed.
     * An event carries the status at that change; the full task is as it is at delivery.
     * Errors: INVALID_ARGUMENT (FILTER_INVALID, RESUME_TOKEN_INVALID); OUT_OF_RANGE
     * (RESUME_TOKEN_EXPIRED: history, at least 24 h, is gone; LOG_EPOCH_CHANGED: a backup was
     * restored, or a standby took over that is not known to have everything up to the token;
     * start over with snapshot); RESOURCE_EXHAUSTED (CONSUMER_STALLED, STREAM_LIMIT).
     * </pre>
     */
    public java.util.Iterator<dev.taskyard.v1.WatchTasksResponse> watchTasks(
        dev.taskyard.v1.WatchTasksRequest request) {
      return io.grpc.stub.ClientCalls.blockingServerStreamingCall(
          getChannel(), getWatchTasksMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Lists the runs of a task, newest first.
     * Errors: NOT_FOUND; INVALID_ARGUMENT (PAGE_TOKEN_INVALID).
     * </pre>
     */
    public dev.taskyard.v1.ListTaskRunsResponse listTaskRuns(dev.taskyard.v1.ListTaskRunsRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getListTaskRunsMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Lists log entries in (generation, sequence) order.
     * Errors: NOT_FOUND; INVALID_ARGUMENT (PAGE_TOKEN_INVALID).
     * </pre>
     */
    public dev.taskyard.v1.ListTaskLogsResponse listTaskLogs(dev.taskyard.v1.ListTaskLogsRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getListTaskLogsMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Streams log entries; with follow until the task is terminal and all logs are sent.
     * Ends like WatchTasks; resume with resume_token.
     * Errors: NOT_FOUND; INVALID_ARGUMENT (RESUME_TOKEN_INVALID); RESOURCE_EXHAUSTED
     * (CONSUMER_STALLED, STREAM_LIMIT).
     * </pre>
     */
    public java.util.Iterator<dev.taskyard.v1.TailTaskLogsResponse> tailTaskLogs(
        dev.taskyard.v1.TailTaskLogsRequest request) {
      return io.grpc.stub.ClientCalls.blockingServerStreamingCall(
          getChannel(), getTailTaskLogsMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Counts and durations.
     * Errors: INVALID_ARGUMENT (FILTER_INVALID).
     * </pre>
     */
    public dev.taskyard.v1.GetTaskStatsResponse getTaskStats(dev.taskyard.v1.GetTaskStatsRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getGetTaskStatsMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Counts and waiting times of each minute, for charts.  A minute without changes has no
     * point.  Kept for two days.
     * Errors: INVALID_ARGUMENT (FIELD_INVALID).
     * </pre>
     */
    public dev.taskyard.v1.GetTaskSeriesResponse getTaskSeries(dev.taskyard.v1.GetTaskSeriesRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getGetTaskSeriesMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Lists checkpoints, newest first.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public dev.taskyard.v1.ListCheckpointsResponse listCheckpoints(dev.taskyard.v1.ListCheckpointsRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getListCheckpointsMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Streams the content of a checkpoint.  The id "latest" names the newest one.
     * Errors: NOT_FOUND; DATA_LOSS (DIGEST_MISMATCH); RESOURCE_EXHAUSTED (STREAM_LIMIT).
     * </pre>
     */
    public java.util.Iterator<dev.taskyard.v1.ReadCheckpointResponse> readCheckpoint(
        dev.taskyard.v1.ReadCheckpointRequest request) {
      return io.grpc.stub.ClientCalls.blockingServerStreamingCall(
          getChannel(), getReadCheckpointMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Lists audit events, newest first.  Filter fields: event_type, actor.type, actor.id,
     * resource, time.
     * Errors: INVALID_ARGUMENT (FILTER_INVALID, PAGE_TOKEN_INVALID).
     * </pre>
     */
    public dev.taskyard.v1.ListAuditEventsResponse listAuditEvents(dev.taskyard.v1.ListAuditEventsRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getListAuditEventsMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do ListenableFuture-style rpc calls to service TaskService.
   * <pre>
   * Tasks, their runs, logs, checkpoints, statistics and audit trail.
   * </pre>
   */
  public static final class TaskServiceFutureStub
      extends io.grpc.stub.AbstractFutureStub<TaskServiceFutureStub> {
    private TaskServiceFutureStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected TaskServiceFutureStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new TaskServiceFutureStub(channel, callOptions);
    }

    /**
     * <pre>
     * Creates a task in PENDING, or claimed already and SCHEDULED if a runner had a place for it.  Safe to
     * repeat with the same request_id or task_id.
     * Errors: NOT_FOUND (NOT_FOUND: tenant, a task or group of spec.after, a limit, or an entity that must exist;
     * TASK_TYPE_UNKNOWN); ALREADY_EXISTS (ALREADY_EXISTS:
     * id, REQUEST_ID_REUSED); INVALID_ARGUMENT (FIELD_INVALID, PAYLOAD_SCHEMA_VIOLATION,
     * TOO_LARGE); FAILED_PRECONDITION (TASK_TYPE_DISABLED, TENANT_SUSPENDED, GROUP_CLOSED);
     * RESOURCE_EXHAUSTED (QUEUE_DEPTH_EXCEEDED, RATE_LIMITED, SLOT_QUEUE_FULL,
     * PLACEMENT_CLASS_LIMIT, STORAGE_QUOTA_EXCEEDED).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.CreateTaskResponse> createTask(
        dev.taskyard.v1.CreateTaskRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getCreateTaskMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Creates up to 1000 tasks in one transaction (ATOMIC) or independently (PER_ITEM).  Safe
     * to repeat when every item has a request_id or task_id.
     * Errors: as CreateTask; INVALID_ARGUMENT/BATCH_TOO_LARGE.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.BatchCreateTasksResponse> batchCreateTasks(
        dev.taskyard.v1.BatchCreateTasksRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getBatchCreateTasksMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Returns a task, archived ones included.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.GetTaskResponse> getTask(
        dev.taskyard.v1.GetTaskRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getGetTaskMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Returns up to 1000 tasks in the order asked for.  A response has at most 3.5 MB, unless one
     * task alone is larger.
     * Errors: NOT_FOUND if any is missing, unless allow_missing; INVALID_ARGUMENT
     * (BATCH_TOO_LARGE: more than 1000 names, or more bytes; ask for fewer names or view BASIC).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.BatchGetTasksResponse> batchGetTasks(
        dev.taskyard.v1.BatchGetTasksRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getBatchGetTasksMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Lists tasks.  parent "tenants/-" lists over all tenants the caller may see.
     * Errors: INVALID_ARGUMENT (FILTER_INVALID, ORDER_BY_INVALID, PAGE_TOKEN_INVALID).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.ListTasksResponse> listTasks(
        dev.taskyard.v1.ListTasksRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getListTasksMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Changes labels, annotations and the mutable part of the spec.  Always mutable:
     * metadata.labels, metadata.annotations, spec.callback, spec.retention.  While PENDING or
     * PAUSED: spec.priority too.  While PENDING or PAUSED and never started: every spec field
     * but task_type, slot and entity.  Status is never writable here.  Safe to repeat with a
     * resource_version.
     * Errors: NOT_FOUND; INVALID_ARGUMENT (FIELD_INVALID, FIELD_IMMUTABLE, TOO_LARGE,
     * PAYLOAD_SCHEMA_VIOLATION); ABORTED (RESOURCE_VERSION_MISMATCH); FAILED_PRECONDITION
     * (PHASE_CONFLICT).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.UpdateTaskResponse> updateTask(
        dev.taskyard.v1.UpdateTaskRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getUpdateTaskMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Deletes an ended task with its runs, logs and checkpoints; the audit trail stays.  Safe to
     * repeat with allow_missing.
     * Errors: NOT_FOUND; ABORTED (RESOURCE_VERSION_MISMATCH); FAILED_PRECONDITION
     * (PHASE_CONFLICT: it is live, cancel it first; DELETION_PROTECTED: by its task type).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.DeleteTaskResponse> deleteTask(
        dev.taskyard.v1.DeleteTaskRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getDeleteTaskMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Asks for cancellation; returns at once.  Idempotent: OK on a CANCELLED task.  Once it
     * is acknowledged no new attempt starts.
     * Errors: NOT_FOUND; FAILED_PRECONDITION (TASK_TERMINAL); ABORTED
     * (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.CancelTaskResponse> cancelTask(
        dev.taskyard.v1.CancelTaskRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getCancelTaskMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Cancels up to 1000 tasks, by name or by filter, each on its own.  Idempotent.
     * Errors: INVALID_ARGUMENT (BATCH_TOO_LARGE, FILTER_INVALID).  Per task as CancelTask.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.BatchCancelTasksResponse> batchCancelTasks(
        dev.taskyard.v1.BatchCancelTasksRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getBatchCancelTasksMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Asks for a pause: the holder checkpoints if it can and gives the lease back.
     * Idempotent: OK on a PAUSED task.
     * Errors: NOT_FOUND; FAILED_PRECONDITION (TASK_TERMINAL, PHASE_CONFLICT: external, or being
     * cancelled); ABORTED (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.PauseTaskResponse> pauseTask(
        dev.taskyard.v1.PauseTaskRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getPauseTaskMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * PAUSED -&gt; PENDING; also withdraws a pause that has not taken effect yet.  Idempotent: OK
     * on a live task that is not paused.
     * Errors: NOT_FOUND; FAILED_PRECONDITION (TASK_TERMINAL); ABORTED
     * (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.ResumeTaskResponse> resumeTask(
        dev.taskyard.v1.ResumeTaskRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getResumeTaskMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Terminal and not SUCCEEDED -&gt; PENDING, with fresh retry budgets.  The tasks of spec.after are
     * judged anew: the task waits for those that have not ended, and one that ended otherwise than
     * its condition requires refuses the retry.  Safe to repeat with a request_id or a
     * resource_version.
     * Errors: NOT_FOUND; FAILED_PRECONDITION (PHASE_CONFLICT, TASK_TYPE_DISABLED,
     * TENANT_SUSPENDED); RESOURCE_EXHAUSTED (QUEUE_DEPTH_EXCEEDED, SLOT_QUEUE_FULL);
     * ALREADY_EXISTS (REQUEST_ID_REUSED); ABORTED (RESOURCE_VERSION_MISMATCH).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.RetryTaskResponse> retryTask(
        dev.taskyard.v1.RetryTaskRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getRetryTaskMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Retries up to 1000 tasks, by name or by filter, each on its own.  A repeat finds them
     * live and returns PHASE_CONFLICT per task.
     * Errors: INVALID_ARGUMENT (BATCH_TOO_LARGE, FILTER_INVALID).  Per task as RetryTask.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.BatchRetryTasksResponse> batchRetryTasks(
        dev.taskyard.v1.BatchRetryTasksRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getBatchRetryTasksMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Takes up to 1000 leased tasks, by name or by filter, from their holders and queues them
     * again, each on its own: for tasks that hang although their runner is alive.  Uses up a runner
     * loss, no retry; `reason` becomes status.error.message.  For work that must not overlap the
     * holder is asked to stop the run (status.requested_action RESET); the task is queued when it
     * has, or once its lease has expired.  A repeat finds them waiting and returns PHASE_CONFLICT
     * per task.
     * Errors: INVALID_ARGUMENT (BATCH_TOO_LARGE, FILTER_INVALID).  Per task: NOT_FOUND;
     * FAILED_PRECONDITION (PHASE_CONFLICT: no lease, or being cancelled).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.BatchResetTasksResponse> batchResetTasks(
        dev.taskyard.v1.BatchResetTasksRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getBatchResetTasksMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Owner of an external task (spec.execution.external) reports status.  With `enqueue` the
     * report is stored durably and applied later, per task in order, and only NOT_FOUND is
     * answered at once.  Safe to repeat with a request_id.
     * Errors: NOT_FOUND; FAILED_PRECONDITION (PHASE_CONFLICT: not external, or not a
     * transition; TASK_TERMINAL); ALREADY_EXISTS (REQUEST_ID_REUSED); ABORTED
     * (RESOURCE_VERSION_MISMATCH); INVALID_ARGUMENT (TOO_LARGE: details).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.ReportTaskStatusResponse> reportTaskStatus(
        dev.taskyard.v1.ReportTaskStatusRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getReportTaskStatusMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Waits until the task is terminal (or past a version) or the time is up, then returns
     * its current state; running out of time is not an error.  A wait counts as an open stream
     * of the tenant.
     * Errors: NOT_FOUND; RESOURCE_EXHAUSTED (STREAM_LIMIT).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.WaitTaskResponse> waitTask(
        dev.taskyard.v1.WaitTaskRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getWaitTaskMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Returns whether a fencing token (TASKYARD_FENCE of a run) is still the current one, so
     * that a workload can guard its own side effects.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.CheckFenceResponse> checkFence(
        dev.taskyard.v1.CheckFenceRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getCheckFenceMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Lists the runs of a task, newest first.
     * Errors: NOT_FOUND; INVALID_ARGUMENT (PAGE_TOKEN_INVALID).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.ListTaskRunsResponse> listTaskRuns(
        dev.taskyard.v1.ListTaskRunsRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getListTaskRunsMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Lists log entries in (generation, sequence) order.
     * Errors: NOT_FOUND; INVALID_ARGUMENT (PAGE_TOKEN_INVALID).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.ListTaskLogsResponse> listTaskLogs(
        dev.taskyard.v1.ListTaskLogsRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getListTaskLogsMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Counts and durations.
     * Errors: INVALID_ARGUMENT (FILTER_INVALID).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.GetTaskStatsResponse> getTaskStats(
        dev.taskyard.v1.GetTaskStatsRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getGetTaskStatsMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Counts and waiting times of each minute, for charts.  A minute without changes has no
     * point.  Kept for two days.
     * Errors: INVALID_ARGUMENT (FIELD_INVALID).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.GetTaskSeriesResponse> getTaskSeries(
        dev.taskyard.v1.GetTaskSeriesRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getGetTaskSeriesMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Lists checkpoints, newest first.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.ListCheckpointsResponse> listCheckpoints(
        dev.taskyard.v1.ListCheckpointsRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getListCheckpointsMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Lists audit events, newest first.  Filter fields: event_type, actor.type, actor.id,
     * resource, time.
     * Errors: INVALID_ARGUMENT (FILTER_INVALID, PAGE_TOKEN_INVALID).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.ListAuditEventsResponse> listAuditEvents(
        dev.taskyard.v1.ListAuditEventsRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getListAuditEventsMethod(), getCallOptions()), request);
    }
  }

  private static final int METHODID_CREATE_TASK = 0;
  private static final int METHODID_BATCH_CREATE_TASKS = 1;
  private static final int METHODID_GET_TASK = 2;
  private static final int METHODID_BATCH_GET_TASKS = 3;
  private static final int METHODID_LIST_TASKS = 4;
  private static final int METHODID_UPDATE_TASK = 5;
  private static final int METHODID_DELETE_TASK = 6;
  private static final int METHODID_CANCEL_TASK = 7;
  private static final int METHODID_BATCH_CANCEL_TASKS = 8;
  private static final int METHODID_PAUSE_TASK = 9;
  private static final int METHODID_RESUME_TASK = 10;
  private static final int METHODID_RETRY_TASK = 11;
  private static final int METHODID_BATCH_RETRY_TASKS = 12;
  private static final int METHODID_BATCH_RESET_TASKS = 13;
  private static final int METHODID_REPORT_TASK_STATUS = 14;
  private static final int METHODID_WAIT_TASK = 15;
  private static final int METHODID_CHECK_FENCE = 16;
  private static final int METHODID_WATCH_TASKS = 17;
  private static final int METHODID_LIST_TASK_RUNS = 18;
  private static final int METHODID_LIST_TASK_LOGS = 19;
  private static final int METHODID_TAIL_TASK_LOGS = 20;
  private static final int METHODID_GET_TASK_STATS = 21;
  private static final int METHODID_GET_TASK_SERIES = 22;
  private static final int METHODID_LIST_CHECKPOINTS = 23;
  private static final int METHODID_READ_CHECKPOINT = 24;
  private static final int METHODID_LIST_AUDIT_EVENTS = 25;

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
        case METHODID_CREATE_TASK:
          serviceImpl.createTask((dev.taskyard.v1.CreateTaskRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.CreateTaskResponse>) responseObserver);
          break;
        case METHODID_BATCH_CREATE_TASKS:
          serviceImpl.batchCreateTasks((dev.taskyard.v1.BatchCreateTasksRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.BatchCreateTasksResponse>) responseObserver);
          break;
        case METHODID_GET_TASK:
          serviceImpl.getTask((dev.taskyard.v1.GetTaskRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.GetTaskResponse>) responseObserver);
          break;
        case METHODID_BATCH_GET_TASKS:
          serviceImpl.batchGetTasks((dev.taskyard.v1.BatchGetTasksRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.BatchGetTasksResponse>) responseObserver);
          break;
        case METHODID_LIST_TASKS:
          serviceImpl.listTasks((dev.taskyard.v1.ListTasksRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.ListTasksResponse>) responseObserver);
          break;
        case METHODID_UPDATE_TASK:
          serviceImpl.updateTask((dev.taskyard.v1.UpdateTaskRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.UpdateTaskResponse>) responseObserver);
          break;
        case METHODID_DELETE_TASK:
          serviceImpl.deleteTask((dev.taskyard.v1.DeleteTaskRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.DeleteTaskResponse>) responseObserver);
          break;
        case METHODID_CANCEL_TASK:
          serviceImpl.cancelTask((dev.taskyard.v1.CancelTaskRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.CancelTaskResponse>) responseObserver);
          break;
        case METHODID_BATCH_CANCEL_TASKS:
          serviceImpl.batchCancelTasks((dev.taskyard.v1.BatchCancelTasksRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.BatchCancelTasksResponse>) responseObserver);
          break;
        case METHODID_PAUSE_TASK:
          serviceImpl.pauseTask((dev.taskyard.v1.PauseTaskRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.PauseTaskResponse>) responseObserver);
          break;
        case METHODID_RESUME_TASK:
          serviceImpl.resumeTask((dev.taskyard.v1.ResumeTaskRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.ResumeTaskResponse>) responseObserver);
          break;
        case METHODID_RETRY_TASK:
          serviceImpl.retryTask((dev.taskyard.v1.RetryTaskRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.RetryTaskResponse>) responseObserver);
          break;
        case METHODID_BATCH_RETRY_TASKS:
          serviceImpl.batchRetryTasks((dev.taskyard.v1.BatchRetryTasksRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.BatchRetryTasksResponse>) responseObserver);
          break;
        case METHODID_BATCH_RESET_TASKS:
          serviceImpl.batchResetTasks((dev.taskyard.v1.BatchResetTasksRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.BatchResetTasksResponse>) responseObserver);
          break;
        case METHODID_REPORT_TASK_STATUS:
          serviceImpl.reportTaskStatus((dev.taskyard.v1.ReportTaskStatusRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.ReportTaskStatusResponse>) responseObserver);
          break;
        case METHODID_WAIT_TASK:
          serviceImpl.waitTask((dev.taskyard.v1.WaitTaskRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.WaitTaskResponse>) responseObserver);
          break;
        case METHODID_CHECK_FENCE:
          serviceImpl.checkFence((dev.taskyard.v1.CheckFenceRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.CheckFenceResponse>) responseObserver);
          break;
        case METHODID_WATCH_TASKS:
          serviceImpl.watchTasks((dev.taskyard.v1.WatchTasksRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.WatchTasksResponse>) responseObserver);
          break;
        case METHODID_LIST_TASK_RUNS:
          serviceImpl.listTaskRuns((dev.taskyard.v1.ListTaskRunsRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.ListTaskRunsResponse>) responseObserver);
          break;
        case METHODID_LIST_TASK_LOGS:
          serviceImpl.listTaskLogs((dev.taskyard.v1.ListTaskLogsRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.ListTaskLogsResponse>) responseObserver);
          break;
        case METHODID_TAIL_TASK_LOGS:
          serviceImpl.tailTaskLogs((dev.taskyard.v1.TailTaskLogsRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.TailTaskLogsResponse>) responseObserver);
          break;
        case METHODID_GET_TASK_STATS:
          serviceImpl.getTaskStats((dev.taskyard.v1.GetTaskStatsRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.GetTaskStatsResponse>) responseObserver);
          break;
        case METHODID_GET_TASK_SERIES:
          serviceImpl.getTaskSeries((dev.taskyard.v1.GetTaskSeriesRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.GetTaskSeriesResponse>) responseObserver);
          break;
        case METHODID_LIST_CHECKPOINTS:
          serviceImpl.listCheckpoints((dev.taskyard.v1.ListCheckpointsRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.ListCheckpointsResponse>) responseObserver);
          break;
        case METHODID_READ_CHECKPOINT:
          serviceImpl.readCheckpoint((dev.taskyard.v1.ReadCheckpointRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.ReadCheckpointResponse>) responseObserver);
          break;
        case METHODID_LIST_AUDIT_EVENTS:
          serviceImpl.listAuditEvents((dev.taskyard.v1.ListAuditEventsRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.ListAuditEventsResponse>) responseObserver);
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
          getCreateTaskMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.CreateTaskRequest,
              dev.taskyard.v1.CreateTaskResponse>(
                service, METHODID_CREATE_TASK)))
        .addMethod(
          getBatchCreateTasksMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.BatchCreateTasksRequest,
              dev.taskyard.v1.BatchCreateTasksResponse>(
                service, METHODID_BATCH_CREATE_TASKS)))
        .addMethod(
          getGetTaskMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.GetTaskRequest,
              dev.taskyard.v1.GetTaskResponse>(
                service, METHODID_GET_TASK)))
        .addMethod(
          getBatchGetTasksMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.BatchGetTasksRequest,
              dev.taskyard.v1.BatchGetTasksResponse>(
                service, METHODID_BATCH_GET_TASKS)))
        .addMethod(
          getListTasksMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.ListTasksRequest,
              dev.taskyard.v1.ListTasksResponse>(
                service, METHODID_LIST_TASKS)))
        .addMethod(
          getUpdateTaskMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.UpdateTaskRequest,
              dev.taskyard.v1.UpdateTaskResponse>(
                service, METHODID_UPDATE_TASK)))
        .addMethod(
          getDeleteTaskMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.DeleteTaskRequest,
              dev.taskyard.v1.DeleteTaskResponse>(
                service, METHODID_DELETE_TASK)))
        .addMethod(
          getCancelTaskMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.CancelTaskRequest,
              dev.taskyard.v1.CancelTaskResponse>(
                service, METHODID_CANCEL_TASK)))
        .addMethod(
          getBatchCancelTasksMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.BatchCancelTasksRequest,
              dev.taskyard.v1.BatchCancelTasksResponse>(
                service, METHODID_BATCH_CANCEL_TASKS)))
        .addMethod(
          getPauseTaskMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.PauseTaskRequest,
              dev.taskyard.v1.PauseTaskResponse>(
                service, METHODID_PAUSE_TASK)))
        .addMethod(
          getResumeTaskMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.ResumeTaskRequest,
              dev.taskyard.v1.ResumeTaskResponse>(
                service, METHODID_RESUME_TASK)))
        .addMethod(
          getRetryTaskMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.RetryTaskRequest,
              dev.taskyard.v1.RetryTaskResponse>(
                service, METHODID_RETRY_TASK)))
        .addMethod(
          getBatchRetryTasksMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.BatchRetryTasksRequest,
              dev.taskyard.v1.BatchRetryTasksResponse>(
                service, METHODID_BATCH_RETRY_TASKS)))
        .addMethod(
          getBatchResetTasksMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.BatchResetTasksRequest,
              dev.taskyard.v1.BatchResetTasksResponse>(
                service, METHODID_BATCH_RESET_TASKS)))
        .addMethod(
          getReportTaskStatusMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.ReportTaskStatusRequest,
              dev.taskyard.v1.ReportTaskStatusResponse>(
                service, METHODID_REPORT_TASK_STATUS)))
        .addMethod(
          getWaitTaskMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.WaitTaskRequest,
              dev.taskyard.v1.WaitTaskResponse>(
                service, METHODID_WAIT_TASK)))
        .addMethod(
          getCheckFenceMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.CheckFenceRequest,
              dev.taskyard.v1.CheckFenceResponse>(
                service, METHODID_CHECK_FENCE)))
        .addMethod(
          getWatchTasksMethod(),
          io.grpc.stub.ServerCalls.asyncServerStreamingCall(
            new MethodHandlers<
              dev.taskyard.v1.WatchTasksRequest,
              dev.taskyard.v1.WatchTasksResponse>(
                service, METHODID_WATCH_TASKS)))
        .addMethod(
          getListTaskRunsMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.ListTaskRunsRequest,
              dev.taskyard.v1.ListTaskRunsResponse>(
                service, METHODID_LIST_TASK_RUNS)))
        .addMethod(
          getListTaskLogsMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.ListTaskLogsRequest,
              dev.taskyard.v1.ListTaskLogsResponse>(
                service, METHODID_LIST_TASK_LOGS)))
        .addMethod(
          getTailTaskLogsMethod(),
          io.grpc.stub.ServerCalls.asyncServerStreamingCall(
            new MethodHandlers<
              dev.taskyard.v1.TailTaskLogsRequest,
              dev.taskyard.v1.TailTaskLogsResponse>(
                service, METHODID_TAIL_TASK_LOGS)))
        .addMethod(
          getGetTaskStatsMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.GetTaskStatsRequest,
              dev.taskyard.v1.GetTaskStatsResponse>(
                service, METHODID_GET_TASK_STATS)))
        .addMethod(
          getGetTaskSeriesMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.GetTaskSeriesRequest,
              dev.taskyard.v1.GetTaskSeriesResponse>(
                service, METHODID_GET_TASK_SERIES)))
        .addMethod(
          getListCheckpointsMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.ListCheckpointsRequest,
              dev.taskyard.v1.ListCheckpointsResponse>(
                service, METHODID_LIST_CHECKPOINTS)))
        .addMethod(
          getReadCheckpointMethod(),
          io.grpc.stub.ServerCalls.asyncServerStreamingCall(
            new MethodHandlers<
              dev.taskyard.v1.ReadCheckpointRequest,
              dev.taskyard.v1.ReadCheckpointResponse>(
                service, METHODID_READ_CHECKPOINT)))
        .addMethod(
          getListAuditEventsMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.ListAuditEventsRequest,
              dev.taskyard.v1.ListAuditEventsResponse>(
                service, METHODID_LIST_AUDIT_EVENTS)))
        .build();
  }

  private static volatile io.grpc.ServiceDescriptor serviceDescriptor;

  public static io.grpc.ServiceDescriptor getServiceDescriptor() {
    io.grpc.ServiceDescriptor result = serviceDescriptor;
    if (result == null) {
      synchronized (TaskServiceGrpc.class) {
        result = serviceDescriptor;
        if (result == null) {
          serviceDescriptor = result = io.grpc.ServiceDescriptor.newBuilder(SERVICE_NAME)
              .addMethod(getCreateTaskMethod())
              .addMethod(getBatchCreateTasksMethod())
              .addMethod(getGetTaskMethod())
              .addMethod(getBatchGetTasksMethod())
              .addMethod(getListTasksMethod())
              .addMethod(getUpdateTaskMethod())
              .addMethod(getDeleteTaskMethod())
              .addMethod(getCancelTaskMethod())
              .addMethod(getBatchCancelTasksMethod())
              .addMethod(getPauseTaskMethod())
              .addMethod(getResumeTaskMethod())
              .addMethod(getRetryTaskMethod())
              .addMethod(getBatchRetryTasksMethod())
              .addMethod(getBatchResetTasksMethod())
              .addMethod(getReportTaskStatusMethod())
              .addMethod(getWaitTaskMethod())
              .addMethod(getCheckFenceMethod())
              .addMethod(getWatchTasksMethod())
              .addMethod(getListTaskRunsMethod())
              .addMethod(getListTaskLogsMethod())
              .addMethod(getTailTaskLogsMethod())
              .addMethod(getGetTaskStatsMethod())
              .addMethod(getGetTaskSeriesMethod())
              .addMethod(getListCheckpointsMethod())
              .addMethod(getReadCheckpointMethod())
              .addMethod(getListAuditEventsMethod())
              .build();
        }
      }
    }
    return result;
  }
}
