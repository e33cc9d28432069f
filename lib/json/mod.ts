/** Parses JSON with limits and without loss, edits its text, and writes it. See README.md. */
export { closingQuote, JSON_LIMITS, JsonError, type JsonLimits, type Member } from "./lexer.ts";
export { type JsonDocument, parseDocument, parseJson } from "./parse.ts";
export { parsePlain, tryParse } from "./plain.ts";
export type { CharCodes, ContentSizes, ScanPlan } from "./scan.ts";
export * as shapes from "./shape.ts";
export {
  documentSize,
  type Edits,
  findValue,
  type JsonPath,
  memberText,
  type ObjectText,
  removePaths,
  scanElements,
  scanMembers,
  spliceBody,
  spliceMembers,
  splicePath,
  withoutPaths,
} from "./splice.ts";
export {
  isInteger,
  isObject,
  isRawNumber,
  type Json,
  type JsonObject,
  objectOfMembers,
  type RawNumber,
  toDouble,
} from "./values.ts";
export { writeWithRawSpans } from "./raw_spans.ts";
export {
  subtractWeight,
  VALUE_WEIGHT,
  writeEach,
  writeEachSliced,
  writeJson,
  writeJsonSliced,
  writeMembersSliced,
  writeSteps,
} from "./write.ts";
