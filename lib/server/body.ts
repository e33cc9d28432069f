/** Reading request bodies as JSON: limits act before memory is taken, and errors say where the fault is. */
import { GatewayError } from "../errors.ts";
import { isObject, JsonError, type JsonObject, type ParsedJson, plainNumbers, plainSteps } from "../json/json.ts";
import type { Member, ObjectBytes } from "../json/splice.ts";
import type { QuickJson } from "../json/quick.ts";
import { readInTurns, readSoon } from "../json/steps.ts";
import { MOST_BYTES } from "../json/strings.ts";
import { inSlices, LONG_STEP, soonInSlices } from "../scheduler.ts";
import type { PhaseTimers } from "../phase_timers.ts";
import { bodyTooLarge, checkTransfer, declaredLength } from "./body_head.ts";
import { type BodyBudget, type BodyLimits, JSON_MEMORY_FACTOR } from "./body_limits.ts";
import { behindMark, decode, decodeSteps } from "./decode.ts";
import type { HeaderValues } from "./head.ts";
import { type Coding, inflate, mostInflated, readCoding } from "./inflate.ts";
import { InflateQueue } from "./inflate_queue.ts";
import type { JsonBody } from "./router.ts";
import { readBytes } from "./read_bytes.ts";

/** Levels of a body in which the gateway reads numbers of its own: parameters, their members, and theirs. */
const PARAMETER_LEVELS = 3;

/** Characters that are looked at for the end of a line in one step. */
const STEP_CHARS = 65_536;

/** Those of this isolate. */
const largeInflated = new InflateQueue();

/** What is said of a body without content. */
export const EMPTY_BODY = "Cannot read the body: it is empty, expected a JSON object";

/** The rules that apply to reading. */
export interface BodyRules {
  /** Those of the request. */
  headers: HeaderValues;
  limits: BodyLimits;
  budget: BodyBudget;
  timers: PhaseTimers;
}

/** A body that was read. */
export interface ReadBody extends JsonBody {
  /** Its size, inflated. */
  bytes: number;
  /** What is reserved for it in the budget. */
  reservedBytes: number;
}

/**
 * Reads the body as a JSON object. `reservedBytes` stay reserved in the budget until the caller releases them; on failure
 * nothing stays reserved. Curl's default media types are read as JSON. The limit holds for the body as it is sent and as
 * it is inflated.
 * @throws {GatewayError} `too_large`, `too_slow`, `unsupported_media_type`, `limited` or `invalid`
 */
export async function readJsonBody(request: Request, rules: BodyRules): Promise<ReadBody> {
  const { headers, limits, timers } = rules;
  checkMediaType(headers);
  const coding = readCoding(headers);
  const length = declaredLength(headers);
  if (length !== undefined && length > limits.jsonBytes) throw bodyTooLarge(limits.jsonBytes);
  const sent = new Held(rules);
  try {
    const bytes = await readBytes(request, { limits, keeper: sent, length, timers });
    if (coding !== undefined) return await parseInflated(bytes, { coding, sent, rules });
    sent.takeForReading();
    return parseSoon(bytes, sent) ?? await parseInTurns(bytes, sent);
  } catch (error) {
    sent.release();
    throw error;
  }
}

function parseInflated(
  bytes: Uint8Array<ArrayBuffer>,
  { coding, sent, rules }: { coding: Coding; sent: Held; rules: BodyRules },
): Promise<ReadBody> {
  return mostInflated(bytes, coding) > LONG_STEP ? largeInflated.run(parse) : parse();

  async function parse(): Promise<ReadBody> {
    const inflated = new Held(rules);
    try {
      const { limits: { jsonBytes: limitBytes } } = rules;
      const whole = await inflate(bytes, { coding, limitBytes, reserve: (size) => inflated.take(size) });
      sent.release();
      inflated.takeForReading();
      return parseSoon(whole, inflated) ?? await parseInTurns(whole, inflated);
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

/** What a body says that is neither long nor at fault: nearly every one. */
function parseSoon(bytes: Uint8Array<ArrayBuffer>, held: Held): ReadBody | undefined {
  if (bytes.length > MOST_BYTES) return undefined;
  const utf8 = behindMark(bytes);
  const parsed = readSoon(utf8);
  return parsed && new SoonRead(utf8, { parsed, held });
}

/** A body whose text is made where somebody asks for it: most are relayed in their own bytes. */
class SoonRead implements ReadBody {
  readonly value: JsonObject;
  readonly members: readonly Member[];
  readonly utf8: ObjectBytes;
  readonly isAscii: boolean;
  readonly bytes: number;
  readonly reservedBytes: number;
  #text: string | undefined;

  constructor(utf8: Uint8Array<ArrayBuffer>, { parsed, held }: { parsed: QuickJson; held: Held }) {
    this.value = objectIn(parsed);
    if (parsed.hasRaw) plainNumbers(this.value, PARAMETER_LEVELS);
    this.members = parsed.members;
    this.utf8 = { bytes: utf8, members: parsed.utf8Members, literals: parsed.literals };
    this.isAscii = parsed.isAscii;
    this.bytes = held.bytes;
    this.reservedBytes = held.reservedBytes;
  }

  get text(): string {
    return this.#text ??= decode(this.utf8.bytes);
  }
}

async function parseInTurns(bytes: Uint8Array, held: Held): Promise<ReadBody> {
  return { ...await parseBody(bytes), bytes: held.bytes, reservedBytes: held.reservedBytes };
}

/** What any body says, with turns for others in between. @throws {GatewayError} `invalid` */
export async function parseBody(bytes: Uint8Array): Promise<JsonBody> {
  const text = bytes.length > LONG_STEP ? await inSlices(decodeSteps(bytes)) : decode(bytes);
  if (/^[ \t\r\n]*$/.test(text)) throw new GatewayError("invalid", EMPTY_BODY);
  const parsed = await parseText(text);
  const value = objectIn(parsed);
  const { members, hasRaw, isAscii } = parsed;
  if (hasRaw) await inSlices(plainSteps(value, PARAMETER_LEVELS));
  return { text, value, members, isAscii };
}

async function parseText(text: string): Promise<ParsedJson> {
  try {
    return await readInTurns(text);
  } catch (error) {
    throw error instanceof JsonError ? badJson(error, await soonInSlices(place(text, error.position))) : error;
  }
}

function objectIn({ value }: ParsedJson): JsonObject {
  if (!isObject(value)) throw new GatewayError("invalid", "Cannot read the body: expected a JSON object");
  return value;
}

/** A place in a text; both are counted from 1. */
interface Place {
  line: number;
  column: number;
}

function badJson(cause: JsonError, { line, column }: Place): GatewayError {
  const where = `position ${cause.position} (line ${line}, column ${column})`;
  return new GatewayError("invalid", `Cannot read the body as JSON: ${cause.message} at ${where}`, { cause });
}

/** Line and column of an offset. */
function* place(text: string, position: number): Generator<void, Place> {
  let line = 1;
  let start = 0;
  for (let at = 0; at < position; at++) {
    if (at % STEP_CHARS === 0) yield;
    if (text.charCodeAt(at) !== 0x0a) continue;
    line++;
    start = at + 1;
  }
  return { line, column: position - start + 1 };
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

  /** Takes what it needs to read the bytes as JSON. @throws {GatewayError} `limited` where there is no room for it */
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
