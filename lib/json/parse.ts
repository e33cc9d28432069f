/**
 * Parses JSON with limits and without loss. The fast parser is tried first; the careful one reads long and invalid
 * texts.
 */
import { parseSteps } from "./careful_parser.ts";
import { isUtf8 } from "node:buffer";
import { parseFast, parseFound } from "./fast_parser.ts";
import { JSON_LIMITS, JsonError, type JsonLimits, type Member, type ParsedJson, type SourcePosition } from "./lexer.ts";
import { type ContentSizes, scanBody, type ScannedBody, type ScanPlan } from "./scan.ts";
import { type ObjectBytes, scanMembers } from "./splice.ts";
import { findStrings, MAX_BYTES, restoreNames } from "./strings.ts";
import { isObject, isRawNumber, type Json, type JsonObject, toDouble } from "./values.ts";
import { LARGE_BODY_BYTES, runSliced, runSlicedNow, runToEnd } from "../scheduler.ts";
import { decodeUtf8, decodeUtf8Steps } from "../text.ts";

/** Maximum number of values that are parsed at once. 20,000 new names, or raw numbers, take 25 ms. */
const MAX_VALUES_AT_ONCE = 20_000;
/** Longest text whose first slice is parsed without yielding before. The worst one, 22,000 times `-0`, takes 25 ms. */
const SHORT_TEXT_CHARS = 65_536;
/** Characters that are searched for line breaks in one step. */
const STEP_CHARS = 65_536;

/** Rules for one document. */
export interface ParseOptions {
  limits?: JsonLimits;
  /** Number of outer levels in which raw numbers become the nearest double; absent: 0. */
  doubleLevels?: number;
  /** Members that need not be parsed until they are read; absent: none. */
  scan?: ScanPlan | undefined;
}

/** A JSON text with its value and the positions of its top-level members. */
export interface JsonDocument {
  value: Json;
  readonly text: string;
  /** The top-level members, each name once; none if the value is not an object. */
  members: readonly Member[];
  /** The same in UTF-8; absent if the text was not parsed from bytes. */
  utf8?: ObjectBytes;
  /** The result of a scan that recognized members; absent without one. The value is parsed when it is first read. */
  readonly scanned?: Scanned | undefined;
}

/** Known facts about a document whose recognized members were not parsed. */
export interface Scanned {
  /** The other members, in which the recognized members are 0. */
  head: JsonObject;
  /** Sizes of the recognized members. */
  sizes: ContentSizes;
}

/**
 * Parses JSON text at once. Numbers that a double cannot represent exactly as written (`1.0`, `-0`, `1e400`, 64-bit
 * ids) become raw numbers. Duplicate names in an object are errors in the outermost levels.
 * @throws {JsonError} if the text is not JSON or exceeds the limits
 */
export function parseJson(text: string, limits: JsonLimits = JSON_LIMITS): Json {
  return parseAtOnce(text, limits).value;
}

/** Parses as `parseJson`, and returns the positions of the members, too. @throws {JsonError} as `parseJson` */
export function parseAtOnce(text: string, limits: JsonLimits = JSON_LIMITS): ParsedJson {
  return parseFast(text, limits) ?? runToEnd(parseSteps(text, limits));
}

/**
 * Parses JSON text, or its UTF-8, as `parseJson` does. Yields to the event loop if the text is long.
 * @throws {JsonError} as `parseJson`, with line and column
 * @throws {Utf8Error} if the bytes are not UTF-8
 */
export async function parseDocument(
  source: string | Uint8Array<ArrayBuffer>,
  options: ParseOptions = {},
): Promise<JsonDocument> {
  return parseAtOnceIfUsual(source, options) ?? await parseSliced(source, options);
}

/** Parses a valid document of usual size at once. @returns undefined for any other document */
function parseAtOnceIfUsual(
  source: string | Uint8Array<ArrayBuffer>,
  { limits = JSON_LIMITS, doubleLevels = 0, scan }: ParseOptions,
): JsonDocument | undefined {
  const input = typeof source === "string" ? source : withoutMark(source);
  if (input.length > MAX_BYTES) return undefined;
  const limitsAtOnce = { ...limits, nodes: Math.min(limits.nodes, MAX_VALUES_AT_ONCE) };
  const length = findStrings(input);
  if (scan !== undefined && length !== undefined && typeof input !== "string" && isUtf8(input)) {
    const scanned = scanBody(input, limitsAtOnce, scan);
    const head = scanned && parseHead(scanned, limitsAtOnce, doubleLevels);
    if (scanned !== undefined && head !== undefined) {
      const { members, sizes } = scanned;
      return new BytesDocument({ bytes: input, members }, { scanned: { head, sizes }, doubleLevels });
    }
    if (scanned === undefined) restoreNames();
    else findStrings(input);
  }
  const parsed = parseFound(length, limitsAtOnce);
  if (parsed === undefined) return undefined;
  if (parsed.hasRaw) runToEnd(roundSteps(parsed.value, doubleLevels));
  if (typeof input === "string") return { value: parsed.value, text: input, members: parsed.members };
  const { utf8Members = [], rawSpans } = parsed;
  return new BytesDocument({ bytes: input, members: utf8Members, rawSpans }, { parsed, doubleLevels });
}

