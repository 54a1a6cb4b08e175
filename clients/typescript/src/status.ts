/** Errors of gRPC to errors of Taskyard: by reason, never by message text. */

import { create, fromBinary } from "@bufbuild/protobuf";
import { anyUnpackTo, durationMs } from "@bufbuild/protobuf/wkt";
import type { ServiceError } from "@grpc/grpc-js";

import type { Context } from "./context.js";
import {
  BY_CODE,
  BY_REASON,
  CertificateUntrusted,
  Code,
  ServerUnreachable,
  TaskyardError,
  Unauthenticated,
  VersionUnsupported,
  type FieldViolation,
} from "./errors.js";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "./gen/google/rpc/error_details_pb.js";
import { StatusSchema, type Status } from "./gen/google/rpc/status_pb.js";

const DOMAIN = "taskyard.v1";
const CODES = Object.values(Code).filter((code) => typeof code !== "string");
const DETAILS_KEY = "grpc-status-details-bin";

/** The error of a status: of a batch item, of a rejected report, or of a call. */
export function fromStatus(status: Status, cause?: unknown): TaskyardError {
  const info = create(ErrorInfoSchema);
  let violations: FieldViolation[] = [];
  let retryAfterMs: number | undefined;
  for (const detail of status.details) {
    anyUnpackTo(detail, ErrorInfoSchema, info);
    const bad = anyUnpackTo(detail, BadRequestSchema, create(BadRequestSchema));
    if (bad) {
      violations = bad.fieldViolations.map((v) => ({ field: v.field, description: v.description, rule: v.reason }));
    }
    const retry = anyUnpackTo(detail, RetryInfoSchema, create(RetryInfoSchema));
    if (retry?.retryDelay) retryAfterMs = durationMs(retry.retryDelay);
  }
  const code = CODES.find((known: number) => known === status.code) ?? Code.UNKNOWN;
  const reason = info.domain === DOMAIN ? info.reason : "";
  const found = BY_REASON[reason] ?? BY_CODE[code] ?? TaskyardError;
  return new found(status.message || reason || Code[code], {
    code,
    reason,
    metadata: info.metadata,
    violations,
    retryAfterMs,
    cause,
  });
}

/** Where a call went, for the message of an error of the connection. */
export interface Target {
  readonly address: string;
  readonly key: string;
  readonly service: string;
  readonly context: Context;
}

/** The error of a failed call; errors of the connection name what is wrong and the remedy. */
export function fromServiceError(failed: ServiceError, target: Target): TaskyardError {
  const [details] = failed.metadata.get(DETAILS_KEY);
  const error =
    details instanceof Uint8Array
      ? fromStatus(fromBinary(StatusSchema, details), failed)
      : fromStatus(create(StatusSchema, { code: failed.code, message: failed.details }), failed);
  const { code, reason, metadata, violations, retryAfterMs } = error;
  const data = { code, reason, metadata, violations, retryAfterMs, cause: failed };
  const where = `${target.address} (from ${target.context.source})`;
  if (error instanceof Unauthenticated) {
    const problem = error.metadata["problem"] || error.message;
    if (!target.key) return new Unauthenticated(`a key is required by the server at ${where}; set TASKYARD_KEY`, data);
    const file = target.key === target.context.key ? target.context.keyFile : "";
    return new Unauthenticated(
      `the key${file && ` in ${file}`} is rejected by the server at ${where}: ${problem};` +
        ` ${file ? "put a key that is in force into it" : "set TASKYARD_KEY to a key that is in force"}`,
      data,
    );
  }
  if (error.reason) return error;
  if (error.code === Code.UNIMPLEMENTED) {
    return new VersionUnsupported(
      `the server at ${where} does not serve ${target.service}, so it is of another major version;` +
        " use the client of its version, or set TASKYARD_ADDRESS to another server",
      data,
    );
  }
  if (error.code !== Code.UNAVAILABLE) return error;
  // The one text that is read: @grpc/grpc-js passes the TLS error of Node on in no other way.
  if (/certificate|altname|SSL routines/i.test(failed.details)) {
    return new CertificateUntrusted(
      `the certificate of the server at ${where} is not trusted (${tlsProblem(failed.details)});` +
        " set TASKYARD_TLS_CA to the file of the CA that issued it",
      data,
    );
  }
  return new ServerUnreachable(
    `no server answers at ${where}; start one with \`make up\` or \`taskyard up\`,` +
      " or set TASKYARD_ADDRESS and TASKYARD_KEY",
    data,
  );
}

function tlsProblem(details: string): string {
  return (/Last error: (?:Error: )?(.*?)(?:\. Resolution note|$)/s.exec(details)?.[1] ?? details).split("\n")[0] ?? "";
}
