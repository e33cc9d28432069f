/** Reading request bodies: limits act before memory is taken, and a slow client is told so. */
import { GatewayError } from "../errors.ts";
import { isObject, JsonError, type JsonObject, parseJson } from "../json.ts";
import { firstBadByte } from "./utf8.ts";

/** What a request body may cost at most. */
export interface BodyLimits {
  /** Bytes of one JSON body. */
  jsonBytes: number;
  /** Bytes of all request bodies that are being handled, in the whole process. */
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

/** Limits where the operator says nothing else. */
export const BODY_LIMITS: BodyLimits = {
  jsonBytes: 32 * 1024 * 1024,
  budgetBytes: 512 * 1024 * 1024,
  gapMs: 15_000,
  graceMs: 10_000,
  minBytesPerSecond: 1024,
  totalMs: 120_000,
};

/** When to try again after the memory for bodies was used up, in milliseconds. */
const BUDGET_RETRY_MS = 1_000;

/** Size of the first buffer where the client does not say how much is coming. */
const FIRST_BUFFER_BYTES = 16 * 1024;

/** Bytes of request bodies in memory, counted over all requests. */
export class BodyBudget {
  readonly #limitBytes: number;
  #usedBytes = 0;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  /** Bytes taken and not yet given back. */
  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** Takes bytes. @throws {GatewayError} `limited` where they are not there */
  reserve(bytes: number): void {
    if (this.#usedBytes + bytes > this.#limitBytes) {
      throw new GatewayError("limited", "Cannot take another request body now: too many bytes are being handled", {
        retryAfterMs: BUDGET_RETRY_MS,
      });
    }
    this.#usedBytes += bytes;
  }

  /** Gives bytes back. */
  release(bytes: number): void {
    this.#usedBytes -= bytes;
  }
}

/** The rules that apply to reading. */
export interface BodyRules {
  limits: BodyLimits;
  budget: BodyBudget;
}

/**
 * Reads the body as a JSON object. `bytes` stay reserved in the budget until the caller releases them; on failure
 * nothing stays reserved. Curl's default media types are read as JSON.
 * @throws {GatewayError} `too_large`, `too_slow`, `unsupported_media_type`, `limited` or `invalid`
 */
export async function readJsonBody(request: Request, rules: BodyRules): Promise<{ body: JsonObject; bytes: number }> {
  checkMediaType(request.headers);
  const { limits, budget } = rules;
  const declared = readLength(request.headers);
  if (declared !== undefined && declared > limits.jsonBytes) throw tooLarge(limits.jsonBytes);
  let bytes = 0;
  try {
    const buffer = await readBytes(request.body, {
      limits,
      capacity: Math.min(declared ?? FIRST_BUFFER_BYTES, 1024 * 1024),
      take(size) {
        if (bytes + size > limits.jsonBytes) throw tooLarge(limits.jsonBytes);
        budget.reserve(size);
        bytes += size;
      },
    });
    return { body: parseBody(decode(buffer)), bytes };
  } catch (error) {
    budget.release(bytes);
    throw error;
  }
}

function checkMediaType(headers: Headers): void {
  const encoding = headers.get("content-encoding");
  if (encoding !== null && !/^\s*(identity)?\s*$/i.test(encoding)) {
    throw new GatewayError("unsupported_media_type", "Cannot read a compressed body: send it without Content-Encoding");
  }
  const type = headers.get("content-type") ?? "";
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

function readLength(headers: Headers): number | undefined {
  const length = headers.get("content-length");
  return length === null || !/^\d+$/.test(length) ? undefined : Number(length);
}

function tooLarge(limitBytes: number): GatewayError {
  return new GatewayError("too_large", `Cannot read the body: it has more than ${limitBytes} bytes`, {
    headers: { connection: "close" },
  });
}

/** How to read bytes: within which time, into how much at first, and whom to ask before keeping more. */
interface ReadOptions {
  limits: BodyLimits;
  capacity: number;
  take: (bytes: number) => void;
}

/** Reads to the end into one buffer, so that a body in a million tiny chunks takes no more than its bytes. */
async function readBytes(stream: ReadableStream<Uint8Array> | null, options: ReadOptions): Promise<Uint8Array> {
  if (stream === null) return new Uint8Array(0);
  const reader = stream.getReader();
  const watch = watchProgress(options.limits, () => reader.cancel().catch(() => {}));
  let buffer = new Uint8Array(0);
  let length = 0;
  try {
    while (true) {
      const { done, value } = await reader.read();
      // A cancelled reader says "done" like one that has reached the end.
      if (watch.expired()) throw tooSlow();
      if (done) return buffer.subarray(0, length);
      options.take(value.byteLength);
      watch.progress(value.byteLength);
      if (length + value.byteLength > buffer.byteLength) {
        const grown = new Uint8Array(Math.max(options.capacity, length + value.byteLength, length * 2));
        grown.set(buffer.subarray(0, length));
        buffer = grown;
      }
      buffer.set(value, length);
      length += value.byteLength;
    }
  } catch (error) {
    reader.cancel().catch(() => {});
    if (error instanceof GatewayError) throw error;
    throw new GatewayError("invalid", "Cannot read the body: the connection broke, or its framing is wrong", {
      cause: error,
    });
  } finally {
    watch.stop();
  }
}

function tooSlow(): GatewayError {
  return new GatewayError("too_slow", "Cannot wait for the body any longer: it comes too slowly", {
    headers: { connection: "close" },
  });
}

/** Whether a body comes fast enough. One timer, set anew only when it fires. */
function watchProgress(limits: BodyLimits, expire: () => void) {
  const start = performance.now();
  let last = start;
  let bytes = 0;
  let expired = false;
  let timer = setTimeout(check, firstWait());

  /** The time at which the body is too slow if nothing more comes. */
  function deadline(): number {
    const rateMs = Math.max(limits.graceMs, bytes / limits.minBytesPerSecond * 1000);
    return Math.min(last + limits.gapMs, start + rateMs, start + limits.totalMs);
  }
  function firstWait(): number {
    return deadline() - start;
  }
  function check(): void {
    const waitMs = deadline() - performance.now();
    if (waitMs > 0) {
      timer = setTimeout(check, Math.ceil(waitMs));
      return;
    }
    expired = true;
    expire();
  }
  return {
    progress(size: number): void {
      bytes += size;
      last = performance.now();
    },
    expired: (): boolean => expired,
    stop: (): void => clearTimeout(timer),
  };
}

/** A byte order mark at the start is skipped. */
function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new GatewayError("invalid", `Cannot read the body: byte ${firstBadByte(bytes)} is not UTF-8`, { cause });
  }
}

function parseBody(text: string): JsonObject {
  if (/^[ \t\r\n]*$/.test(text)) {
    throw new GatewayError("invalid", "Cannot read the body: it is empty, expected a JSON object");
  }
  const body = parse(text);
  if (!isObject(body)) throw new GatewayError("invalid", "Cannot read the body: expected a JSON object");
  return body;
}

function parse(text: string) {
  try {
    return parseJson(text);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    const before = text.slice(0, error.position);
    const line = before.split("\n").length;
    const column = error.position - before.lastIndexOf("\n");
    throw new GatewayError(
      "invalid",
      `Cannot read the body as JSON: ${error.message} at position ${error.position} (line ${line}, column ${column})`,
      { cause: error },
    );
  }
}
