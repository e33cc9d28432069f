/** Parses the bytes of a request body as a JSON object. */
import { GatewayError } from "../errors.ts";
import {
  isObject,
  JSON_LIMITS,
  type JsonDocument,
  JsonError,
  type JsonLimits,
  type JsonObject,
  parseDocument,
  type ScanPlan,
} from "../json/mod.ts";
import { Utf8Error } from "../text.ts";

/** A request body: the JSON text and its value. */
export interface JsonBody extends JsonDocument {
  readonly value: JsonObject;
}

/**
 * Returns the members of a body without parsing what a scan has recognized: such members are 0 in the result. Without a
 * scan it is the whole value.
 */
export function headOf(body: Pick<JsonBody, "scanned" | "value">): JsonObject {
  return body.scanned?.head ?? body.value;
}

/** Levels of nesting in which the gateway itself reads numbers: parameters, their members, and the members of those. */
const PARAMETER_LEVELS = 3;

/** Error for a body without content. */
export const EMPTY_BODY = "Cannot read the body: it is empty, expected a JSON object";

/**
 * Duplicate member names are errors: parsers differ in which of them they use, and an upstream must read what the
 * gateway has checked.
 */
const BODY_LIMITS: JsonLimits = { ...JSON_LIMITS, unique: Infinity };

/** Parses a request body. @param scan members that need not be parsed @throws {GatewayError} `invalid` */
export async function parseBody(bytes: Uint8Array<ArrayBuffer>, scan?: ScanPlan): Promise<JsonBody> {
  const options = { limits: BODY_LIMITS, doubleLevels: PARAMETER_LEVELS, scan };
  const document = await parseDocument(bytes, options).catch((error) => {
    throw badBody(bytes, error);
  });
  // A scan succeeds only if the body is an object.
  if (document.scanned === undefined && !isObject(document.value)) {
    throw new GatewayError("invalid", "Cannot read the body: expected a JSON object");
  }
  return document as JsonBody;
}

function badBody(bytes: Uint8Array, cause: unknown): unknown {
  if (cause instanceof Utf8Error) {
    return new GatewayError("invalid", `Cannot read the body: byte ${cause.offset} is not UTF-8`, { cause });
  }
  if (!(cause instanceof JsonError)) return cause;
  if (isBlank(bytes)) return new GatewayError("invalid", EMPTY_BODY);
  const { line, column } = cause.where ?? { line: 1, column: cause.position + 1 };
  const where = `position ${cause.position} (line ${line}, column ${column})`;
  return new GatewayError("invalid", `Cannot read the body as JSON: ${cause.message} at ${where}`, { cause });
}

/** Returns true for a body of white space only, with or without a byte order mark before it. */
function isBlank(bytes: Uint8Array): boolean {
  const start = bytes[0] === 0xef ? 3 : 0;
  return bytes.subarray(start).every((code) => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09);
}
