/** Values of JavaScript to and from the payload of a task: bytes unchanged, anything else as JSON. */

import { create, isMessage } from "@bufbuild/protobuf";

import { PayloadSchema, type Payload } from "./gen/taskyard/v1/common_pb.js";

const JSON_TYPE = "application/json";
const BYTES_TYPE = "application/octet-stream";

/** The payload of a value, or the payload itself; undefined is no payload. Raw and not Struct: exact. */
export function toPayload(value: unknown): Payload | undefined {
  if (value === undefined || isMessage(value, PayloadSchema)) return value;
  if (value instanceof Uint8Array) {
    return create(PayloadSchema, { value: { case: "raw", value }, contentType: BYTES_TYPE });
  }
  const raw = new TextEncoder().encode(JSON.stringify(value));
  return create(PayloadSchema, { value: { case: "raw", value: raw }, contentType: JSON_TYPE });
}

/** The document of a JSON payload, the bytes of another; undefined if there is none. */
export function fromPayload(payload: Payload | undefined): unknown {
  if (payload?.value.case === "json") return payload.value.value;
  if (payload?.value.case !== "raw") return undefined;
  const mediaType = (payload.contentType.split(";")[0] ?? "").trim() || JSON_TYPE;
  const raw = payload.value.value;
  return mediaType === JSON_TYPE ? (JSON.parse(new TextDecoder().decode(raw)) as unknown) : raw;
}
