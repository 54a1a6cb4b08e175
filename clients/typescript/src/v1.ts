/** The messages and services of the contract, taskyard.v1. */

export * from "./gen/taskyard/v1/admin_service_pb.js";
export * from "./gen/taskyard/v1/api_key_pb.js";
export * from "./gen/taskyard/v1/api_key_service_pb.js";
export * from "./gen/taskyard/v1/audit_pb.js";
export * from "./gen/taskyard/v1/checkpoint_pb.js";
export * from "./gen/taskyard/v1/common_pb.js";
export * from "./gen/taskyard/v1/errors_pb.js";
export * from "./gen/taskyard/v1/explain_service_pb.js";
export * from "./gen/taskyard/v1/lease_pb.js";
export * from "./gen/taskyard/v1/lease_service_pb.js";
export * from "./gen/taskyard/v1/log_pb.js";
export * from "./gen/taskyard/v1/runner_link_service_pb.js";
export * from "./gen/taskyard/v1/runner_pb.js";
export * from "./gen/taskyard/v1/runner_service_pb.js";
export * from "./gen/taskyard/v1/schedule_pb.js";
export * from "./gen/taskyard/v1/schedule_service_pb.js";
export * from "./gen/taskyard/v1/session_service_pb.js";
export * from "./gen/taskyard/v1/task_pb.js";
export * from "./gen/taskyard/v1/task_service_pb.js";
export * from "./gen/taskyard/v1/task_type_pb.js";
export * from "./gen/taskyard/v1/task_type_service_pb.js";
export * from "./gen/taskyard/v1/tenant_pb.js";
export * from "./gen/taskyard/v1/tenant_service_pb.js";
export * from "./gen/taskyard/v1/work_service_pb.js";
