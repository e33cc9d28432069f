/** Reading request bodies as JSON: limits act before memory is taken, and errors say where the fault is. */
import { GatewayError } from "../errors.ts";
import { isObject, type JsonDocument, JsonError, parseDocument, type ScanPlan } from "../json/mod.ts";
import { LARGE_BODY_BYTES } from "../scheduler.ts";
import { Utf8Error } from "../text.ts";
import type { PhaseTimers } from "../phase_timers.ts";
import { bodyTooLarge, checkTransfer, declaredLength } from "./body_head.ts";
import { type BodyLimits, type BodyReservation, JSON_MEMORY_FACTOR } from "./body_limits.ts";
import type { HeaderValues } from "./head.ts";
import { type Coding, inflate, mostInflated, readCoding } from "./inflate.ts";
import { InflateQueue } from "./inflate_queue.ts";
import type { JsonBody } from "./router.ts";
import { readBytes } from "./read_bytes.ts";

/** Levels of a body in which the gateway reads numbers of its own: parameters, their members, and theirs. */
const PARAMETER_LEVELS = 3;

/** Those of this isolate. */
const largeInflated = new InflateQueue();

/** Error for a body without content. */
export const EMPTY_BODY = "Cannot read the body: it is empty, expected a JSON object";

/** The rules that apply to reading. */
export interface BodyRules {
  /** Those of the request. */
  headers: HeaderValues;
  limits: BodyLimits;
  budget: BodyReservation;
  timers: PhaseTimers;
}

/** A body that was read. */
export interface ReadBody {
  body: JsonBody;
  /** Its size, inflated. */
  bytes: number;
  /** Bytes that the body has reserved in the budget. */
  reservedBytes: number;
}

/**
 * Reads the body as a JSON object. `reservedBytes` stay reserved in the budget until the caller releases them; on failure
 * nothing stays reserved. Curl's default media types are read as JSON. The limit holds for the body as it is sent and as
 * it is inflated.
 * @param scan members that need not be parsed
 * @throws {GatewayError} `too_large`, `too_slow`, `unsupported_media_type`, `limited` or `invalid`
 */
export async function readJsonBody(request: Request, rules: BodyRules, scan?: ScanPlan): Promise<ReadBody> {
  const { headers, limits, timers } = rules;
  checkMediaType(headers);
  const coding = readCoding(headers);
  const length = declaredLength(headers);
  if (length !== undefined && length > limits.jsonBytes) throw bodyTooLarge(limits.jsonBytes);
  const sent = new Held(rules);
  try {
    const bytes = await readBytes(request, { limits, keeper: sent, length, timers });
    if (coding !== undefined) return await parseInflated(bytes, { coding, sent, rules, scan });
    sent.takeForReading();
    return readBodyOf(await parseBody(bytes, scan), sent);
  } catch (error) {
    sent.release();
    throw error;
  }
}

function parseInflated(
  bytes: Uint8Array<ArrayBuffer>,
  { coding, sent, rules, scan }: { coding: Coding; sent: Held; rules: BodyRules; scan: ScanPlan | undefined },
): Promise<ReadBody> {
  return mostInflated(bytes, coding) > LARGE_BODY_BYTES ? largeInflated.run(parse) : parse();

  async function parse(): Promise<ReadBody> {
    const inflated = new Held(rules);
    try {
      const { limits: { jsonBytes: limitBytes } } = rules;
      const whole = await inflate(bytes, { coding, limitBytes, reserve: (size) => inflated.take(size) });
      sent.release();
      inflated.takeForReading();
      return readBodyOf(await parseBody(whole, scan), inflated);
    } catch (error) {
      inflated.release();
      throw error;
    }
  }
}

function checkMediaType(headers: HeaderValues): void {
  checkTransfer(headers);
  const type = headers.get("content-type");
  if (type === null || type === "application/json") return;
  if (/^\s*multipart\//i.test(type)) {
    throw new GatewayError(
      "unsupported_media_type",
      "Cannot read a multipart body here: send JSON with Content-Type: application/json",
    );
  }
  const charset = /;\s*charset\s*=\s*"?([^";\s]*)/i.exec(type)?.[1];
  if (charset !== undefined && !/^(utf-?8|us-ascii)$/i.test(charset)) {
    throw new GatewayError(
      "unsupported_media_type",
      "Cannot read this charset: send JSON in UTF-8 with Content-Type: application/json",
    );
  }
}

function readBodyOf(body: JsonBody, { bytes, reservedBytes }: Held): ReadBody {
  return { body, bytes, reservedBytes };
}

/** Parses a request body. @throws {GatewayError} `invalid` */
export async function parseBody(bytes: Uint8Array<ArrayBuffer>, scan?: ScanPlan): Promise<JsonBody> {
  const document = await parseDocument(bytes, { doubleLevels: PARAMETER_LEVELS, scan }).catch((error) => {
    throw badBody(bytes, error);
  });
  if (!hasObject(document)) throw new GatewayError("invalid", "Cannot read the body: expected a JSON object");
  return document;
}

function hasObject(document: JsonDocument): document is JsonBody {
  return document.scanned !== undefined || isObject(document.value);
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

/** True for white space alone, a byte order mark before it aside. */
function isBlank(bytes: Uint8Array): boolean {
  const start = bytes[0] === 0xef ? 3 : 0;
  return bytes.subarray(start).every((code) => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09);
}

/** Bytes of one body that are held in memory: within the limit of a body, and the budget of all. */
class Held {
  bytes = 0;
  #forReading = 0;
  readonly #rules: BodyRules;

  constructor(rules: BodyRules) {
    this.#rules = rules;
  }

  take(size: number): void {
    const { limits, budget } = this.#rules;
    if (this.bytes + size > limits.jsonBytes) throw bodyTooLarge(limits.jsonBytes);
    budget.reserve(size, limits.budgetBytes);
    this.bytes += size;
  }

  get reservedBytes(): number {
    return this.bytes + this.#forReading;
  }

  /** Reserves the memory that parsing the bytes as JSON needs. @throws {GatewayError} `limited` if there is no room */
  takeForReading(): void {
    const { limits, budget } = this.#rules;
    const size = this.bytes * (JSON_MEMORY_FACTOR - 1);
    budget.reserve(size, limits.budgetBytes);
    this.#forReading = size;
  }

  release(): void {
    this.#rules.budget.release(this.reservedBytes);
    this.bytes = 0;
    this.#forReading = 0;
  }
}
