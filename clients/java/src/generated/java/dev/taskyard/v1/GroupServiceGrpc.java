package dev.taskyard.v1;

import static io.grpc.MethodDescriptor.generateFullMethodName;

/**
 * <pre>
 * Groups of tasks.  Served by taskdb.
 * </pre>
 */
@io.grpc.stub.annotations.GrpcGenerated
public final class GroupServiceGrpc {

  private GroupServiceGrpc() {}

  public static final java.lang.String SERVICE_NAME = "taskyard.v1.GroupService";

  // Static method descriptors that strictly reflect the proto.
  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.CreateGroupRequest,
      dev.taskyard.v1.CreateGroupResponse> getCreateGroupMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "CreateGroup",
      requestType = dev.taskyard.v1.CreateGroupRequest.class,
      responseType = dev.taskyard.v1.CreateGroupResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.CreateGroupRequest,
      dev.taskyard.v1.CreateGroupResponse> getCreateGroupMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.CreateGroupRequest, dev.taskyard.v1.CreateGroupResponse> getCreateGroupMethod;
    if ((getCreateGroupMethod = GroupServiceGrpc.getCreateGroupMethod) == null) {
      synchronized (GroupServiceGrpc.class) {
        if ((getCreateGroupMethod = GroupServiceGrpc.getCreateGroupMethod) == null) {
          GroupServiceGrpc.getCreateGroupMethod = getCreateGroupMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.CreateGroupRequest, dev.taskyard.v1.CreateGroupResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "CreateGroup"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.CreateGroupRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.CreateGroupResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getCreateGroupMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.GetGroupRequest,
      dev.taskyard.v1.GetGroupResponse> getGetGroupMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "GetGroup",
      requestType = dev.taskyard.v1.GetGroupRequest.class,
      responseType = dev.taskyard.v1.GetGroupResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.GetGroupRequest,
      dev.taskyard.v1.GetGroupResponse> getGetGroupMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.GetGroupRequest, dev.taskyard.v1.GetGroupResponse> getGetGroupMethod;
    if ((getGetGroupMethod = GroupServiceGrpc.getGetGroupMethod) == null) {
      synchronized (GroupServiceGrpc.class) {
        if ((getGetGroupMethod = GroupServiceGrpc.getGetGroupMethod) == null) {
          GroupServiceGrpc.getGetGroupMethod = getGetGroupMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.GetGroupRequest, dev.taskyard.v1.GetGroupResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "GetGroup"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.GetGroupRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.GetGroupResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getGetGroupMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.ListGroupsRequest,
      dev.taskyard.v1.ListGroupsResponse> getListGroupsMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ListGroups",
      requestType = dev.taskyard.v1.ListGroupsRequest.class,
      responseType = dev.taskyard.v1.ListGroupsResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.ListGroupsRequest,
      dev.taskyard.v1.ListGroupsResponse> getListGroupsMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.ListGroupsRequest, dev.taskyard.v1.ListGroupsResponse> getListGroupsMethod;
    if ((getListGroupsMethod = GroupServiceGrpc.getListGroupsMethod) == null) {
      synchronized (GroupServiceGrpc.class) {
        if ((getListGroupsMethod = GroupServiceGrpc.getListGroupsMethod) == null) {
          GroupServiceGrpc.getListGroupsMethod = getListGroupsMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.ListGroupsRequest, dev.taskyard.v1.ListGroupsResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ListGroups"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ListGroupsRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ListGroupsResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getListGroupsMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.CloseGroupRequest,
      dev.taskyard.v1.CloseGroupResponse> getCloseGroupMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "CloseGroup",
      requestType = dev.taskyard.v1.CloseGroupRequest.class,
      responseType = dev.taskyard.v1.CloseGroupResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.CloseGroupRequest,
      dev.taskyard.v1.CloseGroupResponse> getCloseGroupMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.CloseGroupRequest, dev.taskyard.v1.CloseGroupResponse> getCloseGroupMethod;
    if ((getCloseGroupMethod = GroupServiceGrpc.getCloseGroupMethod) == null) {
      synchronized (GroupServiceGrpc.class) {
        if ((getCloseGroupMethod = GroupServiceGrpc.getCloseGroupMethod) == null) {
          GroupServiceGrpc.getCloseGroupMethod = getCloseGroupMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.CloseGroupRequest, dev.taskyard.v1.CloseGroupResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "CloseGroup"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.CloseGroupRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.CloseGroupResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getCloseGroupMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.CancelGroupRequest,
      dev.taskyard.v1.CancelGroupResponse> getCancelGroupMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "CancelGroup",
      requestType = dev.taskyard.v1.CancelGroupRequest.class,
      responseType = dev.taskyard.v1.CancelGroupResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.CancelGroupRequest,
      dev.taskyard.v1.CancelGroupResponse> getCancelGroupMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.CancelGroupRequest, dev.taskyard.v1.CancelGroupResponse> getCancelGroupMethod;
    if ((getCancelGroupMethod = GroupServiceGrpc.getCancelGroupMethod) == null) {
      synchronized (GroupServiceGrpc.class) {
        if ((getCancelGroupMethod = GroupServiceGrpc.getCancelGroupMethod) == null) {
          GroupServiceGrpc.getCancelGroupMethod = getCancelGroupMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.CancelGroupRequest, dev.taskyard.v1.CancelGroupResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "CancelGroup"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.CancelGroupRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.CancelGroupResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getCancelGroupMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.WaitGroupRequest,
      dev.taskyard.v1.WaitGroupResponse> getWaitGroupMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "WaitGroup",
      requestType = dev.taskyard.v1.WaitGroupRequest.class,
      responseType = dev.taskyard.v1.WaitGroupResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.WaitGroupRequest,
      dev.taskyard.v1.WaitGroupResponse> getWaitGroupMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.WaitGroupRequest, dev.taskyard.v1.WaitGroupResponse> getWaitGroupMethod;
    if ((getWaitGroupMethod = GroupServiceGrpc.getWaitGroupMethod) == null) {
      synchronized (GroupServiceGrpc.class) {
        if ((getWaitGroupMethod = GroupServiceGrpc.getWaitGroupMethod) == null) {
          GroupServiceGrpc.getWaitGroupMethod = getWaitGroupMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.WaitGroupRequest, dev.taskyard.v1.WaitGroupResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "WaitGroup"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.WaitGroupRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.WaitGroupResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getWaitGroupMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.DeleteGroupRequest,
      dev.taskyard.v1.DeleteGroupResponse> getDeleteGroupMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "DeleteGroup",
      requestType = dev.taskyard.v1.DeleteGroupRequest.class,
      responseType = dev.taskyard.v1.DeleteGroupResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.DeleteGroupRequest,
      dev.taskyard.v1.DeleteGroupResponse> getDeleteGroupMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.DeleteGroupRequest, dev.taskyard.v1.DeleteGroupResponse> getDeleteGroupMethod;
    if ((getDeleteGroupMethod = GroupServiceGrpc.getDeleteGroupMethod) == null) {
      synchronized (GroupServiceGrpc.class) {
        if ((getDeleteGroupMethod = GroupServiceGrpc.getDeleteGroupMethod) == null) {
          GroupServiceGrpc.getDeleteGroupMethod = getDeleteGroupMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.DeleteGroupRequest, dev.taskyard.v1.DeleteGroupResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "DeleteGroup"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.DeleteGroupRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.DeleteGroupResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getDeleteGroupMethod;
  }

  /**
   * Creates a new async stub that supports all call types for the service
   */
  public static GroupServiceStub newStub(io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<GroupServiceStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<GroupServiceStub>() {
        @java.lang.Override
        public GroupServiceStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new GroupServiceStub(channel, callOptions);
        }
      };
    return GroupServiceStub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports all types of calls on the service
   */
  public static GroupServiceBlockingV2Stub newBlockingV2Stub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<GroupServiceBlockingV2Stub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<GroupServiceBlockingV2Stub>() {
        @java.lang.Override
        public GroupServiceBlockingV2Stub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new GroupServiceBlockingV2Stub(channel, callOptions);
        }
      };
    return GroupServiceBlockingV2Stub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports unary and streaming output calls on the service
   */
  public static GroupServiceBlockingStub newBlockingStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<GroupServiceBlockingStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<GroupServiceBlockingStub>() {
        @java.lang.Override
        public GroupServiceBlockingStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new GroupServiceBlockingStub(channel, callOptions);
        }
      };
    return GroupServiceBlockingStub.newStub(factory, channel);
  }

  /**
   * Creates a new ListenableFuture-style stub that supports unary calls on the service
   */
  public static GroupServiceFutureStub newFutureStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<GroupServiceFutureStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<GroupServiceFutureStub>() {
        @java.lang.Override
        public GroupServiceFutureStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new GroupServiceFutureStub(channel, callOptions);
        }
      };
    return GroupServiceFutureStub.newStub(factory, channel);
  }

  /**
   * <pre>
   * Groups of tasks.  Served by taskdb.
   * </pre>
   */
  public interface AsyncService {

    /**
     * <pre>
     * Creates an empty group, to give it a webhook before its first task; metadata.group creates one
     * as well.  A repeat is ALREADY_EXISTS, with the same request_id the group.
     * Errors: NOT_FOUND (NOT_FOUND: tenant); ALREADY_EXISTS; INVALID_ARGUMENT
     * (FIELD_INVALID: callback); FAILED_PRECONDITION (TENANT_SUSPENDED).
     * </pre>
     */
    default void createGroup(dev.taskyard.v1.CreateGroupRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.CreateGroupResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getCreateGroupMethod(), responseObserver);
    }

    /**
     * <pre>
     * Returns a group.
     * Errors: NOT_FOUND.
     * </pre>
     */
    default void getGroup(dev.taskyard.v1.GetGroupRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.GetGroupResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getGetGroupMethod(), responseObserver);
    }

    /**
     * <pre>
     * Lists groups, by id.  Filter fields: id, state, create_time.
     * Errors: INVALID_ARGUMENT (FILTER_INVALID, PAGE_TOKEN_INVALID).
     * </pre>
     */
    default void listGroups(dev.taskyard.v1.ListGroupsRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ListGroupsResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getListGroupsMethod(), responseObserver);
    }

    /**
     * <pre>
     * Closes a group: no more tasks may be created in it.  Safe to repeat.
     * Errors: NOT_FOUND.
     * </pre>
     */
    default void closeGroup(dev.taskyard.v1.CloseGroupRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.CloseGroupResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getCloseGroupMethod(), responseObserver);
    }

    /**
     * <pre>
     * Closes a group and cancels its live tasks, as CancelTask does; those of a large group page by
     * page, also if the server ends meanwhile.  A task that is retried later is not cancelled again.
     * Safe to repeat.
     * Errors: NOT_FOUND.
     * </pre>
     */
    default void cancelGroup(dev.taskyard.v1.CancelGroupRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.CancelGroupResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getCancelGroupMethod(), responseObserver);
    }

    /**
     * <pre>
     * Waits until the group is complete or the time is up, then returns its current state; running
     * out of time is not an error.  A wait counts as an open stream of the tenant.
     * Errors: NOT_FOUND; RESOURCE_EXHAUSTED (STREAM_LIMIT).
     * </pre>
     */
    default void waitGroup(dev.taskyard.v1.WaitGroupRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.WaitGroupResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getWaitGroupMethod(), responseObserver);
    }

    /**
     * <pre>
     * Deletes a group without live tasks; its tasks stay.  Tasks that wait for a group which is not
     * complete count as live.  A repeat is NOT_FOUND.
     * Errors: NOT_FOUND; FAILED_PRECONDITION (NOT_EMPTY).
     * </pre>
     */
    default void deleteGroup(dev.taskyard.v1.DeleteGroupRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.DeleteGroupResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getDeleteGroupMethod(), responseObserver);
    }
  }

  /**
   * Base class for the server implementation of the service GroupService.
   * <pre>
   * Groups of tasks.  Served by taskdb.
   * </pre>
   */
  public static abstract class GroupServiceImplBase
      implements io.grpc.BindableService, AsyncService {

    @java.lang.Override public final io.grpc.ServerServiceDefinition bindService() {
      return GroupServiceGrpc.bindService(this);
    }
  }

  /**
   * A stub to allow clients to do asynchronous rpc calls to service GroupService.
   * <pre>
   * Groups of tasks.  Served by taskdb.
   * </pre>
   */
  public static final class GroupServiceStub
      extends io.grpc.stub.AbstractAsyncStub<GroupServiceStub> {
    private GroupServiceStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected GroupServiceStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new GroupServiceStub(channel, callOptions);
    }

    /**
     * <pre>
     * Creates an empty group, to give it a webhook before its first task; metadata.group creates one
     * as well.  A repeat is ALREADY_EXISTS, with the same request_id the group.
     * Errors: NOT_FOUND (NOT_FOUND: tenant); ALREADY_EXISTS; INVALID_ARGUMENT
     * (FIELD_INVALID: callback); FAILED_PRECONDITION (TENANT_SUSPENDED).
     * </pre>
     */
    public void createGroup(dev.taskyard.v1.CreateGroupRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.CreateGroupResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getCreateGroupMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Returns a group.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public void getGroup(dev.taskyard.v1.GetGroupRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.GetGroupResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getGetGroupMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Lists groups, by id.  Filter fields: id, state, create_time.
     * Errors: INVALID_ARGUMENT (FILTER_INVALID, PAGE_TOKEN_INVALID).
     * </pre>
     */
    public void listGroups(dev.taskyard.v1.ListGroupsRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ListGroupsResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getListGroupsMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Closes a group: no more tasks may be created in it.  Safe to repeat.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public void closeGroup(dev.taskyard.v1.CloseGroupRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.CloseGroupResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getCloseGroupMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Closes a group and cancels its live tasks, as CancelTask does; those of a large group page by
     * page, also if the server ends meanwhile.  A task that is retried later is not cancelled again.
     * Safe to repeat.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public void cancelGroup(dev.taskyard.v1.CancelGroupRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.CancelGroupResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getCancelGroupMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Waits until the group is complete or the time is up, then returns its current state; running
     * out of time is not an error.  A wait counts as an open stream of the tenant.
     * Errors: NOT_FOUND; RESOURCE_EXHAUSTED (STREAM_LIMIT).
     * </pre>
     */
    public void waitGroup(dev.taskyard.v1.WaitGroupRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.WaitGroupResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getWaitGroupMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Deletes a group without live tasks; its tasks stay.  Tasks that wait for a group which is not
     * complete count as live.  A repeat is NOT_FOUND.
     * Errors: NOT_FOUND; FAILED_PRECONDITION (NOT_EMPTY).
     * </pre>
     */
    public void deleteGroup(dev.taskyard.v1.DeleteGroupRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.DeleteGroupResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getDeleteGroupMethod(), getCallOptions()), request, responseObserver);
    }
  }

  /**
   * A stub to allow clients to do synchronous rpc calls to service GroupService.
   * <pre>
   * Groups of tasks.  Served by taskdb.
   * </pre>
   */
  public static final class GroupServiceBlockingV2Stub
      extends io.grpc.stub.AbstractBlockingStub<GroupServiceBlockingV2Stub> {
    private GroupServiceBlockingV2Stub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected GroupServiceBlockingV2Stub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new GroupServiceBlockingV2Stub(channel, callOptions);
    }

    /**
     * <pre>
     * Creates an empty group, to give it a webhook before its first task; metadata.group creates one
     * as well.  A repeat is ALREADY_EXISTS, with the same request_id the group.
     * Errors: NOT_FOUND (NOT_FOUND: tenant); ALREADY_EXISTS; INVALID_ARGUMENT
     * (FIELD_INVALID: callback); FAILED_PRECONDITION (TENANT_SUSPENDED).
     * </pre>
     */
    public dev.taskyard.v1.CreateGroupResponse createGroup(dev.taskyard.v1.CreateGroupRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getCreateGroupMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Returns a group.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public dev.taskyard.v1.GetGroupResponse getGroup(dev.taskyard.v1.GetGroupRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getGetGroupMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Lists groups, by id.  Filter fields: id, state, create_time.
     * Errors: INVALID_ARGUMENT (FILTER_INVALID, PAGE_TOKEN_INVALID).
     * </pre>
     */
    public dev.taskyard.v1.ListGroupsResponse listGroups(dev.taskyard.v1.ListGroupsRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getListGroupsMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Closes a group: no more tasks may be created in it.  Safe to repeat.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public dev.taskyard.v1.CloseGroupResponse closeGroup(dev.taskyard.v1.CloseGroupRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getCloseGroupMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Closes a group and cancels its live tasks, as CancelTask does; those of a large group page by
     * page, also if the server ends meanwhile.  A task that is retried later is not cancelled again.
     * Safe to repeat.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public dev.taskyard.v1.CancelGroupResponse cancelGroup(dev.taskyard.v1.CancelGroupRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getCancelGroupMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Waits until the group is complete or the time is up, then returns its current state; running
     * out of time is not an error.  A wait counts as an open stream of the tenant.
     * Errors: NOT_FOUND; RESOURCE_EXHAUSTED (STREAM_LIMIT).
     * </pre>
     */
    public dev.taskyard.v1.WaitGroupResponse waitGroup(dev.taskyard.v1.WaitGroupRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getWaitGroupMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Deletes a group without live tasks; its tasks stay.  Tasks that wait for a group which is not
     * complete count as live.  A repeat is NOT_FOUND.
     * Errors: NOT_FOUND; FAILED_PRECONDITION (NOT_EMPTY).
     * </pre>
     */
    public dev.taskyard.v1.DeleteGroupResponse deleteGroup(dev.taskyard.v1.DeleteGroupRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getDeleteGroupMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do limited synchronous rpc calls to service GroupService.
   * <pre>
   * Groups of tasks.  Served by taskdb.
   * </pre>
   */
  public static final class GroupServiceBlockingStub
      extends io.grpc.stub.AbstractBlockingStub<GroupServiceBlockingStub> {
    private GroupServiceBlockingStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected GroupServiceBlockingStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new GroupServiceBlockingStub(channel, callOptions);
    }

    /**
     * <pre>
     * Creates an empty group, to give it a webhook before its first task; metadata.group creates one
     * as well.  A repeat is ALREADY_EXISTS, with the same request_id the group.
     * Errors: NOT_FOUND (NOT_FOUND: tenant); ALREADY_EXISTS; INVALID_ARGUMENT
     * (FIELD_INVALID: callback); FAILED_PRECONDITION (TENANT_SUSPENDED).
     * </pre>
     */
    public dev.taskyard.v1.CreateGroupResponse createGroup(dev.taskyard.v1.CreateGroupRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getCreateGroupMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Returns a group.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public dev.taskyard.v1.GetGroupResponse getGroup(dev.taskyard.v1.GetGroupRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getGetGroupMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Lists groups, by id.  Filter fields: id, state, create_time.
     * Errors: INVALID_ARGUMENT (FILTER_INVALID, PAGE_TOKEN_INVALID).
     * </pre>
     */
    public dev.taskyard.v1.ListGroupsResponse listGroups(dev.taskyard.v1.ListGroupsRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getListGroupsMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Closes a group: no more tasks may be created in it.  Safe to repeat.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public dev.taskyard.v1.CloseGroupResponse closeGroup(dev.taskyard.v1.CloseGroupRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getCloseGroupMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Closes a group and cancels its live tasks, as CancelTask does; those of a large group page by
     * page, also if the server ends meanwhile.  A task that is retried later is not cancelled again.
     * Safe to repeat.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public dev.taskyard.v1.CancelGroupResponse cancelGroup(dev.taskyard.v1.CancelGroupRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getCancelGroupMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Waits until the group is complete or the time is up, then returns its current state; running
     * out of time is not an error.  A wait counts as an open stream of the tenant.
     * Errors: NOT_FOUND; RESOURCE_EXHAUSTED (STREAM_LIMIT).
     * </pre>
     */
    public dev.taskyard.v1.WaitGroupResponse waitGroup(dev.taskyard.v1.WaitGroupRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getWaitGroupMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Deletes a group without live tasks; its tasks stay.  Tasks that wait for a group which is not
     * complete count as live.  A repeat is NOT_FOUND.
     * Errors: NOT_FOUND; FAILED_PRECONDITION (NOT_EMPTY).
     * </pre>
     */
    public dev.taskyard.v1.DeleteGroupResponse deleteGroup(dev.taskyard.v1.DeleteGroupRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getDeleteGroupMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do ListenableFuture-style rpc calls to service GroupService.
   * <pre>
   * Groups of tasks.  Served by taskdb.
   * </pre>
   */
  public static final class GroupServiceFutureStub
      extends io.grpc.stub.AbstractFutureStub<GroupServiceFutureStub> {
    private GroupServiceFutureStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected GroupServiceFutureStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new GroupServiceFutureStub(channel, callOptions);
    }

    /**
     * <pre>
     * Creates an empty group, to give it a webhook before its first task; metadata.group creates one
     * as well.  A repeat is ALREADY_EXISTS, with the same request_id the group.
     * Errors: NOT_FOUND (NOT_FOUND: tenant); ALREADY_EXISTS; INVALID_ARGUMENT
     * (FIELD_INVALID: callback); FAILED_PRECONDITION (TENANT_SUSPENDED).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.CreateGroupResponse> createGroup(
        dev.taskyard.v1.CreateGroupRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getCreateGroupMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Returns a group.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.GetGroupResponse> getGroup(
        dev.taskyard.v1.GetGroupRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getGetGroupMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Lists groups, by id.  Filter fields: id, state, create_time.
     * Errors: INVALID_ARGUMENT (FILTER_INVALID, PAGE_TOKEN_INVALID).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.ListGroupsResponse> listGroups(
        dev.taskyard.v1.ListGroupsRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getListGroupsMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Closes a group: no more tasks may be created in it.  Safe to repeat.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.CloseGroupResponse> closeGroup(
        dev.taskyard.v1.CloseGroupRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getCloseGroupMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Closes a group and cancels its live tasks, as CancelTask does; those of a large group page by
     * page, also if the server ends meanwhile.  A task that is retried later is not cancelled again.
     * Safe to repeat.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.CancelGroupResponse> cancelGroup(
        dev.taskyard.v1.CancelGroupRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getCancelGroupMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Waits until the group is complete or the time is up, then returns its current state; running
     * out of time is not an error.  A wait counts as an open stream of the tenant.
     * Errors: NOT_FOUND; RESOURCE_EXHAUSTED (STREAM_LIMIT).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.WaitGroupResponse> waitGroup(
        dev.taskyard.v1.WaitGroupRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getWaitGroupMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Deletes a group without live tasks; its tasks stay.  Tasks that wait for a group which is not
     * complete count as live.  A repeat is NOT_FOUND.
     * Errors: NOT_FOUND; FAILED_PRECONDITION (NOT_EMPTY).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.DeleteGroupResponse> deleteGroup(
        dev.taskyard.v1.DeleteGroupRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getDeleteGroupMethod(), getCallOptions()), request);
    }
  }

  private static final int METHODID_CREATE_GROUP = 0;
  private static final int METHODID_GET_GROUP = 1;
  private static final int METHODID_LIST_GROUPS = 2;
  private static final int METHODID_CLOSE_GROUP = 3;
  private static final int METHODID_CANCEL_GROUP = 4;
  private static final int METHODID_WAIT_GROUP = 5;
  private static final int METHODID_DELETE_GROUP = 6;

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
        case METHODID_CREATE_GROUP:
          serviceImpl.createGroup((dev.taskyard.v1.CreateGroupRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.CreateGroupResponse>) responseObserver);
          break;
        case METHODID_GET_GROUP:
          serviceImpl.getGroup((dev.taskyard.v1.GetGroupRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.GetGroupResponse>) responseObserver);
          break;
        case METHODID_LIST_GROUPS:
          serviceImpl.listGroups((dev.taskyard.v1.ListGroupsRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.ListGroupsResponse>) responseObserver);
          break;
        case METHODID_CLOSE_GROUP:
          serviceImpl.closeGroup((dev.taskyard.v1.CloseGroupRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.CloseGroupResponse>) responseObserver);
          break;
        case METHODID_CANCEL_GROUP:
          serviceImpl.cancelGroup((dev.taskyard.v1.CancelGroupRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.CancelGroupResponse>) responseObserver);
          break;
        case METHODID_WAIT_GROUP:
          serviceImpl.waitGroup((dev.taskyard.v1.WaitGroupRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.WaitGroupResponse>) responseObserver);
          break;
        case METHODID_DELETE_GROUP:
          serviceImpl.deleteGroup((dev.taskyard.v1.DeleteGroupRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.DeleteGroupResponse>) responseObserver);
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
          getCreateGroupMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.CreateGroupRequest,
              dev.taskyard.v1.CreateGroupResponse>(
                service, METHODID_CREATE_GROUP)))
        .addMethod(
          getGetGroupMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.GetGroupRequest,
              dev.taskyard.v1.GetGroupResponse>(
                service, METHODID_GET_GROUP)))
        .addMethod(
          getListGroupsMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.ListGroupsRequest,
              dev.taskyard.v1.ListGroupsResponse>(
                service, METHODID_LIST_GROUPS)))
        .addMethod(
          getCloseGroupMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.CloseGroupRequest,
              dev.taskyard.v1.CloseGroupResponse>(
                service, METHODID_CLOSE_GROUP)))
        .addMethod(
          getCancelGroupMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.CancelGroupRequest,
              dev.taskyard.v1.CancelGroupResponse>(
                service, METHODID_CANCEL_GROUP)))
        .addMethod(
          getWaitGroupMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.WaitGroupRequest,
              dev.taskyard.v1.WaitGroupResponse>(
                service, METHODID_WAIT_GROUP)))
        .addMethod(
          getDeleteGroupMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.DeleteGroupRequest,
              dev.taskyard.v1.DeleteGroupResponse>(
                service, METHODID_DELETE_GROUP)))
        .build();
  }

  private static volatile io.grpc.ServiceDescriptor serviceDescriptor;

  public static io.grpc.ServiceDescriptor getServiceDescriptor() {
    io.grpc.ServiceDescriptor result = serviceDescriptor;
    if (result == null) {
      synchronized (GroupServiceGrpc.class) {
        result = serviceDescriptor;
        if (result == null) {
          serviceDescriptor = result = io.grpc.ServiceDescriptor.newBuilder(SERVICE_NAME)
              .addMethod(getCreateGroupMethod())
              .addMethod(getGetGroupMethod())
              .addMethod(getListGroupsMethod())
              .addMethod(getCloseGroupMethod())
              .addMethod(getCancelGroupMethod())
              .addMethod(getWaitGroupMethod())
              .addMethod(getDeleteGroupMethod())
              .build();
        }
      }
    }
    return result;
  }
}
