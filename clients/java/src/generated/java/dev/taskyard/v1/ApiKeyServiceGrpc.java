package dev.taskyard.v1;

import static io.grpc.MethodDescriptor.generateFullMethodName;

/**
 * <pre>
 * API keys.  An administrator manages all of them, a tenant its own.  Served by taskdb.
 * </pre>
 */
@io.grpc.stub.annotations.GrpcGenerated
public final class ApiKeyServiceGrpc {

  private ApiKeyServiceGrpc() {}

  public static final java.lang.String SERVICE_NAME = "taskyard.v1.ApiKeyService";

  // Static method descriptors that strictly reflect the proto.
  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.CreateApiKeyRequest,
      dev.taskyard.v1.CreateApiKeyResponse> getCreateApiKeyMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "CreateApiKey",
      requestType = dev.taskyard.v1.CreateApiKeyRequest.class,
      responseType = dev.taskyard.v1.CreateApiKeyResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.CreateApiKeyRequest,
      dev.taskyard.v1.CreateApiKeyResponse> getCreateApiKeyMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.CreateApiKeyRequest, dev.taskyard.v1.CreateApiKeyResponse> getCreateApiKeyMethod;
    if ((getCreateApiKeyMethod = ApiKeyServiceGrpc.getCreateApiKeyMethod) == null) {
      synchronized (ApiKeyServiceGrpc.class) {
        if ((getCreateApiKeyMethod = ApiKeyServiceGrpc.getCreateApiKeyMethod) == null) {
          ApiKeyServiceGrpc.getCreateApiKeyMethod = getCreateApiKeyMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.CreateApiKeyRequest, dev.taskyard.v1.CreateApiKeyResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "CreateApiKey"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.CreateApiKeyRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.CreateApiKeyResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getCreateApiKeyMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.ListApiKeysRequest,
      dev.taskyard.v1.ListApiKeysResponse> getListApiKeysMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ListApiKeys",
      requestType = dev.taskyard.v1.ListApiKeysRequest.class,
      responseType = dev.taskyard.v1.ListApiKeysResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.ListApiKeysRequest,
      dev.taskyard.v1.ListApiKeysResponse> getListApiKeysMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.ListApiKeysRequest, dev.taskyard.v1.ListApiKeysResponse> getListApiKeysMethod;
    if ((getListApiKeysMethod = ApiKeyServiceGrpc.getListApiKeysMethod) == null) {
      synchronized (ApiKeyServiceGrpc.class) {
        if ((getListApiKeysMethod = ApiKeyServiceGrpc.getListApiKeysMethod) == null) {
          ApiKeyServiceGrpc.getListApiKeysMethod = getListApiKeysMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.ListApiKeysRequest, dev.taskyard.v1.ListApiKeysResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ListApiKeys"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ListApiKeysRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.ListApiKeysResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getListApiKeysMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.WhoAmIRequest,
      dev.taskyard.v1.WhoAmIResponse> getWhoAmIMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "WhoAmI",
      requestType = dev.taskyard.v1.WhoAmIRequest.class,
      responseType = dev.taskyard.v1.WhoAmIResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.WhoAmIRequest,
      dev.taskyard.v1.WhoAmIResponse> getWhoAmIMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.WhoAmIRequest, dev.taskyard.v1.WhoAmIResponse> getWhoAmIMethod;
    if ((getWhoAmIMethod = ApiKeyServiceGrpc.getWhoAmIMethod) == null) {
      synchronized (ApiKeyServiceGrpc.class) {
        if ((getWhoAmIMethod = ApiKeyServiceGrpc.getWhoAmIMethod) == null) {
          ApiKeyServiceGrpc.getWhoAmIMethod = getWhoAmIMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.WhoAmIRequest, dev.taskyard.v1.WhoAmIResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "WhoAmI"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.WhoAmIRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.WhoAmIResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getWhoAmIMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.RevokeApiKeyRequest,
      dev.taskyard.v1.RevokeApiKeyResponse> getRevokeApiKeyMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "RevokeApiKey",
      requestType = dev.taskyard.v1.RevokeApiKeyRequest.class,
      responseType = dev.taskyard.v1.RevokeApiKeyResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.RevokeApiKeyRequest,
      dev.taskyard.v1.RevokeApiKeyResponse> getRevokeApiKeyMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.RevokeApiKeyRequest, dev.taskyard.v1.RevokeApiKeyResponse> getRevokeApiKeyMethod;
    if ((getRevokeApiKeyMethod = ApiKeyServiceGrpc.getRevokeApiKeyMethod) == null) {
      synchronized (ApiKeyServiceGrpc.class) {
        if ((getRevokeApiKeyMethod = ApiKeyServiceGrpc.getRevokeApiKeyMethod) == null) {
          ApiKeyServiceGrpc.getRevokeApiKeyMethod = getRevokeApiKeyMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.RevokeApiKeyRequest, dev.taskyard.v1.RevokeApiKeyResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "RevokeApiKey"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.RevokeApiKeyRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.RevokeApiKeyResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getRevokeApiKeyMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.CreateSignInCodeRequest,
      dev.taskyard.v1.CreateSignInCodeResponse> getCreateSignInCodeMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "CreateSignInCode",
      requestType = dev.taskyard.v1.CreateSignInCodeRequest.class,
      responseType = dev.taskyard.v1.CreateSignInCodeResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.CreateSignInCodeRequest,
      dev.taskyard.v1.CreateSignInCodeResponse> getCreateSignInCodeMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.CreateSignInCodeRequest, dev.taskyard.v1.CreateSignInCodeResponse> getCreateSignInCodeMethod;
    if ((getCreateSignInCodeMethod = ApiKeyServiceGrpc.getCreateSignInCodeMethod) == null) {
      synchronized (ApiKeyServiceGrpc.class) {
        if ((getCreateSignInCodeMethod = ApiKeyServiceGrpc.getCreateSignInCodeMethod) == null) {
          ApiKeyServiceGrpc.getCreateSignInCodeMethod = getCreateSignInCodeMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.CreateSignInCodeRequest, dev.taskyard.v1.CreateSignInCodeResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "CreateSignInCode"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.CreateSignInCodeRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.CreateSignInCodeResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getCreateSignInCodeMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.taskyard.v1.RedeemSignInCodeRequest,
      dev.taskyard.v1.RedeemSignInCodeResponse> getRedeemSignInCodeMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "RedeemSignInCode",
      requestType = dev.taskyard.v1.RedeemSignInCodeRequest.class,
      responseType = dev.taskyard.v1.RedeemSignInCodeResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.taskyard.v1.RedeemSignInCodeRequest,
      dev.taskyard.v1.RedeemSignInCodeResponse> getRedeemSignInCodeMethod() {
    io.grpc.MethodDescriptor<dev.taskyard.v1.RedeemSignInCodeRequest, dev.taskyard.v1.RedeemSignInCodeResponse> getRedeemSignInCodeMethod;
    if ((getRedeemSignInCodeMethod = ApiKeyServiceGrpc.getRedeemSignInCodeMethod) == null) {
      synchronized (ApiKeyServiceGrpc.class) {
        if ((getRedeemSignInCodeMethod = ApiKeyServiceGrpc.getRedeemSignInCodeMethod) == null) {
          ApiKeyServiceGrpc.getRedeemSignInCodeMethod = getRedeemSignInCodeMethod =
              io.grpc.MethodDescriptor.<dev.taskyard.v1.RedeemSignInCodeRequest, dev.taskyard.v1.RedeemSignInCodeResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "RedeemSignInCode"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.RedeemSignInCodeRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.lite.ProtoLiteUtils.marshaller(
                  dev.taskyard.v1.RedeemSignInCodeResponse.getDefaultInstance()))
              .build();
        }
      }
    }
    return getRedeemSignInCodeMethod;
  }

  /**
   * Creates a new async stub that supports all call types for the service
   */
  public static ApiKeyServiceStub newStub(io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<ApiKeyServiceStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<ApiKeyServiceStub>() {
        @java.lang.Override
        public ApiKeyServiceStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new ApiKeyServiceStub(channel, callOptions);
        }
      };
    return ApiKeyServiceStub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports all types of calls on the service
   */
  public static ApiKeyServiceBlockingV2Stub newBlockingV2Stub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<ApiKeyServiceBlockingV2Stub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<ApiKeyServiceBlockingV2Stub>() {
        @java.lang.Override
        public ApiKeyServiceBlockingV2Stub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new ApiKeyServiceBlockingV2Stub(channel, callOptions);
        }
      };
    return ApiKeyServiceBlockingV2Stub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports unary and streaming output calls on the service
   */
  public static ApiKeyServiceBlockingStub newBlockingStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<ApiKeyServiceBlockingStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<ApiKeyServiceBlockingStub>() {
        @java.lang.Override
        public ApiKeyServiceBlockingStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new ApiKeyServiceBlockingStub(channel, callOptions);
        }
      };
    return ApiKeyServiceBlockingStub.newStub(factory, channel);
  }

  /**
   * Creates a new ListenableFuture-style stub that supports unary calls on the service
   */
  public static ApiKeyServiceFutureStub newFutureStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<ApiKeyServiceFutureStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<ApiKeyServiceFutureStub>() {
        @java.lang.Override
        public ApiKeyServiceFutureStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new ApiKeyServiceFutureStub(channel, callOptions);
        }
      };
    return ApiKeyServiceFutureStub.newStub(factory, channel);
  }

  /**
   * <pre>
   * API keys.  An administrator manages all of them, a tenant its own.  Served by taskdb.
   * </pre>
   */
  public interface AsyncService {

    /**
     * <pre>
     * Makes a key.  The secret is in this answer only; so a repeat makes another key.
     * A tenant makes TENANT keys of its own; everything else takes an administrator
     * (PERMISSION_DENIED).  To rotate a key: make another, hand it out, revoke the old one.
     * Errors: NOT_FOUND (NOT_FOUND: tenant); ALREADY_EXISTS; INVALID_ARGUMENT (FIELD_INVALID).
     * </pre>
     */
    default void createApiKey(dev.taskyard.v1.CreateApiKeyRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.CreateApiKeyResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getCreateApiKeyMethod(), responseObserver);
    }

    /**
     * <pre>
     * Lists keys without their secrets.
     * Errors: INVALID_ARGUMENT (PAGE_TOKEN_INVALID).
     * </pre>
     */
    default void listApiKeys(dev.taskyard.v1.ListApiKeysRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ListApiKeysResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getListApiKeysMethod(), responseObserver);
    }

    /**
     * <pre>
     * Returns the key that the call was made with, of any kind.  Safe to repeat.
     * Errors: UNAUTHENTICATED.
     * </pre>
     */
    default void whoAmI(dev.taskyard.v1.WhoAmIRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.WhoAmIResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getWhoAmIMethod(), responseObserver);
    }

    /**
     * <pre>
     * Revokes a key permanently, and with it the keys of its sign-ins: at once on the replica
     * that answers, everywhere else within 10 s; open streams end within 40 s.  Idempotent.
     * Errors: NOT_FOUND.
     * </pre>
     */
    default void revokeApiKey(dev.taskyard.v1.RevokeApiKeyRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.RevokeApiKeyResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getRevokeApiKeyMethod(), responseObserver);
    }

    /**
     * <pre>
     * Makes a code that signs one browser in with the rights of the caller's key.  The code is
     * in this answer only, is valid once and for a few minutes; a repeat makes another code.
     * A key has at most 10 codes: a new one replaces the oldest.
     * </pre>
     */
    default void createSignInCode(dev.taskyard.v1.CreateSignInCodeRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.CreateSignInCodeResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getCreateSignInCodeMethod(), responseObserver);
    }

    /**
     * <pre>
     * Exchanges a sign-in code for a key that has the rights of the key that made the code and
     * ends with it.  Needs no key: the code is the credential.  Not safe to repeat: the code is
     * used up, and after a lost answer another one has to be made.
     * Errors: UNAUTHENTICATED (SIGN_IN_CODE_INVALID).
     * </pre>
     */
    default void redeemSignInCode(dev.taskyard.v1.RedeemSignInCodeRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.RedeemSignInCodeResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getRedeemSignInCodeMethod(), responseObserver);
    }
  }

  /**
   * Base class for the server implementation of the service ApiKeyService.
   * <pre>
   * API keys.  An administrator manages all of them, a tenant its own.  Served by taskdb.
   * </pre>
   */
  public static abstract class ApiKeyServiceImplBase
      implements io.grpc.BindableService, AsyncService {

    @java.lang.Override public final io.grpc.ServerServiceDefinition bindService() {
      return ApiKeyServiceGrpc.bindService(this);
    }
  }

  /**
   * A stub to allow clients to do asynchronous rpc calls to service ApiKeyService.
   * <pre>
   * API keys.  An administrator manages all of them, a tenant its own.  Served by taskdb.
   * </pre>
   */
  public static final class ApiKeyServiceStub
      extends io.grpc.stub.AbstractAsyncStub<ApiKeyServiceStub> {
    private ApiKeyServiceStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected ApiKeyServiceStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new ApiKeyServiceStub(channel, callOptions);
    }

    /**
     * <pre>
     * Makes a key.  The secret is in this answer only; so a repeat makes another key.
     * A tenant makes TENANT keys of its own; everything else takes an administrator
     * (PERMISSION_DENIED).  To rotate a key: make another, hand it out, revoke the old one.
     * Errors: NOT_FOUND (NOT_FOUND: tenant); ALREADY_EXISTS; INVALID_ARGUMENT (FIELD_INVALID).
     * </pre>
     */
    public void createApiKey(dev.taskyard.v1.CreateApiKeyRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.CreateApiKeyResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getCreateApiKeyMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Lists keys without their secrets.
     * Errors: INVALID_ARGUMENT (PAGE_TOKEN_INVALID).
     * </pre>
     */
    public void listApiKeys(dev.taskyard.v1.ListApiKeysRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.ListApiKeysResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getListApiKeysMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Returns the key that the call was made with, of any kind.  Safe to repeat.
     * Errors: UNAUTHENTICATED.
     * </pre>
     */
    public void whoAmI(dev.taskyard.v1.WhoAmIRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.WhoAmIResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getWhoAmIMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Revokes a key permanently, and with it the keys of its sign-ins: at once on the replica
     * that answers, everywhere else within 10 s; open streams end within 40 s.  Idempotent.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public void revokeApiKey(dev.taskyard.v1.RevokeApiKeyRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.RevokeApiKeyResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getRevokeApiKeyMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Makes a code that signs one browser in with the rights of the caller's key.  The code is
     * in this answer only, is valid once and for a few minutes; a repeat makes another code.
     * A key has at most 10 codes: a new one replaces the oldest.
     * </pre>
     */
    public void createSignInCode(dev.taskyard.v1.CreateSignInCodeRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.CreateSignInCodeResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getCreateSignInCodeMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Exchanges a sign-in code for a key that has the rights of the key that made the code and
     * ends with it.  Needs no key: the code is the credential.  Not safe to repeat: the code is
     * used up, and after a lost answer another one has to be made.
     * Errors: UNAUTHENTICATED (SIGN_IN_CODE_INVALID).
     * </pre>
     */
    public void redeemSignInCode(dev.taskyard.v1.RedeemSignInCodeRequest request,
        io.grpc.stub.StreamObserver<dev.taskyard.v1.RedeemSignInCodeResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getRedeemSignInCodeMethod(), getCallOptions()), request, responseObserver);
    }
  }

  /**
   * A stub to allow clients to do synchronous rpc calls to service ApiKeyService.
   * <pre>
   * API keys.  An administrator manages all of them, a tenant its own.  Served by taskdb.
   * </pre>
   */
  public static final class ApiKeyServiceBlockingV2Stub
      extends io.grpc.stub.AbstractBlockingStub<ApiKeyServiceBlockingV2Stub> {
    private ApiKeyServiceBlockingV2Stub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected ApiKeyServiceBlockingV2Stub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new ApiKeyServiceBlockingV2Stub(channel, callOptions);
    }

    /**
     * <pre>
     * Makes a key.  The secret is in this answer only; so a repeat makes another key.
     * A tenant makes TENANT keys of its own; everything else takes an administrator
     * (PERMISSION_DENIED).  To rotate a key: make another, hand it out, revoke the old one.
     * Errors: NOT_FOUND (NOT_FOUND: tenant); ALREADY_EXISTS; INVALID_ARGUMENT (FIELD_INVALID).
     * </pre>
     */
    public dev.taskyard.v1.CreateApiKeyResponse createApiKey(dev.taskyard.v1.CreateApiKeyRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getCreateApiKeyMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Lists keys without their secrets.
     * Errors: INVALID_ARGUMENT (PAGE_TOKEN_INVALID).
     * </pre>
     */
    public dev.taskyard.v1.ListApiKeysResponse listApiKeys(dev.taskyard.v1.ListApiKeysRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getListApiKeysMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Returns the key that the call was made with, of any kind.  Safe to repeat.
     * Errors: UNAUTHENTICATED.
     * </pre>
     */
    public dev.taskyard.v1.WhoAmIResponse whoAmI(dev.taskyard.v1.WhoAmIRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getWhoAmIMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Revokes a key permanently, and with it the keys of its sign-ins: at once on the replica
     * that answers, everywhere else within 10 s; open streams end within 40 s.  Idempotent.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public dev.taskyard.v1.RevokeApiKeyResponse revokeApiKey(dev.taskyard.v1.RevokeApiKeyRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getRevokeApiKeyMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Makes a code that signs one browser in with the rights of the caller's key.  The code is
     * in this answer only, is valid once and for a few minutes; a repeat makes another code.
     * A key has at most 10 codes: a new one replaces the oldest.
     * </pre>
     */
    public dev.taskyard.v1.CreateSignInCodeResponse createSignInCode(dev.taskyard.v1.CreateSignInCodeRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getCreateSignInCodeMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Exchanges a sign-in code for a key that has the rights of the key that made the code and
     * ends with it.  Needs no key: the code is the credential.  Not safe to repeat: the code is
     * used up, and after a lost answer another one has to be made.
     * Errors: UNAUTHENTICATED (SIGN_IN_CODE_INVALID).
     * </pre>
     */
    public dev.taskyard.v1.RedeemSignInCodeResponse redeemSignInCode(dev.taskyard.v1.RedeemSignInCodeRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getRedeemSignInCodeMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do limited synchronous rpc calls to service ApiKeyService.
   * <pre>
   * API keys.  An administrator manages all of them, a tenant its own.  Served by taskdb.
   * </pre>
   */
  public static final class ApiKeyServiceBlockingStub
      extends io.grpc.stub.AbstractBlockingStub<ApiKeyServiceBlockingStub> {
    private ApiKeyServiceBlockingStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected ApiKeyServiceBlockingStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new ApiKeyServiceBlockingStub(channel, callOptions);
    }

    /**
     * <pre>
     * Makes a key.  The secret is in this answer only; so a repeat makes another key.
     * A tenant makes TENANT keys of its own; everything else takes an administrator
     * (PERMISSION_DENIED).  To rotate a key: make another, hand it out, revoke the old one.
     * Errors: NOT_FOUND (NOT_FOUND: tenant); ALREADY_EXISTS; INVALID_ARGUMENT (FIELD_INVALID).
     * </pre>
     */
    public dev.taskyard.v1.CreateApiKeyResponse createApiKey(dev.taskyard.v1.CreateApiKeyRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getCreateApiKeyMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Lists keys without their secrets.
     * Errors: INVALID_ARGUMENT (PAGE_TOKEN_INVALID).
     * </pre>
     */
    public dev.taskyard.v1.ListApiKeysResponse listApiKeys(dev.taskyard.v1.ListApiKeysRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getListApiKeysMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Returns the key that the call was made with, of any kind.  Safe to repeat.
     * Errors: UNAUTHENTICATED.
     * </pre>
     */
    public dev.taskyard.v1.WhoAmIResponse whoAmI(dev.taskyard.v1.WhoAmIRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getWhoAmIMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Revokes a key permanently, and with it the keys of its sign-ins: at once on the replica
     * that answers, everywhere else within 10 s; open streams end within 40 s.  Idempotent.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public dev.taskyard.v1.RevokeApiKeyResponse revokeApiKey(dev.taskyard.v1.RevokeApiKeyRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getRevokeApiKeyMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Makes a code that signs one browser in with the rights of the caller's key.  The code is
     * in this answer only, is valid once and for a few minutes; a repeat makes another code.
     * A key has at most 10 codes: a new one replaces the oldest.
     * </pre>
     */
    public dev.taskyard.v1.CreateSignInCodeResponse createSignInCode(dev.taskyard.v1.CreateSignInCodeRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getCreateSignInCodeMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Exchanges a sign-in code for a key that has the rights of the key that made the code and
     * ends with it.  Needs no key: the code is the credential.  Not safe to repeat: the code is
     * used up, and after a lost answer another one has to be made.
     * Errors: UNAUTHENTICATED (SIGN_IN_CODE_INVALID).
     * </pre>
     */
    public dev.taskyard.v1.RedeemSignInCodeResponse redeemSignInCode(dev.taskyard.v1.RedeemSignInCodeRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getRedeemSignInCodeMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do ListenableFuture-style rpc calls to service ApiKeyService.
   * <pre>
   * API keys.  An administrator manages all of them, a tenant its own.  Served by taskdb.
   * </pre>
   */
  public static final class ApiKeyServiceFutureStub
      extends io.grpc.stub.AbstractFutureStub<ApiKeyServiceFutureStub> {
    private ApiKeyServiceFutureStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected ApiKeyServiceFutureStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new ApiKeyServiceFutureStub(channel, callOptions);
    }

    /**
     * <pre>
     * Makes a key.  The secret is in this answer only; so a repeat makes another key.
     * A tenant makes TENANT keys of its own; everything else takes an administrator
     * (PERMISSION_DENIED).  To rotate a key: make another, hand it out, revoke the old one.
     * Errors: NOT_FOUND (NOT_FOUND: tenant); ALREADY_EXISTS; INVALID_ARGUMENT (FIELD_INVALID).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.CreateApiKeyResponse> createApiKey(
        dev.taskyard.v1.CreateApiKeyRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getCreateApiKeyMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Lists keys without their secrets.
     * Errors: INVALID_ARGUMENT (PAGE_TOKEN_INVALID).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.ListApiKeysResponse> listApiKeys(
        dev.taskyard.v1.ListApiKeysRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getListApiKeysMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Returns the key that the call was made with, of any kind.  Safe to repeat.
     * Errors: UNAUTHENTICATED.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.WhoAmIResponse> whoAmI(
        dev.taskyard.v1.WhoAmIRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getWhoAmIMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Revokes a key permanently, and with it the keys of its sign-ins: at once on the replica
     * that answers, everywhere else within 10 s; open streams end within 40 s.  Idempotent.
     * Errors: NOT_FOUND.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.RevokeApiKeyResponse> revokeApiKey(
        dev.taskyard.v1.RevokeApiKeyRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getRevokeApiKeyMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Makes a code that signs one browser in with the rights of the caller's key.  The code is
     * in this answer only, is valid once and for a few minutes; a repeat makes another code.
     * A key has at most 10 codes: a new one replaces the oldest.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.CreateSignInCodeResponse> createSignInCode(
        dev.taskyard.v1.CreateSignInCodeRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getCreateSignInCodeMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Exchanges a sign-in code for a key that has the rights of the key that made the code and
     * ends with it.  Needs no key: the code is the credential.  Not safe to repeat: the code is
     * used up, and after a lost answer another one has to be made.
     * Errors: UNAUTHENTICATED (SIGN_IN_CODE_INVALID).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.taskyard.v1.RedeemSignInCodeResponse> redeemSignInCode(
        dev.taskyard.v1.RedeemSignInCodeRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getRedeemSignInCodeMethod(), getCallOptions()), request);
    }
  }

  private static final int METHODID_CREATE_API_KEY = 0;
  private static final int METHODID_LIST_API_KEYS = 1;
  private static final int METHODID_WHO_AM_I = 2;
  private static final int METHODID_REVOKE_API_KEY = 3;
  private static final int METHODID_CREATE_SIGN_IN_CODE = 4;
  private static final int METHODID_REDEEM_SIGN_IN_CODE = 5;

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
        case METHODID_CREATE_API_KEY:
          serviceImpl.createApiKey((dev.taskyard.v1.CreateApiKeyRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.CreateApiKeyResponse>) responseObserver);
          break;
        case METHODID_LIST_API_KEYS:
          serviceImpl.listApiKeys((dev.taskyard.v1.ListApiKeysRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.ListApiKeysResponse>) responseObserver);
          break;
        case METHODID_WHO_AM_I:
          serviceImpl.whoAmI((dev.taskyard.v1.WhoAmIRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.WhoAmIResponse>) responseObserver);
          break;
        case METHODID_REVOKE_API_KEY:
          serviceImpl.revokeApiKey((dev.taskyard.v1.RevokeApiKeyRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.RevokeApiKeyResponse>) responseObserver);
          break;
        case METHODID_CREATE_SIGN_IN_CODE:
          serviceImpl.createSignInCode((dev.taskyard.v1.CreateSignInCodeRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.CreateSignInCodeResponse>) responseObserver);
          break;
        case METHODID_REDEEM_SIGN_IN_CODE:
          serviceImpl.redeemSignInCode((dev.taskyard.v1.RedeemSignInCodeRequest) request,
              (io.grpc.stub.StreamObserver<dev.taskyard.v1.RedeemSignInCodeResponse>) responseObserver);
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
          getCreateApiKeyMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.CreateApiKeyRequest,
              dev.taskyard.v1.CreateApiKeyResponse>(
                service, METHODID_CREATE_API_KEY)))
        .addMethod(
          getListApiKeysMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.ListApiKeysRequest,
              dev.taskyard.v1.ListApiKeysResponse>(
                service, METHODID_LIST_API_KEYS)))
        .addMethod(
          getWhoAmIMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.WhoAmIRequest,
              dev.taskyard.v1.WhoAmIResponse>(
                service, METHODID_WHO_AM_I)))
        .addMethod(
          getRevokeApiKeyMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.RevokeApiKeyRequest,
              dev.taskyard.v1.RevokeApiKeyResponse>(
                service, METHODID_REVOKE_API_KEY)))
        .addMethod(
          getCreateSignInCodeMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.CreateSignInCodeRequest,
              dev.taskyard.v1.CreateSignInCodeResponse>(
                service, METHODID_CREATE_SIGN_IN_CODE)))
        .addMethod(
          getRedeemSignInCodeMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.taskyard.v1.RedeemSignInCodeRequest,
              dev.taskyard.v1.RedeemSignInCodeResponse>(
                service, METHODID_REDEEM_SIGN_IN_CODE)))
        .build();
  }

  private static volatile io.grpc.ServiceDescriptor serviceDescriptor;

  public static io.grpc.ServiceDescriptor getServiceDescriptor() {
    io.grpc.ServiceDescriptor result = serviceDescriptor;
    if (result == null) {
      synchronized (ApiKeyServiceGrpc.class) {
        result = serviceDescriptor;
        if (result == null) {
          serviceDescriptor = result = io.grpc.ServiceDescriptor.newBuilder(SERVICE_NAME)
              .addMethod(getCreateApiKeyMethod())
              .addMethod(getListApiKeysMethod())
              .addMethod(getWhoAmIMethod())
              .addMethod(getRevokeApiKeyMethod())
              .addMethod(getCreateSignInCodeMethod())
              .addMethod(getRedeemSignInCodeMethod())
              .build();
        }
      }
    }
    return result;
  }
}
