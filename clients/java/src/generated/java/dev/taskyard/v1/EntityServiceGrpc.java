package dev.taskyard.v1;

import static io.grpc.MethodDescriptor.generateFullMethodName;

/**
 * <pre>
 * Entities whose existence task types can demand (TaskType.entities_must_exist).
 * </pre>
 */
@io.grpc.stub.annotations.GrpcGenerated
public final class EntityServiceGrpc {

  private EntityServiceGrpc() {}

  public static final java.lang.String SERVICE_NAME = "taskyard.v1.EntityService";

  // Static method descriptors that strictly reflect the proto.
  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.RegisterEntitiesRequest,
      dev.taskyard.v1.RegisterEntitiesResponse> getRegisterEntitiesMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "RegisterEntities",
      requestType = dev.taskyard.v1.RegisterEntitiesRequest.class,
      responseType = dev.taskyard.v1.RegisterEntitiesResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.RegisterEntitiesRequest,
      dev.taskyard.v1.RegisterEntitiesResponse> getRegisterEntitiesMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.RegisterEntitiesRequest, dev.taskyard.v1.RegisterEntitiesResponse> getRegisterEntitiesMethod;
    if ((getRegisterEntitiesMethod = EntityServiceGrpc.getRegisterEntitiesMethod) == null) {
      synchronized (EntityServiceGrpc.class) {
        if ((getRegisterEntitiesMethod = EntityServiceGrpc.getRegisterEntitiesMethod) == null) {
          EntityServiceGrpc.getRegisterEntitiesMethod = getRegisterEntitiesMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.RegisterEntitiesRequest, dev.taskyard.v1.RegisterEntitiesResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "RegisterEntities"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.RegisterEntitiesRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.RegisterEntitiesResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getRegisterEntitiesMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.ListEntitiesRequest,
      dev.taskyard.v1.ListEntitiesResponse> getListEntitiesMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ListEntities",
      requestType = dev.taskyard.v1.ListEntitiesRequest.class,
      responseType = dev.taskyard.v1.ListEntitiesResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.ListEntitiesRequest,
      dev.taskyard.v1.ListEntitiesResponse> getListEntitiesMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.ListEntitiesRequest, dev.taskyard.v1.ListEntitiesResponse> getListEntitiesMethod;
    if ((getListEntitiesMethod = EntityServiceGrpc.getListEntitiesMethod) == null) {
      synchronized (EntityServiceGrpc.class) {
        if ((getListEntitiesMethod = EntityServiceGrpc.getListEntitiesMethod) == null) {
          EntityServiceGrpc.getListEntitiesMethod = getListEntitiesMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.ListEntitiesRequest, dev.taskyard.v1.ListEntitiesResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ListEntities"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ListEntitiesRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ListEntitiesResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getListEntitiesMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.DeleteEntityRequest,
      dev.taskyard.v1.DeleteEntityResponse> getDeleteEntityMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "DeleteEntity",
      requestType = dev.taskyard.v1.DeleteEntityRequest.class,
      responseType = dev.taskyard.v1.DeleteEntityResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.DeleteEntityRequest,
      dev.taskyard.v1.DeleteEntityResponse> getDeleteEntityMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.DeleteEntityRequest, dev.taskyard.v1.DeleteEntityResponse> getDeleteEntityMethod;
    if ((getDeleteEntityMethod = EntityServiceGrpc.getDeleteEntityMethod) == null) {
      synchronized (EntityServiceGrpc.class) {
        if ((getDeleteEntityMethod = EntityServiceGrpc.getDeleteEntityMethod) == null) {
          EntityServiceGrpc.getDeleteEntityMethod = getDeleteEntityMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.DeleteEntityRequest, dev.taskyard.v1.DeleteEntityResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "DeleteEntity"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.DeleteEntityRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.DeleteEntityResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getDeleteEntityMethod;
  }

  /**
   * Creates a new async stub that supports all call types for the service
   */
  public static EntityServiceStub newStub(io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<EntityServiceStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<EntityServiceStub>() {
        @java.lang.Override
        public EntityServiceStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new EntityServiceStub(channel, callOptions);
        }
      };
    return EntityServiceStub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports all types of calls on the service
   */
  public static EntityServiceBlockingV2Stub newBlockingV2Stub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<EntityServiceBlockingV2Stub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<EntityServiceBlockingV2Stub>() {
        @java.lang.Override
        public EntityServiceBlockingV2Stub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new EntityServiceBlockingV2Stub(channel, callOptions);
        }
      };
    return EntityServiceBlockingV2Stub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports unary and streaming output calls on the service
   */
  public static EntityServiceBlockingStub newBlockingStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<EntityServiceBlockingStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<EntityServiceBlockingStub>() {
        @java.lang.Override
        public EntityServiceBlockingStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new EntityServiceBlockingStub(channel, callOptions);
        }
      };
    return EntityServiceBlockingStub.newStub(factory, channel);
  }

  /**
   * Creates a new ListenableFuture-style stub that supports unary calls on the service
   */
  public static EntityServiceFutureStub newFutureStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<EntityServiceFutureStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<EntityServiceFutureStub>() {
        @java.lang.Override
        public EntityServiceFutureStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new EntityServiceFutureStub(channel, callOptions);
        }
      };
    return EntityServiceFutureStub.newStub(factory, channel);
  }

  /**
   * <pre>
   * Entities whose existence task types can demand (TaskType.entities_must_exist).
   * </pre>
   */
  public interface AsyncService {

    /**
     * <pre>
     * Stores up to 1000 entities; those that are stored already stay as they are.  Idempotent.
     * Errors: NOT_FOUND (NOT_FOUND: tenant); INVALID_ARGUMENT (FIELD_INVALID: more than 1000, or a bad id).
     * </pre>
     */
    default void registerEntities(dev.taskyard.v1.RegisterEntitiesRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.RegisterEntitiesResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getRegisterEntitiesMethod(), responseObserver);
    }

    /**
     * <pre>
     * Lists the entities of a type by id.
     * Errors: INVALID_ARGUMENT (PAGE_TOKEN_INVALID).
     * </pre>
     */
    default void listEntities(dev.taskyard.v1.ListEntitiesRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ListEntitiesResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getListEntitiesMethod(), responseObserver);
    }

    /**
     * <pre>
     * Removes an entity from the registry; tasks that name it stay as they are, no new one is
     * accepted.  Safe to repeat with allow_missing.
     * Errors: NOT_FOUND.
     * </pre>
     */
    default void deleteEntity(dev.taskyard.v1.DeleteEntityRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.DeleteEntityResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getDeleteEntityMethod(), responseObserver);
    }
  }

