/**
 * Finds the members of a JSON object in UTF-8, and checks the shapes of some of them without creating their values. It
 * needs the strings that `findStrings` has found. Bodies of other shapes, and malformed ones, are left to the parsers.
 */
import { skipSpace } from "./fast_parser.ts";
import type { JsonLimits, Member } from "./lexer.ts";
import type { Shape } from "./shape.ts";
import { matchShape, resetScanState, scanState } from "./match_shape.ts";
import { bytes, ESCAPED, pieceOf, readName, STRING_WORDS, tape } from "./strings.ts";

const QUOTE = 0x22, COMMA = 0x2c, COLON = 0x3a, OPEN_OBJECT = 0x7b, CLOSE_OBJECT = 0x7d, ZERO = 0x30;

/** Members whose shapes a scan checks. */
export interface ScanPlan {
  readonly shapes: ReadonlyMap<string, Shape>;
  /** Members without which the scan fails. */
  readonly needed: readonly string[];
  /** Maximum number of prompt-cache marks of a body. */
  readonly maxMarks: number;
  /** Maximum number of images of a body. */
  readonly maxImages: number;
  /** Returns false for a model whose requests are decoded in any case. The scan stops then. */
  readonly isWanted: (model: string) => boolean;
}

/** Sizes of the members that matched a shape and were not parsed. */
export interface ContentSizes {
  /** Total bytes of all strings and objects that a model reads, as JSON. */
  textBytes: number;
  /** Number of these strings and objects. */
  texts: number;
  /** Total bytes of all opaque strings, such as signatures. */
  sealedBytes: number;
  /** Number of opaque strings that are not empty. */
  sealed: number;
  /** Number of objects of a rare variant. */
  rare: number;
  /** The images; undefined if there are none. */
  images: ImageTexts | undefined;
  /** Number of entries of each recognized member that is a list; 0 for other recognized members. */
  entries: ReadonlyMap<string, number>;
}

/** A text of which single characters are read, as of a string. */
export type CharCodes = Pick<string, "charCodeAt">;

/** The images of a body. Their base64 is read where it is in the body: an image may have megabytes. */
class ImageTexts {
  readonly count: number;
  readonly #body: Uint8Array;
  /** Start and end of each image's base64. */
  readonly #ends: readonly number[];

  constructor(body: Uint8Array, ends: readonly number[]) {
    this.#body = body;
    this.#ends = ends;
    this.count = ends.length / 2;
  }

  /** Returns the base64 of each image. */
  read(): CharCodes[] {
    return Array.from({ length: this.count }, (_, index) => {
      const text = this.#body.subarray(this.#ends[index * 2], this.#ends[index * 2 + 1]);
      return { charCodeAt: (at) => text[at] ?? NaN };
    });
  }
}

/** A body whose contents matched their shapes. */
export interface ScannedBody {
  /** All top-level members, with byte offsets. */
  members: readonly Member[];
  /** The body with `0` in place of the value of each matched member. */
  head: Uint8Array<ArrayBuffer>;
  sizes: ContentSizes;
  /** Number of values in the matched members. */
  nodes: number;
}

/** Scans the body whose strings were found last. @returns undefined if a member has another shape, or is malformed */
export function scanBody(
  body: Uint8Array<ArrayBuffer>,
  limits: JsonLimits,
  plan: ScanPlan,
): ScannedBody | undefined {
  try {
    return scanMembersOf(body, limits, plan);
  } catch (error) {
    // A name or the model has a replacement character.
    if (!(error instanceof SyntaxError)) throw error;
    return undefined;
  }
}

function scanMembersOf(
  body: Uint8Array<ArrayBuffer>,
  limits: JsonLimits,
  plan: ScanPlan,
): ScannedBody | undefined {
  const { length } = body;
  const members: Member[] = [];
  const recognized = new Map<string, number>();
  resetScanState();
  let at = skipSpace(bytes, 0);
  if (bytes[at] !== OPEN_OBJECT) return undefined;
  let before = at + 1;
  let cut = 0;
  const keptOffsets: number[] = [];
  for (at = skipSpace(bytes, before);;) {
    if (bytes[at] !== QUOTE) return undefined;
    const reading = tape[scanState.nextWord + 2] ?? 0;
    const close = tape[scanState.nextWord] ?? 0;
    scanState.nextWord += STRING_WORDS;
    if (reading >= ESCAPED) return undefined;
    const name = readName(reading, at + 1, close);
    at = skipSpace(bytes, close + 1);
    if (bytes[at] !== COLON) return undefined;
    const start = skipSpace(bytes, at + 1);
    const shape = plan.shapes.get(name);
    const firstWord = scanState.nextWord;
    scanState.cursor = start;
    const first = scanState.nodes;
    if (!matchShape(shape, limits)) return undefined;
    if (shape !== undefined) {
      recognized.set(name, scanState.entries);
      keptOffsets.push(cut, start);
      cut = scanState.cursor;
    } else {
      scanState.nodes = first;
      if (name === "model" && !isWanted(start, firstWord, plan)) return undefined;
    }
    members.push({ name, before, start, end: scanState.cursor });
    before = skipSpace(bytes, scanState.cursor);
    if (bytes[before] !== COMMA) break;
    at = skipSpace(bytes, before + 1);
  }
  if (bytes[before] !== CLOSE_OBJECT || skipSpace(bytes, before + 1) < length || scanState.marks > plan.maxMarks) {
    return undefined;
  }
  if (scanState.images.length > plan.maxImages * 2) return undefined;
  if (!plan.needed.every((name) => recognized.has(name))) return undefined;
  keptOffsets.push(cut, length);
  const { textBytes, texts, sealedBytes, sealed, rare, nodes } = scanState;
  const images = scanState.images.length === 0 ? undefined : new ImageTexts(body, scanState.images);
  const sizes = { textBytes, texts, sealedBytes, sealed, rare, images, entries: recognized };
  return { members, head: headOf(keptOffsets), sizes, nodes };
}

/** Returns the kept bytes, with a zero between each two parts. */
function headOf(keptOffsets: readonly number[]): Uint8Array<ArrayBuffer> {
  let size = keptOffsets.length / 2 - 1;
  for (let index = 0; index < keptOffsets.length; index += 2) {
    size += (keptOffsets[index + 1] ?? 0) - (keptOffsets[index] ?? 0);
  }
  const head = new Uint8Array(size).fill(ZERO);
  let to = 0;
  for (let index = 0; index < keptOffsets.length; index += 2) {
    const part = bytes.subarray(keptOffsets[index], keptOffsets[index + 1]);
    head.set(part, to);
    to += part.length + 1;
  }
  return head;
}

function isWanted(start: number, word: number, plan: ScanPlan): boolean {
  if (bytes[start] !== QUOTE || tape[word + 2] === ESCAPED) return false;
  return plan.isWanted(JSON.parse(pieceOf(start, scanState.cursor)));
}