/** Parses any document with the careful parser, in slices if it is long. @throws as `parseDocument` */
async function parseSliced(
  source: string | Uint8Array<ArrayBuffer>,
  { limits = JSON_LIMITS, doubleLevels = 0 }: Omit<ParseOptions, "scan">,
): Promise<JsonDocument> {
  const text = typeof source === "string" ? source : await decoded(source);
  const parsed = await parseCarefully(text, limits);
  if (parsed.hasRaw) await runSliced(roundSteps(parsed.value, doubleLevels));
  return { value: parsed.value, text, members: parsed.members };
}

function decoded(bytes: Uint8Array): string | Promise<string> {
  return bytes.length > LARGE_BODY_BYTES ? runSliced(decodeUtf8Steps(bytes)) : decodeUtf8(bytes);
}

async function parseCarefully(text: string, limits: JsonLimits): Promise<ParsedJson> {
  const steps = parseSteps(text, limits);
  try {
    return await (text.length > SHORT_TEXT_CHARS ? runSliced(steps) : runSlicedNow(steps));
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw new JsonError(error.message, error.position, await runSlicedNow(locate(text, error.position)));
  }
}

/** Finds the line and the column of an offset, in steps for `runSliced`. */
function* locate(text: string, position: number): Generator<void, SourcePosition> {
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

/** Parses the part of a body that a scan did not recognize; undefined if it is malformed. */
function parseHead({ head, nodes }: ScannedBody, limits: JsonLimits, doubleLevels: number): JsonObject | undefined {
  const parsed = parseFast(head, { ...limits, nodes: limits.nodes - nodes });
  if (parsed === undefined || !isObject(parsed.value)) return undefined;
  if (parsed.hasRaw) runToEnd(roundSteps(parsed.value, doubleLevels));
  return parsed.value;
}

/**
 * A document that was parsed from bytes. Its text is decoded when it is first read, because most bodies are sent as
 * bytes. If it was scanned, its value is parsed when it is first read.
 */
class BytesDocument implements JsonDocument {
  readonly utf8: ObjectBytes;
  readonly scanned: Scanned | undefined;
  readonly #doubleLevels: number;
  #parsed: Pick<ParsedJson, "value" | "members"> | undefined;
  #text: string | undefined;
  #members: readonly Member[] | undefined;

  constructor(utf8: ObjectBytes, { parsed, scanned, doubleLevels }: {
    parsed?: ParsedJson;
    scanned?: Scanned;
    doubleLevels: number;
  }) {
    this.utf8 = utf8;
    this.scanned = scanned;
    this.#parsed = parsed;
    this.#doubleLevels = doubleLevels;
  }

  get value(): Json {
    return (this.#parsed ??= this.#parse()).value;
  }

  get text(): string {
    return this.#text ??= decodeUtf8(this.utf8.bytes);
  }

  get members(): readonly Member[] {
    return this.#members ??= this.#parsed?.members ?? scanMembers(this.text).members;
  }

  #parse(): ParsedJson {
    const parsed = parseFast(this.utf8.bytes, JSON_LIMITS) ?? parseAtOnce(this.text);
    if (parsed.hasRaw) runToEnd(roundSteps(parsed.value, this.#doubleLevels));
    this.utf8.rawSpans = parsed.rawSpans;
    return parsed;
  }
}

/** Returns the bytes without a byte order mark. */
function withoutMark(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes;
}

/** Replaces raw members of objects by doubles in place, down to the given number of levels. */
function* roundSteps(value: Json, levels: number): Generator<void, void> {
  if (levels === 0 || typeof value !== "object" || value === null || isRawNumber(value)) return;
  if (Array.isArray(value)) {
    for (const item of value) {
      yield;
      yield* roundSteps(item, levels - 1);
    }
    return;
  }
  for (const [key, member] of Object.entries(value)) {
    yield;
    if (!isRawNumber(member)) yield* roundSteps(member ?? null, levels - 1);
    else {
      const number = toDouble(member);
      if (number !== undefined) Object.defineProperty(value, key, { value: number });
    }
  }
}
