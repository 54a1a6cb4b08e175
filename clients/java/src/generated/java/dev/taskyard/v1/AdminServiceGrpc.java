package dev.taskyard.v1;

import static io.grpc.MethodDescriptor.generateFullMethodName;

/**
 * <pre>
 * Health of the data.  Administrators only.  Served by taskdb.
 * </pre>
 */
@io.grpc.stub.annotations.GrpcGenerated
public final class AdminServiceGrpc {

  private AdminServiceGrpc() {}

  public static final java.lang.String SERVICE_NAME = "taskyard.v1.AdminService";

  // Static method descriptors that strictly reflect the proto.
  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.GetSystemStatusRequest,
      dev.taskyard.v1.GetSystemStatusResponse> getGetSystemStatusMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "GetSystemStatus",
      requestType = dev.taskyard.v1.GetSystemStatusRequest.class,
      responseType = dev.taskyard.v1.GetSystemStatusResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.GetSystemStatusRequest,
      dev.taskyard.v1.GetSystemStatusResponse> getGetSystemStatusMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.GetSystemStatusRequest, dev.taskyard.v1.GetSystemStatusResponse> getGetSystemStatusMethod;
    if ((getGetSystemStatusMethod = AdminServiceGrpc.getGetSystemStatusMethod) == null) {
      synchronized (AdminServiceGrpc.class) {
        if ((getGetSystemStatusMethod = AdminServiceGrpc.getGetSystemStatusMethod) == null) {
          AdminServiceGrpc.getGetSystemStatusMethod = getGetSystemStatusMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.GetSystemStatusRequest, dev.taskyard.v1.GetSystemStatusResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "GetSystemStatus"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.GetSystemStatusRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.GetSystemStatusResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getGetSystemStatusMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.RunDoctorRequest,
      dev.taskyard.v1.RunDoctorResponse> getRunDoctorMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "RunDoctor",
      requestType = dev.taskyard.v1.RunDoctorRequest.class,
      responseType = dev.taskyard.v1.RunDoctorResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.RunDoctorRequest,
      dev.taskyard.v1.RunDoctorResponse> getRunDoctorMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.RunDoctorRequest, dev.taskyard.v1.RunDoctorResponse> getRunDoctorMethod;
    if ((getRunDoctorMethod = AdminServiceGrpc.getRunDoctorMethod) == null) {
      synchronized (AdminServiceGrpc.class) {
        if ((getRunDoctorMethod = AdminServiceGrpc.getRunDoctorMethod) == null) {
          AdminServiceGrpc.getRunDoctorMethod = getRunDoctorMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.RunDoctorRequest, dev.taskyard.v1.RunDoctorResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "RunDoctor"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.RunDoctorRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.RunDoctorResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getRunDoctorMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.ListQuarantinesRequest,
      dev.taskyard.v1.ListQuarantinesResponse> getListQuarantinesMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ListQuarantines",
      requestType = dev.taskyard.v1.ListQuarantinesRequest.class,
      responseType = dev.taskyard.v1.ListQuarantinesResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.ListQuarantinesRequest,
      dev.taskyard.v1.ListQuarantinesResponse> getListQuarantinesMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.ListQuarantinesRequest, dev.taskyard.v1.ListQuarantinesResponse> getListQuarantinesMethod;
    if ((getListQuarantinesMethod = AdminServiceGrpc.getListQuarantinesMethod) == null) {
      synchronized (AdminServiceGrpc.class) {
        if ((getListQuarantinesMethod = AdminServiceGrpc.getListQuarantinesMethod) == null) {
          AdminServiceGrpc.getListQuarantinesMethod = getListQuarantinesMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.ListQuarantinesRequest, dev.taskyard.v1.ListQuarantinesResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ListQuarantines"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ListQuarantinesRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ListQuarantinesResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getListQuarantinesMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.ReleaseQuarantineRequest,
      dev.taskyard.v1.ReleaseQuarantineResponse> getReleaseQuarantineMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ReleaseQuarantine",
      requestType = dev.taskyard.v1.ReleaseQuarantineRequest.class,
      responseType = dev.taskyard.v1.ReleaseQuarantineResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.ReleaseQuarantineRequest,
      dev.taskyard.v1.ReleaseQuarantineResponse> getReleaseQuarantineMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.ReleaseQuarantineRequest, dev.taskyard.v1.ReleaseQuarantineResponse> getReleaseQuarantineMethod;
    if ((getReleaseQuarantineMethod = AdminServiceGrpc.getReleaseQuarantineMethod) == null) {
      synchronized (AdminServiceGrpc.class) {
        if ((getReleaseQuarantineMethod = AdminServiceGrpc.getReleaseQuarantineMethod) == null) {
          AdminServiceGrpc.getReleaseQuarantineMethod = getReleaseQuarantineMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.ReleaseQuarantineRequest, dev.taskyard.v1.ReleaseQuarantineResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ReleaseQuarantine"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ReleaseQuarantineRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ReleaseQuarantineResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getReleaseQuarantineMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.GetWebhookSecretRequest,
      dev.taskyard.v1.GetWebhookSecretResponse> getGetWebhookSecretMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "GetWebhookSecret",
      requestType = dev.taskyard.v1.GetWebhookSecretRequest.class,
      responseType = dev.taskyard.v1.GetWebhookSecretResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.GetWebhookSecretRequest,
      dev.taskyard.v1.GetWebhookSecretResponse> getGetWebhookSecretMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.GetWebhookSecretRequest, dev.taskyard.v1.GetWebhookSecretResponse> getGetWebhookSecretMethod;
    if ((getGetWebhookSecretMethod = AdminServiceGrpc.getGetWebhookSecretMethod) == null) {
      synchronized (AdminServiceGrpc.class) {
        if ((getGetWebhookSecretMethod = AdminServiceGrpc.getGetWebhookSecretMethod) == null) {
          AdminServiceGrpc.getGetWebhookSecretMethod = getGetWebhookSecretMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.GetWebhookSecretRequest, dev.taskyard.v1.GetWebhookSecretResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "GetWebhookSecret"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.GetWebhookSecretRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.GetWebhookSecretResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getGetWebhookSecretMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.ListWebhookDeliveriesRequest,
      dev.taskyard.v1.ListWebhookDeliveriesResponse> getListWebhookDeliveriesMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ListWebhookDeliveries",
      requestType = dev.taskyard.v1.ListWebhookDeliveriesRequest.class,
      responseType = dev.taskyard.v1.ListWebhookDeliveriesResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.ListWebhookDeliveriesRequest,
      dev.taskyard.v1.ListWebhookDeliveriesResponse> getListWebhookDeliveriesMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.ListWebhookDeliveriesRequest, dev.taskyard.v1.ListWebhookDeliveriesResponse> getListWebhookDeliveriesMethod;
    if ((getListWebhookDeliveriesMethod = AdminServiceGrpc.getListWebhookDeliveriesMethod) == null) {
      synchronized (AdminServiceGrpc.class) {
        if ((getListWebhookDeliveriesMethod = AdminServiceGrpc.getListWebhookDeliveriesMethod) == null) {
          AdminServiceGrpc.getListWebhookDeliveriesMethod = getListWebhookDeliveriesMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.ListWebhookDeliveriesRequest, dev.taskyard.v1.ListWebhookDeliveriesResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ListWebhookDeliveries"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ListWebhookDeliveriesRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ListWebhookDeliveriesResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getListWebhookDeliveriesMethod;
  }

  /**
   * Creates a new async stub that supports all call types for the service
   */
  public static AdminServiceStub newStub(io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<AdminServiceStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<AdminServiceStub>() {
        @java.lang.Override
        public AdminServiceStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new AdminServiceStub(channel, callOptions);
        }
      };
    return AdminServiceStub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports all types of calls on the service
   */
  public static AdminServiceBlockingV2Stub newBlockingV2Stub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<AdminServiceBlockingV2Stub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<AdminServiceBlockingV2Stub>() {
        @java.lang.Override
        public AdminServiceBlockingV2Stub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new AdminServiceBlockingV2Stub(channel, callOptions);
        }
      };
    return AdminServiceBlockingV2Stub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports unary and streaming output calls on the service
   */
  public static AdminServiceBlockingStub newBlockingStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<AdminServiceBlockingStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<AdminServiceBlockingStub>() {
        @java.lang.Override
        public AdminServiceBlockingStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new AdminServiceBlockingStub(channel, callOptions);
        }
      };
    return AdminServiceBlockingStub.newStub(factory, channel);
  }

  /**
   * Creates a new ListenableFuture-style stub that supports unary calls on the service
   */
  public static AdminServiceFutureStub newFutureStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<AdminServiceFutureStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<AdminServiceFutureStub>() {
        @java.lang.Override
        public AdminServiceFutureStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new AdminServiceFutureStub(channel, callOptions);
        }
      };
    return AdminServiceFutureStub.newStub(factory, channel);
  }

  /**
   * <pre>
   * Health of the data.  Administrators only.  Served by taskdb.
   * </pre>
   */
  public interface AsyncService {

    /**
     * <pre>
     * Returns whether work can proceed, and what it depends on: runners, database, disk, leader,
     * replication, and the age of the oldest waiting task.  While the database is away it fails
     * like every call, with UNAVAILABLE.  Safe to repeat.
     * Errors: none.
     * </pre>
     */
    default void getSystemStatus(dev.taskyard.v1.GetSystemStatusRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.GetSystemStatusResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getGetSystemStatusMethod(), responseObserver);
    }

    /**
     * <pre>
     * Recomputes the invariants, and repairs what can safely be repaired when asked to.  May take
     * as long as the jobs and webhooks that it has run and sent.  Safe to repeat.
     * Errors: INVALID_ARGUMENT (FIELD_INVALID: unknown check).
     * </pre>
     */
    default void runDoctor(dev.taskyard.v1.RunDoctorRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.RunDoctorResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getRunDoctorMethod(), responseObserver);
    }

    /**
     * <pre>
     * Lists specs that are quarantined because they crashed too many runners.
     * Errors: INVALID_ARGUMENT (PAGE_TOKEN_INVALID).
     * </pre>
     */
    default void listQuarantines(dev.taskyard.v1.ListQuarantinesRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ListQuarantinesResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getListQuarantinesMethod(), responseObserver);
    }

    /**
     * <pre>
     * Lets a quarantined spec run again.  Idempotent.
     * Errors: NOT_FOUND.
     * </pre>
     */
    default void releaseQuarantine(dev.taskyard.v1.ReleaseQuarantineRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ReleaseQuarantineResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getReleaseQuarantineMethod(), responseObserver);
    }

    /**
     * <pre>
     * Returns the secret that a tenant's webhooks are signed with (Standard Webhooks); it is created
     * when it is first requested.  Also for the tenant's own keys that may write.  Without
     * `rotate` safe to repeat.
     * Errors: NOT_FOUND.
     * </pre>
     */
    default void getWebhookSecret(dev.taskyard.v1.GetWebhookSecretRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.GetWebhookSecretResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getGetWebhookSecretMethod(), responseObserver);
    }

    /**
     * <pre>
     * Lists the webhook calls that are not delivered yet, oldest first.  A delivered call is
     * removed; one that was given up is an audit event (webhook.given_up).  Also for a tenant's keys.
     * Errors: NOT_FOUND; INVALID_ARGUMENT (PAGE_TOKEN_INVALID).
     * </pre>
     */
    default void listWebhookDeliveries(dev.taskyard.v1.ListWebhookDeliveriesRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ListWebhookDeliveriesResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getListWebhookDeliveriesMethod(), responseObserver);
    }
  }

  /**
   * Base class for the server implementation of the service AdminService.
   * <pre>
   * Health of the data.  Administrators only.  Served by taskdb.
   * </pre>
   */
  public static abstract class AdminServiceImplBase
      implements io.grpc.BindableService, AsyncService {

    @java.lang.Override public final io.grpc.ServerServiceDefinition bindService() {
      return AdminServiceGrpc.bindService(this);
    }
  }

  /**
   * A stub to allow clients to do asynchronous rpc calls to service AdminService.
   * <pre>
   * Health of the data.  Administrators only.  Served by taskdb.
   * </pre>
   */
  public static final class AdminServiceStub
      extends io.grpc.stub.AbstractAsyncStub<AdminServiceStub> {
    private AdminServiceStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected AdminServiceStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new AdminServiceStub(channel, callOptions);
    }

    /**
     * <pre>
     * Returns whether work can proceed, and what it depends on: runners, database, disk, leader,
     * replication, and the age of the oldest waiting task.  While the database is away it fails
     * like every call, with UNAVAILABLE.  Safe to repeat.
     * Errors: none.
     * </pre>
     */
    public void getSystemStatus(dev.taskyard.v1.GetSystemStatusRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.GetSystemStatusResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getGetSystemStatusMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Recomputes the invariants, and repairs what can safely be repaired when asked to.  May take
     * as long as the jobs and webhooks that it has run and sent.  Safe to repeat.
     * Errors: INVALID_ARGUMENT (FIELD_INVALID: unknown check).
     * </pre>
     */
    public void runDoctor(dev.taskyard.v1.RunDoctorRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.RunDoctorResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getRunDoctorMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Lists specs that are quarantined because they crashed too many runners.
     * Errors: INVALID_ARGUMENT (PAGE_TOKEN_INVALID).
     * </pre>
     */
    public void listQuarantines(dev.taskyard.v1.ListQuarantinesRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ListQuarantinesResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getListQuarantinesMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Lets a quarantined spec run again.  Idempotent.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public void releaseQuarantine(dev.taskyard.v1.ReleaseQuarantineRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ReleaseQuarantineResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getReleaseQuarantineMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Returns the secret that a tenant's webhooks are signed with (Standard Webhooks); it is created
     * when it is first requested.  Also for the tenant's own keys that may write.  Without
     * `rotate` safe to repeat.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public void getWebhookSecret(dev.taskyard.v1.GetWebhookSecretRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.GetWebhookSecretResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getGetWebhookSecretMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Lists the webhook calls that are not delivered yet, oldest first.  A delivered call is
     * removed; one that was given up is an audit event (webhook.given_up).  Also for a tenant's keys.
     * Errors: NOT_FOUND; INVALID_ARGUMENT (PAGE_TOKEN_INVALID).
     * </pre>
     */
    public void listWebhookDeliveries(dev.taskyard.v1.ListWebhookDeliveriesRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ListWebhookDeliveriesResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getListWebhookDeliveriesMethod(), getCallOptions()), request, responseObserver);
    }
  }

  /**
   * A stub to allow clients to do synchronous rpc calls to service AdminService.
   * <pre>
   * Health of the data.  Administrators only.  Served by taskdb.
   * </pre>
   */
  public static final class AdminServiceBlockingV2Stub
      extends io.grpc.stub.AbstractBlockingStub<AdminServiceBlockingV2Stub> {
    private AdminServiceBlockingV2Stub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected AdminServiceBlockingV2Stub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new AdminServiceBlockingV2Stub(channel, callOptions);
    }

    /**
     * <pre>
     * Returns whether work can proceed, and what it depends on: runners, database, disk, leader,
     * replication, and the age of the oldest waiting task.  While the database is away it fails
     * like every call, with UNAVAILABLE.  Safe to repeat.
     * Errors: none.
     * </pre>
     */
    public dev.taskyard.v1.GetSystemStatusResponse getSystemStatus(dev.taskyard.v1.GetSystemStatusRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getGetSystemStatusMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Recomputes the invariants, and repairs what can safely be repaired when asked to.  May take
     * as long as the jobs and webhooks that it has run and sent.  Safe to repeat.
     * Errors: INVALID_ARGUMENT (FIELD_INVALID: unknown check).
     * </pre>
     */
    public dev.taskyard.v1.RunDoctorResponse runDoctor(dev.taskyard.v1.RunDoctorRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getRunDoctorMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Lists specs that are quarantined because they crashed too many runners.
     * Errors: INVALID_ARGUMENT (PAGE_TOKEN_INVALID).
     * </pre>
     */
    public dev.taskyard.v1.ListQuarantinesResponse listQuarantines(dev.taskyard.v1.ListQuarantinesRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getListQuarantinesMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Lets a quarantined spec run again.  Idempotent.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public dev.taskyard.v1.ReleaseQuarantineResponse releaseQuarantine(dev.taskyard.v1.ReleaseQuarantineRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getReleaseQuarantineMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Returns the secret that a tenant's webhooks are signed with (Standard Webhooks); it is created
     * when it is first requested.  Also for the tenant's own keys that may write.  Without
     * `rotate` safe to repeat.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public dev.taskyard.v1.GetWebhookSecretResponse getWebhookSecret(dev.taskyard.v1.GetWebhookSecretRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getGetWebhookSecretMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Lists the webhook calls that are not delivered yet, oldest first.  A delivered call is
     * removed; one that was given up is an audit event (webhook.given_up).  Also for a tenant's keys.
     * Errors: NOT_FOUND; INVALID_ARGUMENT (PAGE_TOKEN_INVALID).
     * </pre>
     */
    public dev.taskyard.v1.ListWebhookDeliveriesResponse listWebhookDeliveries(dev.taskyard.v1.ListWebhookDeliveriesRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getListWebhookDeliveriesMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do limited synchronous rpc calls to service AdminService.
   * <pre>
   * Health of the data.  Administrators only.  Served by taskdb.
   * </pre>
   */
  public static final class AdminServiceBlockingStub
      extends io.grpc.stub.AbstractBlockingStub<AdminServiceBlockingStub> {
    private AdminServiceBlockingStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected AdminServiceBlockingStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new AdminServiceBlockingStub(channel, callOptions);
    }

    /**
     * <pre>
     * Returns whether work can proceed, and what it depends on: runners, database, disk, leader,
     * replication, and the age of the oldest waiting task.  While the database is away it fails
     * like every call, with UNAVAILABLE.  Safe to repeat.
     * Errors: none.
     * </pre>
     */
    public dev.taskyard.v1.GetSystemStatusResponse getSystemStatus(dev.taskyard.v1.GetSystemStatusRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getGetSystemStatusMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Recomputes the invariants, and repairs what can safely be repaired when asked to.  May take
     * as long as the jobs and webhooks that it has run and sent.  Safe to repeat.
     * Errors: INVALID_ARGUMENT (FIELD_INVALID: unknown check).
     * </pre>
     */
    public dev.taskyard.v1.RunDoctorResponse runDoctor(dev.taskyard.v1.RunDoctorRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getRunDoctorMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Lists specs that are quarantined because they crashed too many runners.
     * Errors: INVALID_ARGUMENT (PAGE_TOKEN_INVALID).
     * </pre>
     */
    public dev.taskyard.v1.ListQuarantinesResponse listQuarantines(dev.taskyard.v1.ListQuarantinesRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getListQuarantinesMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Lets a quarantined spec run again.  Idempotent.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public dev.taskyard.v1.ReleaseQuarantineResponse releaseQuarantine(dev.taskyard.v1.ReleaseQuarantineRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getReleaseQuarantineMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Returns the secret that a tenant's webhooks are signed with (Standard Webhooks); it is created
     * when it is first requested.  Also for the tenant's own keys that may write.  Without
     * `rotate` safe to repeat.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public dev.taskyard.v1.GetWebhookSecretResponse getWebhookSecret(dev.taskyard.v1.GetWebhookSecretRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getGetWebhookSecretMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Lists the webhook calls that are not delivered yet, oldest first.  A delivered call is
     * removed; one that was given up is an audit event (webhook.given_up).  Also for a tenant's keys.
     * Errors: NOT_FOUND; INVALID_ARGUMENT (PAGE_TOKEN_INVALID).
     * </pre>
     */
    public dev.taskyard.v1.ListWebhookDeliveriesResponse listWebhookDeliveries(dev.taskyard.v1.ListWebhookDeliveriesRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getListWebhookDeliveriesMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do ListenableFuture-style rpc calls to service AdminService.
   * <pre>
   * Health of the data.  Administrators only.  Served by taskdb.
   * </pre>
   */
  public static final class AdminServiceFutureStub
      extends io.grpc.stub.AbstractFutureStub<AdminServiceFutureStub> {
    private AdminServiceFutureStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected AdminServiceFutureStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new AdminServiceFutureStub(channel, callOptions);
    }

    /**
     * <pre>
     * Returns whether work can proceed, and what it depends on: runners, database, disk, leader,
     * replication, and the age of the oldest waiting task.  While the database is away it fails
     * like every call, with UNAVAILABLE.  Safe to repeat.
     * Errors: none.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.GetSystemStatusResponse> getSystemStatus(
        dev.taskyard.v1.GetSystemStatusRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getGetSystemStatusMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Recomputes the invariants, and repairs what can safely be repaired when asked to.  May take
     * as long as the jobs and webhooks that it has run and sent.  Safe to repeat.
     * Errors: INVALID_ARGUMENT (FIELD_INVALID: unknown check).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.RunDoctorResponse> runDoctor(
        dev.taskyard.v1.RunDoctorRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getRunDoctorMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Lists specs that are quarantined because they crashed too many runners.
     * Errors: INVALID_ARGUMENT (PAGE_TOKEN_INVALID).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.ListQuarantinesResponse> listQuarantines(
        dev.taskyard.v1.ListQuarantinesRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getListQuarantinesMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Lets a quarantined spec run again.  Idempotent.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.ReleaseQuarantineResponse> releaseQuarantine(
        dev.taskyard.v1.ReleaseQuarantineRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getReleaseQuarantineMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Returns the secret that a tenant's webhooks are signed with (Standard Webhooks); it is created
     * when it is first requested.  Also for the tenant's own keys that may write.  Without
     * `rotate` safe to repeat.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.GetWebhookSecretResponse> getWebhookSecret(
        dev.taskyard.v1.GetWebhookSecretRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getGetWebhookSecretMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Lists the webhook calls that are not delivered yet, oldest first.  A delivered call is
     * removed; one that was given up is an audit event (webhook.given_up).  Also for a tenant's keys.
     * Errors: NOT_FOUND; INVALID_ARGUMENT (PAGE_TOKEN_INVALID).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.ListWebhookDeliveriesResponse> listWebhookDeliveries(
        dev.taskyard.v1.ListWebhookDeliveriesRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getListWebhookDeliveriesMethod(), getCallOptions()), request);
    }
  }

  private static final int METHODID_GET_SYSTEM_STATUS = 0;
  private static final int METHODID_RUN_DOCTOR = 1;
  private static final int METHODID_LIST_QUARANTINES = 2;
  private static final int METHODID_RELEASE_QUARANTINE = 3;
  private static final int METHODID_GET_WEBHOOK_SECRET = 4;
  private static final int METHODID_LIST_WEBHOOK_DELIVERIES = 5;

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
        case METHODID_GET_SYSTEM_STATUS:
          serviceImpl.getSystemStatus((dev.taskyard.v1.GetSystemStatusRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.GetSystemStatusResponse>) responseObserver);
          break;
        case METHODID_RUN_DOCTOR:
          serviceImpl.runDoctor((dev.taskyard.v1.RunDoctorRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.RunDoctorResponse>) responseObserver);
          break;
        case METHODID_LIST_QUARANTINES:
          serviceImpl.listQuarantines((dev.taskyard.v1.ListQuarantinesRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.ListQuarantinesResponse>) responseObserver);
          break;
        case METHODID_RELEASE_QUARANTINE:
          serviceImpl.releaseQuarantine((dev.taskyard.v1.ReleaseQuarantineRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.ReleaseQuarantineResponse>) responseObserver);
          break;
        case METHODID_GET_WEBHOOK_SECRET:
          serviceImpl.getWebhookSecret((dev.taskyard.v1.GetWebhookSecretRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.GetWebhookSecretResponse>) responseObserver);
          break;
        case METHODID_LIST_WEBHOOK_DELIVERIES:
          serviceImpl.listWebhookDeliveries((dev.taskyard.v1.ListWebhookDeliveriesRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.ListWebhookDeliveriesResponse>) responseObserver);
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
          getGetSystemStatusMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.GetSystemStatusRequest,
              dev.taskyard.v1.GetSystemStatusResponse>(
                service, METHODID_GET_SYSTEM_STATUS)))
        .addMethod(
          getRunDoctorMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.RunDoctorRequest,
              dev.taskyard.v1.RunDoctorResponse>(
                service, METHODID_RUN_DOCTOR)))
        .addMethod(
          getListQuarantinesMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.ListQuarantinesRequest,
              dev.taskyard.v1.ListQuarantinesResponse>(
                service, METHODID_LIST_QUARANTINES)))
        .addMethod(
          getReleaseQuarantineMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.ReleaseQuarantineRequest,
              dev.taskyard.v1.ReleaseQuarantineResponse>(
                service, METHODID_RELEASE_QUARANTINE)))
        .addMethod(
          getGetWebhookSecretMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.GetWebhookSecretRequest,
              dev.taskyard.v1.GetWebhookSecretResponse>(
                service, METHODID_GET_WEBHOOK_SECRET)))
        .addMethod(
          getListWebhookDeliveriesMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.ListWebhookDeliveriesRequest,
              dev.taskyard.v1.ListWebhookDeliveriesResponse>(
                service, METHODID_LIST_WEBHOOK_DELIVERIES)))
        .build();
  }

  private static volatile io.grpc.ServiceDescriptor serviceDescriptor;

  public static io.grpc.ServiceDescriptor getServiceDescriptor() {
    io.grpc.ServiceDescriptor result = serviceDescriptor;
    if (result == null) {
      synchronized (AdminServiceGrpc.class) {
        result = serviceDescriptor;
        if (result == null) {
          serviceDescriptor = result = io.grpc.ServiceDescriptor.newBuilder(SERVICE_NAME)
              .addMethod(getGetSystemStatusMethod())
              .addMethod(getRunDoctorMethod())
              .addMethod(getListQuarantinesMethod())
              .addMethod(getReleaseQuarantineMethod())
              .addMethod(getGetWebhookSecretMethod())
              .addMethod(getListWebhookDeliveriesMethod())
              .build();
        }
      }
    }
    return result;
  }
}
