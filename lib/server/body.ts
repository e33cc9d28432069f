/** Reads request bodies as JSON or as form fields. Limits are checked before memory is allocated. */
import { GatewayError } from "../errors.ts";
import type { ScanPlan } from "../json/mod.ts";
import { LONG_REQUEST_BYTES, yieldToEventLoop } from "../scheduler.ts";
import type { PhaseTimers } from "../phase_timers.ts";
import { bodyTooLarge, checkCodings, type HeaderValues } from "./head.ts";
import { type BodyReservation, JSON_MEMORY_FACTOR, KEY_SHARE } from "./body_budget.ts";
import { type JsonBody, parseBody } from "./parse_body.ts";
import { readBytes } from "./read_bytes.ts";
import type { RequestRecord } from "../observe/request_record.ts";
import type { Config } from "../config.ts";

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
