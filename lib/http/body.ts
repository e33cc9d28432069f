/** Reading request bodies as JSON: limits act before memory is taken, and errors say where the fault is. */
import { GatewayError } from "../errors.ts";
import { isObject, JsonError, type ParsedJson, plainNumbers, readJson } from "../json.ts";
import type { Alarms } from "./alarms.ts";
import { bodyTooLarge, checkTransfer, declaredLength } from "./body_head.ts";
import type { BodyBudget, BodyLimits } from "./body_limits.ts";
import type { HeaderValues } from "./head.ts";
import { type Coding, inflate, readCoding } from "./inflate.ts";
import type { JsonBody } from "./router.ts";
import { readBytes } from "./read_bytes.ts";
import { firstBadByte } from "./utf8.ts";

/** Levels of a body in which the gateway reads numbers of its own: parameters, their members, and theirs. */
const PARAMETER_LEVELS = 3;

const replacing = new TextDecoder();
const refusing = new TextDecoder("utf-8", { fatal: true });
/** What stands in place of what is not UTF-8, but may also have been sent. */
const REPLACED = "\ufffd";

/** What is said of a body without content. */
export const EMPTY_BODY = "Cannot read the body: it is empty, expected a JSON object";

/** The rules that apply to reading. */
export interface BodyRules {
  /** Those of the request. */
  headers: HeaderValues;
  limits: BodyLimits;
  budget: BodyBudget;
  alarms: Alarms;
}

/** A body that was read, and what of it is reserved. */
export interface ReadBody extends JsonBody {
  bytes: number;
}

/**
 * Reads the body as a JSON object. `bytes` stay reserved in the budget until the caller releases them; on failure
 * nothing stays reserved. Curl's default media types are read as JSON. The limit holds for the body as it is sent and as
 * it is inflated.
 * @throws {GatewayError} `too_large`, `too_slow`, `unsupported_media_type`, `limited` or `invalid`
 */
export async function readJsonBody(request: Request, rules: BodyRules): Promise<ReadBody> {
  const { headers, limits, alarms } = rules;
  checkMediaType(headers);
  const coding = readCoding(headers);
  const length = declaredLength(headers);
  if (length !== undefined && length > limits.jsonBytes) throw bodyTooLarge(limits.jsonBytes);
  const sent = new Held(rules);
  try {
    const bytes = await readBytes(request, { limits, keeper: sent, length, alarms });
    return coding === undefined ? parseBytes(bytes, sent) : await parseInflated(bytes, { coding, sent, rules });
  } catch (error) {
    sent.release();
    throw error;
  }
}

async function parseInflated(
  bytes: Uint8Array<ArrayBuffer>,
  { coding, sent, rules }: { coding: Coding; sent: Held; rules: BodyRules },
): Promise<ReadBody> {
  const inflated = new Held(rules);
  try {
    const whole = await inflate(bytes, { coding, take: (size) => inflated.take(size) });
    sent.release();
    return parseBytes(whole, inflated);
  } catch (error) {
    inflated.release();
    throw error;
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

/**
 * A byte order mark at the start is skipped. The decoder that replaces what is wrong is asked first: it takes 1.5 µs for
 * 60 KB, and the one that refuses it 19.
 */
function decode(bytes: Uint8Array): string {
  const text = replacing.decode(bytes);
  if (!text.includes(REPLACED)) return text;
  try {
    return refusing.decode(bytes);
  } catch (cause) {
    throw new GatewayError("invalid", `Cannot read the body: byte ${firstBadByte(bytes)} is not UTF-8`, { cause });
  }
}

function parseBytes(bytes: Uint8Array, held: Held): ReadBody {
  const text = decode(bytes);
  if (/^[ \t\r\n]*$/.test(text)) throw new GatewayError("invalid", EMPTY_BODY);
  const { value, members, hasRaw } = parse(text);
  if (!isObject(value)) throw new GatewayError("invalid", "Cannot read the body: expected a JSON object");
  if (hasRaw) plainNumbers(value, PARAMETER_LEVELS);
  return { text, value, members, bytes: held.bytes };
}

function parse(text: string): ParsedJson {
  try {
    return readJson(text);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    const { line, column } = place(text, error.position);
    throw new GatewayError(
      "invalid",
      `Cannot read the body as JSON: ${error.message} at position ${error.position} (line ${line}, column ${column})`,
      { cause: error },
    );
  }
}

/** Line and column of an offset, both counted from 1. */
function place(text: string, position: number): { line: number; column: number } {
  let line = 1;
  let start = 0;
  for (let at = 0; at < position; at++) {
    if (text.charCodeAt(at) !== 0x0a) continue;
    line++;
    start = at + 1;
  }
  return { line, column: position - start + 1 };
}

/** Bytes of one body that are held in memory: within the limit of a body, and the budget of all. */
class Held {
  bytes = 0;
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

  release(): void {
    this.#rules.budget.release(this.bytes);
    this.bytes = 0;
  }
}
