/** JSON as values: parsed with limits and without loss, written back. */
import { findBadString, JsonError, type JsonLimits, type Member, type Scan, scanJson } from "./json_scan.ts";

export { JsonError, type JsonLimits };

/** Any JSON value. A number that a double cannot write back as it was read is a raw number, see `isRawNumber`. */
export type Json = null | boolean | number | string | Json[] | JsonObject;

/** A JSON object. `__proto__` is a key like any other. */
export interface JsonObject {
  [key: string]: Json | undefined;
}

/** A number kept as its text. It has the type of an object, but `isObject` is false for it. */
export interface RawNumber extends JsonObject {
  readonly rawJSON: string;
}

/** Parse with source text access, which the type library does not have yet. */
interface SourceJson {
  parse(text: string, reviver: (key: string, value: unknown, context: { source?: string }) => unknown): Json;
  rawJSON(text: string): RawNumber;
  isRawJSON(value: unknown): boolean;
}

const sourceJson = JSON as unknown as SourceJson;

/** Limits for request bodies. */
export const JSON_LIMITS: JsonLimits = { depth: 64, nodes: 200_000, keys: 10_000 };

/** What JSON text says. */
export interface ParsedJson {
  value: Json;
  /** Where the members of the outermost object stand, each name once; of anything else there are none. */
  members: readonly Member[];
  /** Whether there are raw numbers in it. */
  hasRaw: boolean;
}

/**
 * Parses JSON text. Every number can be written back as it was: those that a double would change (`1.0`, `-0`, `1e400`,
 * 64-bit ids) become raw numbers. Two equal names are refused in the two outermost levels.
 * @throws {JsonError} where the text is not JSON or is more than the limits allow
 */
export function parseJson(text: string, limits: JsonLimits = JSON_LIMITS): Json {
  return readJson(text, limits).value;
}

/** As `parseJson`, with where the members stand, so that their text can be edited. @throws {JsonError} as `parseJson` */
export function readJson(text: string, limits: JsonLimits = JSON_LIMITS): ParsedJson {
  return readScanned(text, scanText(text, limits), limits);
}

/** The first half of `readJson`. @throws {JsonError} where the text, its strings apart, is not JSON or too much */
export function scanText(text: string, limits: JsonLimits): Scan {
  try {
    return scanJson(text, { limits, comparesNames: false });
  } catch {
    throw faultIn(text, limits);
  }
}

/** The second half of `readJson`. @throws {JsonError} where a string is none, or a name comes twice that must not */
export function readScanned(text: string, scan: Scan, limits: JsonLimits): ParsedJson {
  let value: Json;
  try {
    value = scan.lossy ? sourceJson.parse(text, keepNumber) : JSON.parse(text);
  } catch {
    throw faultIn(text, limits);
  }
  // The parser keeps one of two equal names: none was lost where there are as many as were scanned.
  if (scan.members.length + scan.innerNames !== outerNames(value)) throw faultIn(text, limits);
  return { value, members: scan.members, hasRaw: scan.lossy };
}

/** What is wrong with a text that was refused: its first fault. The parser's own message would quote the text. */
function faultIn(text: string, limits: JsonLimits): unknown {
  try {
    scanJson(text, { limits, comparesNames: true });
  } catch (error) {
    return error instanceof JsonError ? findBadString(text, error.position) ?? error : error;
  }
  return findBadString(text, text.length) ?? new JsonError("Expected JSON", 0);
}

/** How many names the two outermost levels of objects have. */
function outerNames(value: Json): number {
  if (Array.isArray(value)) return value.reduce((sum: number, item) => sum + (isObject(item) ? namesOf(item) : 0), 0);
  if (!isObject(value)) return 0;
  let names = 0;
  for (const name in value) {
    const member = value[name];
    names += isObject(member) ? 1 + namesOf(member) : 1;
  }
  return names;
}

function namesOf(object: JsonObject): number {
  let names = 0;
  for (const _ in object) names++;
  return names;
}

function keepNumber(_key: string, value: unknown, { source }: { source?: string }): unknown {
  if (typeof value !== "number" || source === undefined || String(value) === source) return value;
  return rawNumber(source);
}

/** A number that is kept as its text. @throws {SyntaxError} where that is no JSON */
export function rawNumber(source: string): RawNumber {
  return sourceJson.rawJSON(source);
}

/** Writes a value as compact JSON, raw numbers as they were read. */
export function writeJson(value: Json): string {
  return JSON.stringify(value);
}

/** True for a JSON object; false for arrays, `null` and numbers that are kept as text. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !sourceJson.isRawJSON(value);
}

/** True for a number that is kept as text. */
export function isRawNumber(value: unknown): value is RawNumber {
  return sourceJson.isRawJSON(value);
}

/**
 * Makes plain numbers of raw ones where only the spelling differs (`1.0` is 1), in place: members of objects, down to the
 * given number of levels. Where the gateway reads parameters it wants numbers; below lie tool inputs and schemas, which
 * are other people's text.
 */
export function plainNumbers(value: Json, levels: number): void {
  for (const _ of plainSteps(value, levels));
}

/** `plainNumbers`, a member at a time. */
export function* plainSteps(value: Json, levels: number): Generator<void, void> {
  if (levels === 0 || typeof value !== "object" || value === null || isRawNumber(value)) return;
  if (Array.isArray(value)) {
    for (const item of value) {
      yield;
      yield* plainSteps(item, levels - 1);
    }
    return;
  }
  for (const [key, member] of Object.entries(value)) {
    yield;
    if (!isRawNumber(member)) yield* plainSteps(member ?? null, levels - 1);
    else if (isSameNumber(member.rawJSON)) Object.defineProperty(value, key, { value: Number(member.rawJSON) });
  }
}

/** Whether a double holds the value that the text says. */
function isSameNumber(text: string): boolean {
  return spell(String(Number(text))) === spell(text);
}

/** One spelling for all decimal texts of one value. */
function spell(text: string): string {
  const [, sign, whole = "", fraction = "", exponent = "0"] = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text) ??
    [];
  const digits = (whole + fraction).replace(/^0+/, "");
  const significant = digits.replace(/0+$/, "");
  if (significant === "") return "0";
  return `${sign}${significant}e${Number(exponent) - fraction.length + digits.length - significant.length}`;
}
