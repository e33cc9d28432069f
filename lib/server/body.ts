/** Reads request bodies as JSON or as form fields. Limits are checked before memory is allocated. */
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
import { LONG_REQUEST_BYTES, yieldToEventLoop } from "../scheduler.ts";
import { Utf8Error } from "../text.ts";
import type { PhaseTimers } from "../phase_timers.ts";
import { bodyTooLarge, checkCodings, type HeaderValues } from "./head.ts";
import { readBytes } from "./read_bytes.ts";
import type { RequestRecord } from "../observe/request_record.ts";
import type { Config } from "../config.ts";

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

/** The rules for reading one body. */
export interface BodyRules {
  /** Headers of the request. */
  headers: HeaderValues;
  limits: BodyLimits;
  budget: BodyReservation;
  timers: PhaseTimers;
}

function checkMediaType(headers: HeaderValues): void {
  checkCodings(headers);
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

/** Receives the progress of a body. */
export interface BodyProgress {
  record: Pick<RequestRecord, "bytesIn">;
  /** Called when the body has arrived completely, or reading has failed. */
  bodyArrived: () => void;
}

/** Reads the body of one request, once. Its memory stays reserved until `release`, a part of it perhaps longer. */
export class RequestBody {
  readonly #request: Request;
  readonly #rules: BodyRules;
  readonly #progress: BodyProgress;
  #reading: Promise<JsonBody> | undefined;
  /** Size of the body. */
  #bytes = 0;
  #isReleased = false;
  /** Resolves when the body is no longer used; undefined: it is not used after `release`. */
  #end: Promise<unknown> | undefined;
  #answerBytes = 0;

  constructor(request: Request, rules: BodyRules, progress: BodyProgress) {
    this.#request = request;
    this.#rules = rules;
    this.#progress = progress;
  }

  /**
   * Reads the body as a JSON object, within the limits of size, time and nesting. Further calls return the same body. A
   * body without a media type, or with curl's default one, is read as JSON, too.
   * @param scan members that need not be parsed
   * @throws {GatewayError} `too_large`, `too_slow`, `unsupported_media_type`, `limited` or `invalid`
   */
  readJson(scan?: ScanPlan): Promise<JsonBody> {
    return this.#reading ??= this.#readJson(scan);
  }

  async #readJson(scan: ScanPlan | undefined): Promise<JsonBody> {
    const { headers, budget, limits } = this.#rules;
    const { record, bodyArrived } = this.#progress;
    try {
      checkMediaType(headers);
      const bytes = await readBytes(this.#request, this.#rules, this);
      budget.reserve(this.#bytes * (JSON_MEMORY_FACTOR - 1), limits.budgetBytes);
      const body = await parseBody(bytes, scan);
      record.bytesIn += this.#bytes;
      if (this.#bytes > LONG_REQUEST_BYTES) await yieldToEventLoop();
      return body;
    } finally {
      bodyArrived();
      if (this.#isReleased) budget.release();
    }
  }

  /**
   * Reads the fields of a form that a browser sends, within the limits of size and time. May be called once.
   * @throws {GatewayError} `too_large`, `too_slow`, `unsupported_media_type` or `limited`
   */
  async readForm(): Promise<URLSearchParams> {
    if (!/^application\/x-www-form-urlencoded\b/i.test(this.#rules.headers.get("content-type") ?? "")) {
      throw new GatewayError("unsupported_media_type", "Cannot read this body: expected the fields of a form");
    }
    try {
      const body = await readBytes(this.#request, this.#rules, this);
      this.#progress.record.bytesIn += this.#bytes;
      return new URLSearchParams(new TextDecoder().decode(body));
    } finally {
      this.#progress.bodyArrived();
    }
  }

  /** Reports that a body which the handler reads by itself has arrived completely. */
  arrived(): void {
    this.#progress.bodyArrived();
  }

  /**
   * Reserves memory for a body that the handler reads by itself, until the handler has returned its response and the
   * promise of `keepUntil` has resolved.
   * @param bytes memory to reserve, in bytes
   * @param received how many of the bytes the client has sent; absent: all
   * @throws {GatewayError} `limited` if all bodies, or those of the caller's key, take too much memory
   */
  reserve(bytes: number, received: number = bytes): void {
    const { budget, limits } = this.#rules;
    budget.reserve(bytes, limits.budgetBytes);
    this.#progress.record.bytesIn += received;
  }

  /**
   * Reserves memory for a large answer before it is made or read, until the handler has returned its response. An
   * answer that exceeds a key's share of the memory counts as the whole share.
   * @throws {GatewayError} `limited` if all bodies and large answers, or those of the caller's key, take too much memory
   */
  reserveAnswer(bytes: number): void {
    const { budget, limits: { budgetBytes: limitBytes } } = this.#rules;
    // More would be refused even if nothing else was in memory.
    budget.reserve(Math.min(bytes, Math.max(0, Math.floor(limitBytes * KEY_SHARE) - budget.bytes)), limitBytes);
  }

  /**
   * Reports the size of an answer in memory if its response does not state it. Large answers count until they are sent.
   */
  holdAnswer(bytes: number): void {
    this.#answerBytes = bytes;
  }

  /**
   * Counts a large answer among the bodies until it was sent, since its client decides how long that takes.
   * @param bytes size of the answer, if no handler has called `holdAnswer`
   * @param info `completed` resolves when the answer was sent, or its client has disconnected
   */
  keepAnswer(bytes: number, info: Pick<Deno.ServeHandlerInfo, "completed">): void {
    const answerBytes = this.#answerBytes || bytes;
    if (answerBytes < MIN_KEPT_BYTES) return;
    const { budget, limits } = this.#rules;
    const release = budget.hold(answerBytes, limits.budgetBytes);
    info.completed.then(release, release);
  }

  /** Reserves memory for bytes of the body. @throws {GatewayError} `too_large`, `limited` */
  take(bytes: number): void {
    const { budget, limits } = this.#rules;
    if (this.#bytes + bytes > limits.jsonBytes) throw bodyTooLarge(limits.jsonBytes);
    budget.reserve(bytes, limits.budgetBytes);
    this.#bytes += bytes;
  }

  /**
   * Keeps the size of the body reserved after `release` until a promise resolves: a stream, and an answer that is read to
   * its end for the bill, need the text of the body, to count its tokens or to repeat a part of it.
   */
  keepUntil(end: Promise<unknown>): void {
    this.#end = end;
  }

  /** Releases the memory. @param isAnswered false if the handler has thrown, possibly while the body was being read */
  release(isAnswered: boolean): void {
    this.#isReleased = true;
    const { budget } = this.#rules;
    const { bytes } = budget;
    const keptBytes = this.#reading === undefined ? bytes : Math.ceil(bytes / JSON_MEMORY_FACTOR);
    if (this.#end === undefined || keptBytes < MIN_KEPT_BYTES) budget.release();
    else {
      budget.keep(keptBytes);
      void this.#end.then(() => budget.release());
    }
    if (!isAnswered) this.#reading?.catch(() => {});
  }
}

/** Limits of one request body. */
export interface BodyLimits {
  /** Largest JSON body, in bytes. */
  jsonBytes: number;
  /** Maximum memory that all request bodies of the process may take together, in bytes. */
  budgetBytes: number;
  /** Longest time without a byte, in milliseconds. */
  gapMs: number;
  /** Time before the rate is checked, in milliseconds. */
  graceMs: number;
  /** Lowest mean rate after the grace time. */
  minBytesPerSecond: number;
  /** Longest time for the whole body, in milliseconds. */
  totalMs: number;
}

/**
 * Memory of a JSON body while it is read and its tokens are counted, as a multiple of its size: its bytes, its text and
 * its values. Measured: bodies of 32 MB took 100 to 130 MB.
 */
export const JSON_MEMORY_FACTOR = 4;

/** Smallest body that stays reserved until the end of its answer, and smallest answer that counts until it was sent. */
const MIN_KEPT_BYTES = 65_536;

/** Returns the limits of request bodies in a configuration. */
export function bodyLimits({ resource_limits: limits }: Config): BodyLimits {
  return {
    jsonBytes: limits.json_body_bytes,
    budgetBytes: limits.body_budget_bytes,
    gapMs: limits.body_gap_ms,
    graceMs: limits.body_grace_ms,
    minBytesPerSecond: limits.body_min_bytes_per_second,
    totalMs: limits.body_total_ms,
  };
}

/** Time after which a client may retry if the memory for bodies is used up, in milliseconds. */
const BUDGET_RETRY_MS = 1_000;

/**
 * Share of the budget that the bodies of one API key may take together, so that no key can use up the whole budget. A
 * body may take more while no other is being read, and those that answers keep take at most the rest of the budget.
 */
const KEY_SHARE = 3 / 4;

/** Counts the bytes of all request bodies in memory. */
export class BodyBudget {
  /** Bytes that are reserved and not yet released. */
  usedBytes = 0;
  /** The part of them whose bodies have been read and are kept for their answers. */
  keptBytes = 0;
  /** The same by API key. Keys without reserved bytes are not in the map. */
  readonly usedByKey = new Map<string, number>();

  /** Adds bytes, or subtracts them if negative. For `BodyReservation` only. */
  add(bytes: number, keyId: string | undefined): void {
    this.usedBytes += bytes;
    if (keyId === undefined) return;
    const ofKey = (this.usedByKey.get(keyId) ?? 0) + bytes;
    if (ofKey > 0) this.usedByKey.set(keyId, ofKey);
    else this.usedByKey.delete(keyId);
  }
}

/** The bytes that one request's body has reserved in the budget. */
export class BodyReservation {
  readonly #budget: BodyBudget;
  readonly #keyId: string | undefined;
  #bytes = 0;
  #isKept = false;

  /** @param keyId API key that the body counts against; absent for a request without a key */
  constructor(budget: BodyBudget, keyId?: string) {
    this.#budget = budget;
    this.#keyId = keyId;
  }

  /** Bytes that are reserved. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Reserves bytes. @throws {GatewayError} `limited` if the limit, or the share of the key, leaves too few */
  reserve(bytes: number, limitBytes: number): void {
    const { usedBytes, keptBytes } = this.#budget;
    if (usedBytes + bytes > limitBytes) throw noRoom("too many bytes are being handled");
    const ofKey = this.#keyId === undefined ? 0 : (this.#budget.usedByKey.get(this.#keyId) ?? 0) + bytes;
    const isAlone = usedBytes - keptBytes === this.#bytes && keptBytes <= limitBytes * (1 - KEY_SHARE);
    if (ofKey > limitBytes * KEY_SHARE && !isAlone) throw noRoom("too many bytes of this API key are being handled");
    this.#bytes += bytes;
    this.#budget.add(bytes, this.#keyId);
  }

  /** Releases all but some bytes, which an answer keeps. Nothing may be reserved until they are released. */
  keep(bytes: number): void {
    this.release(this.#bytes - bytes);
    this.#isKept = true;
    this.#budget.keptBytes += bytes;
  }

  /**
   * Counts the bytes of an answer that is already in memory, so that it cannot be refused. Together with all else of its
   * key, it counts at most as much as a key may take: the rest is left to other keys.
   * @returns a function that ends this; it is called once
   */
  hold(bytes: number, limitBytes: number): () => void {
    const budget = this.#budget;
    const keyId = this.#keyId;
    const ofKey = keyId === undefined ? 0 : budget.usedByKey.get(keyId) ?? 0;
    const held = Math.max(0, Math.min(bytes, Math.floor(limitBytes * KEY_SHARE) - ofKey));
    budget.add(held, keyId);
    budget.keptBytes += held;
    return () => {
      budget.add(-held, keyId);
      budget.keptBytes -= held;
    };
  }

  /** Releases bytes. @param bytes absent: all that are reserved */
  release(bytes: number = this.#bytes): void {
    this.#bytes -= bytes;
    this.#budget.add(-bytes, this.#keyId);
    if (this.#isKept) this.#budget.keptBytes -= bytes;
    this.#isKept &&= this.#bytes > 0;
  }
}

function noRoom(reason: string): GatewayError {
  return new GatewayError("limited", `Cannot accept another request body now: ${reason}`, {
    retryAfterMs: BUDGET_RETRY_MS,
  });
}
