/** Reading request bodies as JSON: limits act before memory is taken, and errors say where the fault is. */
import { createAdmissionQueue } from "../admission_queue.ts";
import { GatewayError } from "../errors.ts";
import { isObject, type JsonDocument, JsonError, parseDocument, type ScanPlan } from "../json/mod.ts";
import { LARGE_BODY_BYTES, yieldToEventLoop } from "../scheduler.ts";
import { Utf8Error } from "../text.ts";
import type { PhaseTimers } from "../phase_timers.ts";
import { bodyTooLarge, checkTransfer, declaredLength, type HeaderValues } from "./head.ts";
import { type Coding, inflate, mostInflated, readCoding } from "./inflate.ts";
import type { JsonBody } from "./router.ts";
import { readBytes } from "./read_bytes.ts";
import type { RequestRecord } from "../observe/request_record.ts";
import type { Config } from "../config.ts";

/** Levels of a body in which the gateway reads numbers of its own: parameters, their members, and theirs. */
const PARAMETER_LEVELS = 3;

/** Large compressed bodies of this process are inflated and parsed one at a time. Each takes up to half a second. */
const largeInflated = createAdmissionQueue({
  concurrent: 1,
  waiting: 64,
  waitMs: 60_000,
  busy: () =>
    new GatewayError("limited", "Cannot inflate another large body now: too many are waiting", { retryAfterMs: 2_000 }),
});

/** Error for a body without content. */
export const EMPTY_BODY = "Cannot read the body: it is empty, expected a JSON object";