  /**
   * Base class for the server implementation of the service EntityService.
   * <pre>
   * Entities whose existence task types can demand (TaskType.entities_must_exist).
   * </pre>
   */
  public static abstract class EntityServiceImplBase
      implements io.grpc.BindableService, AsyncService {

    @java.lang.Override public final io.grpc.ServerServiceDefinition bindService() {
      return EntityServiceGrpc.bindService(this);
    }
  }

  /**
   * A stub to allow clients to do asynchronous rpc calls to service EntityService.
   * <pre>
   * Entities whose existence task types can demand (TaskType.entities_must_exist).
   * </pre>
   */
  public static final class EntityServiceStub
      extends io.grpc.stub.AbstractAsyncStub<EntityServiceStub> {
    private EntityServiceStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected EntityServiceStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new EntityServiceStub(channel, callOptions);
    }

    /**
     * <pre>
     * Stores up to 1000 entities; those that are stored already stay as they are.  Idempotent.
     * Errors: NOT_FOUND (NOT_FOUND: tenant); INVALID_ARGUMENT (FIELD_INVALID: more than 1000, or a bad id).
     * </pre>
     */
    public void registerEntities(dev.taskyard.v1.RegisterEntitiesRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.RegisterEntitiesResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getRegisterEntitiesMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Lists the entities of a type by id.
     * Errors: INVALID_ARGUMENT (PAGE_TOKEN_INVALID).
     * </pre>
     */
    public void listEntities(dev.taskyard.v1.ListEntitiesRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ListEntitiesResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getListEntitiesMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Removes an entity from the registry; tasks that name it stay as they are, no new one is
     * accepted.  Safe to repeat with allow_missing.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public void deleteEntity(dev.taskyard.v1.DeleteEntityRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.DeleteEntityResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getDeleteEntityMethod(), getCallOptions()), request, responseObserver);
    }
  }

  /**
   * A stub to allow clients to do synchronous rpc calls to service EntityService.
   * <pre>
   * Entities whose existence task types can demand (TaskType.entities_must_exist).
   * </pre>
   */
  public static final class EntityServiceBlockingV2Stub
      extends io.grpc.stub.AbstractBlockingStub<EntityServiceBlockingV2Stub> {
    private EntityServiceBlockingV2Stub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected EntityServiceBlockingV2Stub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new EntityServiceBlockingV2Stub(channel, callOptions);
    }

    /**
     * <pre>
     * Stores up to 1000 entities; those that are stored already stay as they are.  Idempotent.
     * Errors: NOT_FOUND (NOT_FOUND: tenant); INVALID_ARGUMENT (FIELD_INVALID: more than 1000, or a bad id).
     * </pre>
     */
    public dev.taskyard.v1.RegisterEntitiesResponse registerEntities(dev.taskyard.v1.RegisterEntitiesRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getRegisterEntitiesMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Lists the entities of a type by id.
     * Errors: INVALID_ARGUMENT (PAGE_TOKEN_INVALID).
     * </pre>
     */
    public dev.taskyard.v1.ListEntitiesResponse listEntities(dev.taskyard.v1.ListEntitiesRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getListEntitiesMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Removes an entity from the registry; tasks that name it stay as they are, no new one is
     * accepted.  Safe to repeat with allow_missing.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public dev.taskyard.v1.DeleteEntityResponse deleteEntity(dev.taskyard.v1.DeleteEntityRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getDeleteEntityMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do limited synchronous rpc calls to service EntityService.
   * <pre>
   * Entities whose existence task types can demand (TaskType.entities_must_exist).
   * </pre>
   */
  public static final class EntityServiceBlockingStub
      extends io.grpc.stub.AbstractBlockingStub<EntityServiceBlockingStub> {
    private EntityServiceBlockingStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected EntityServiceBlockingStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new EntityServiceBlockingStub(channel, callOptions);
    }

    /**
     * <pre>
     * Stores up to 1000 entities; those that are stored already stay as they are.  Idempotent.
     * Errors: NOT_FOUND (NOT_FOUND: tenant); INVALID_ARGUMENT (FIELD_INVALID: more than 1000, or a bad id).
     * </pre>
     */
    public dev.taskyard.v1.RegisterEntitiesResponse registerEntities(dev.taskyard.v1.RegisterEntitiesRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getRegisterEntitiesMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Lists the entities of a type by id.
     * Errors: INVALID_ARGUMENT (PAGE_TOKEN_INVALID).
     * </pre>
     */
    public dev.taskyard.v1.ListEntitiesResponse listEntities(dev.taskyard.v1.ListEntitiesRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getListEntitiesMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Removes an entity from the registry; tasks that name it stay as they are, no new one is
     * accepted.  Safe to repeat with allow_missing.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public dev.taskyard.v1.DeleteEntityResponse deleteEntity(dev.taskyard.v1.DeleteEntityRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getDeleteEntityMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do ListenableFuture-style rpc calls to service EntityService.
   * <pre>
   * Entities whose existence task types can demand (TaskType.entities_must_exist).
   * </pre>
   */
  public static final class EntityServiceFutureStub
      extends io.grpc.stub.AbstractFutureStub<EntityServiceFutureStub> {
    private EntityServiceFutureStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected EntityServiceFutureStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new EntityServiceFutureStub(channel, callOptions);
    }

    /**
     * <pre>
     * Stores up to 1000 entities; those that are stored already stay as they are.  Idempotent.
     * Errors: NOT_FOUND (NOT_FOUND: tenant); INVALID_ARGUMENT (FIELD_INVALID: more than 1000, or a bad id).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.RegisterEntitiesResponse> registerEntities(
        dev.taskyard.v1.RegisterEntitiesRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getRegisterEntitiesMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Lists the entities of a type by id.
     * Errors: INVALID_ARGUMENT (PAGE_TOKEN_INVALID).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.ListEntitiesResponse> listEntities(
        dev.taskyard.v1.ListEntitiesRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getListEntitiesMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Removes an entity from the registry; tasks that name it stay as they are, no new one is
     * accepted.  Safe to repeat with allow_missing.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.DeleteEntityResponse> deleteEntity(
        dev.taskyard.v1.DeleteEntityRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getDeleteEntityMethod(), getCallOptions()), request);
    }
  }

  private static final int METHODID_REGISTER_ENTITIES = 0;
  private static final int METHODID_LIST_ENTITIES = 1;
  private static final int METHODID_DELETE_ENTITY = 2;

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
        case METHODID_REGISTER_ENTITIES:
          serviceImpl.registerEntities((dev.taskyard.v1.RegisterEntitiesRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.RegisterEntitiesResponse>) responseObserver);
          break;
        case METHODID_LIST_ENTITIES:
          serviceImpl.listEntities((dev.taskyard.v1.ListEntitiesRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.ListEntitiesResponse>) responseObserver);
          break;
        case METHODID_DELETE_ENTITY:
          serviceImpl.deleteEntity((dev.taskyard.v1.DeleteEntityRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.DeleteEntityResponse>) responseObserver);
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
          getRegisterEntitiesMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.RegisterEntitiesRequest,
              dev.taskyard.v1.RegisterEntitiesResponse>(
                service, METHODID_REGISTER_ENTITIES)))
        .addMethod(
          getListEntitiesMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.ListEntitiesRequest,
              dev.taskyard.v1.ListEntitiesResponse>(
                service, METHODID_LIST_ENTITIES)))
        .addMethod(
          getDeleteEntityMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.DeleteEntityRequest,
              dev.taskyard.v1.DeleteEntityResponse>(
                service, METHODID_DELETE_ENTITY)))
        .build();
  }

  private static volatile io.grpc.ServiceDescriptor serviceDescriptor;

  public static io.grpc.ServiceDescriptor getServiceDescriptor() {
    io.grpc.ServiceDescriptor result = serviceDescriptor;
    if (result == null) {
      synchronized (EntityServiceGrpc.class) {
        result = serviceDescriptor;
        if (result == null) {
          serviceDescriptor = result = io.grpc.ServiceDescriptor.newBuilder(SERVICE_NAME)
              .addMethod(getRegisterEntitiesMethod())
              .addMethod(getListEntitiesMethod())
              .addMethod(getDeleteEntityMethod())
              .build();
        }
      }
    }
    return result;
  }
}