/** The rules that apply to reading. */
export interface BodyRules {
  /** Headers of the request. */
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
 * nothing stays reserved. Curl's default media types are read as JSON. The size limit applies
 * both to the body as sent and to the inflated body.
 * @param scan members that need not be parsed
 * @throws {GatewayError} `too_large`, `too_slow`, `unsupported_media_type`, `limited` or `invalid`
 */
export async function readJsonBody(request: Request, rules: BodyRules, scan?: ScanPlan): Promise<ReadBody> {
  const { headers, limits, timers } = rules;
  checkMediaType(headers);
  const coding = headers.get("content-encoding") === null ? undefined : readCoding(headers);
  const length = declaredLength(headers);
  if (length !== undefined && length > limits.jsonBytes) throw bodyTooLarge(limits.jsonBytes);
  const sent = new HeldBytes(rules);
  try {
    const bytes = await readBytes(request, { limits, keeper: sent, length, timers });
    if (coding !== undefined) return await parseInflated(bytes, { coding, sent, request, rules, scan });
    sent.takeForParsing();
    return { body: await parseBody(bytes, scan), bytes: sent.bytes, reservedBytes: sent.reservedBytes };
  } catch (error) {
    sent.release();
    throw error;
  }
}

/** A compressed body that was read. */
interface CompressedBody {
  coding: Coding;
  sent: HeldBytes;
  request: Request;
  rules: BodyRules;
  scan: ScanPlan | undefined;
}

/** Inflates and parses a body. Large ones wait for each other: a few kilobytes sent must not take the memory of many. */
async function parseInflated(
  bytes: Uint8Array<ArrayBuffer>,
  { coding, sent, request, rules, scan }: CompressedBody,
): Promise<ReadBody> {
  const isLarge = mostInflated(bytes, coding) > LARGE_BODY_BYTES;
  const leave = isLarge ? await largeInflated.enter(request.signal) : undefined;
  const inflated = new HeldBytes(rules);
  try {
    const { limits: { jsonBytes: limitBytes } } = rules;
    const whole = await inflate(bytes, { coding, limitBytes, reserve: (size) => inflated.take(size) });
    sent.release();
    inflated.takeForParsing();
    return { body: await parseBody(whole, scan), bytes: inflated.bytes, reservedBytes: inflated.reservedBytes };
  } catch (error) {
    inflated.release();
    throw error;
  } finally {
    leave?.();
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

/** Bytes of one body in memory: within the limit of a body, and the budget of all. */
class HeldBytes {
  bytes = 0;
  /** With the memory for parsing. */
  reservedBytes = 0;
  readonly #rules: BodyRules;

  constructor(rules: BodyRules) {
    this.#rules = rules;
  }

  /** Reserves memory for bytes. @throws {GatewayError} `too_large`, `limited` */
  take(size: number): void {
    const { limits, budget } = this.#rules;
    if (this.bytes + size > limits.jsonBytes) throw bodyTooLarge(limits.jsonBytes);
    budget.reserve(size, limits.budgetBytes);
    this.bytes += size;
    this.reservedBytes += size;
  }

  /** Reserves the memory that parsing the bytes as JSON needs. @throws {GatewayError} `limited` if there is no room */
  takeForParsing(): void {
    const { limits, budget } = this.#rules;
    const size = this.bytes * (JSON_MEMORY_FACTOR - 1);
    budget.reserve(size, limits.budgetBytes);
    this.reservedBytes += size;
  }

  release(): void {
    this.#rules.budget.release(this.reservedBytes);
    this.bytes = 0;
    this.reservedBytes = 0;
  }
}

/** Receives the progress of a body. */
export interface BodyProgress {
  record: Pick<RequestRecord, "bytesIn">;
  /** Called when all of the body is there. */
  bodyArrived: () => void;
}

/** Reads the body of one request, once. */
export class RequestBody {
  readonly #request: Request;
  readonly #rules: BodyRules;
  readonly #progress: BodyProgress;
  #reading: Promise<JsonBody> | undefined;
  #reserved = 0;
  #isOver = false;

  constructor(request: Request, rules: BodyRules, progress: BodyProgress) {
    this.#request = request;
    this.#rules = rules;
    this.#progress = progress;
  }

  /** As `RouteContext.readJson`. */
  readJson(scan?: ScanPlan): Promise<JsonBody> {
    return this.#reading ??= this.#read(scan);
  }

  /** As `RouteContext.readForm`. */
  async readForm(): Promise<URLSearchParams> {
    const { limits, timers, headers } = this.#rules;
    if (!/^application\/x-www-form-urlencoded\b/i.test(headers.get("content-type") ?? "")) {
      throw new GatewayError("unsupported_media_type", "Cannot read this body: expected the fields of a form");
    }
    let bytes = 0;
    const keeper = {
      take: (more: number) => {
        bytes += more;
        if (bytes > limits.jsonBytes) throw bodyTooLarge(limits.jsonBytes);
        this.reserve(more);
      },
    };
    try {
      const body = await readBytes(this.#request, { limits, keeper, length: declaredLength(headers), timers });
      return new URLSearchParams(new TextDecoder().decode(body));
    } finally {
      this.#progress.bodyArrived();
    }
  }

  /** As `RouteContext.reserve`. */
  reserve(bytes: number, received: number = bytes): void {
    const { budget, limits } = this.#rules;
    budget.reserve(bytes, limits.budgetBytes);
    this.#reserved += bytes;
    this.#progress.record.bytesIn += received;
  }

  /** Gives the memory back. `isAnswered`: false where the handler has thrown, and may not wait for the body. */
  release(isAnswered: boolean): void {
    this.#isOver = true;
    this.#rules.budget.release(this.#reserved);
    if (!isAnswered) this.#reading?.catch(() => {});
  }

  async #read(scan: ScanPlan | undefined): Promise<JsonBody> {
    const { record, bodyArrived } = this.#progress;
    try {
      const { body, bytes, reservedBytes } = await readJsonBody(this.#request, this.#rules, scan);
      record.bytesIn += bytes;
      if (this.#isOver) this.#rules.budget.release(reservedBytes);
      else this.#reserved += reservedBytes;
      if (bytes > LARGE_BODY_BYTES) await yieldToEventLoop();
      return body;
    } finally {
      bodyArrived();
    }
  }
}

/** Limits of one request body. */
export interface BodyLimits {
  /** Bytes of one JSON body. */
  jsonBytes: number;
  /** Memory of all request bodies that are being handled in bytes. */
  budgetBytes: number;
  /** Longest time without a byte. */
  gapMs: number;
  /** Time before the rate is looked at. */
  graceMs: number;
  /** Lowest mean rate after the grace time. */
  minBytesPerSecond: number;
  /** Longest time for the whole body. */
  totalMs: number;
}

/**
 * Memory that a JSON body takes while it is read and its tokens are counted, in times of its size: its bytes, its text, its
 * values. Measured with bodies of 32 MB, which took 100 to 130 MB.
 */
export const JSON_MEMORY_FACTOR = 4;

/** The operator's limits. */
export function bodyLimits({ limits }: Config): BodyLimits {
  return {
    jsonBytes: limits.json_body_bytes,
    budgetBytes: limits.body_budget_bytes,
    gapMs: limits.body_gap_ms,
    graceMs: limits.body_grace_ms,
    minBytesPerSecond: limits.body_min_bytes_per_second,
    totalMs: limits.body_total_ms,
  };
}

/** When to try again after the memory for bodies was used up, in milliseconds. */
const BUDGET_RETRY_MS = 1_000;

/**
 * Share of the budget that the bodies of one API key may take together, so that no key fills it for the others. A body may
 * take more while it is the only one in memory.
 */
const KEY_SHARE = 3 / 4;

/** Bytes of request bodies in memory, counted over all requests. */
export class BodyBudget {
  #usedBytes = 0;
  /** Keys whose bodies take nothing are not kept. */
  readonly #usedByKey = new Map<string, number>();

  /** Bytes taken and not yet given back. */
  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** Starts the reservation of one request. @param keyId absent: no key counts for its body */
  open(keyId?: string): BodyReservation {
    let ownBytes = 0;
    const add = (bytes: number) => {
      ownBytes += bytes;
      this.#usedBytes += bytes;
      if (keyId === undefined) return;
      const ofKey = (this.#usedByKey.get(keyId) ?? 0) + bytes;
      if (ofKey > 0) this.#usedByKey.set(keyId, ofKey);
      else this.#usedByKey.delete(keyId);
    };
    return {
      reserve: (bytes, limitBytes) => {
        if (this.#usedBytes + bytes > limitBytes) throw noRoom("too many bytes are being handled");
        const ofKey = keyId === undefined ? 0 : (this.#usedByKey.get(keyId) ?? 0) + bytes;
        const isAlone = this.#usedBytes === ownBytes;
        if (ofKey > limitBytes * KEY_SHARE && !isAlone) {
          throw noRoom("too many bytes of this API key are being handled");
        }
        add(bytes);
      },
      release: (bytes) => add(-bytes),
    };
  }
}

/** Bytes of one request's body in the budget. */
export interface BodyReservation {
  /** Takes bytes. @throws {GatewayError} `limited` where the limit, or the share of its key, leaves too few */
  reserve(bytes: number, limitBytes: number): void;
  /** Gives bytes back. */
  release(bytes: number): void;
}

function noRoom(reason: string): GatewayError {
  return new GatewayError("limited", `Cannot take another request body now: ${reason}`, {
    retryAfterMs: BUDGET_RETRY_MS,
  });
}
