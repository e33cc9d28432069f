/** Counts the pages of an untrusted PDF by its page objects, without rendering it. */
import { Buffer } from "node:buffer";
import { inflateSync } from "node:zlib";

/** Base64 digits that are searched between two pauses, and the overlap of two searches. Both are divisible by 4. */
const DIGITS_PER_STEP = 1_048_576;
const OVERLAP_DIGITS = 349_524;
/**
 * Maximum number of inflated bytes of one object stream. Real streams have 100 or 200 objects of a few hundred bytes.
 */
const MAX_STREAM_BYTES = 1_048_576;
/** Maximum number of inflated bytes for all files of a prompt, with those that matches are charged. */
const MAX_INFLATED_BYTES = 16_777_216;
/**
 * Bytes that are charged for a match in an object stream, in addition to its own: a file of 100 KB, inflated to a
 * million short objects, would take three seconds.
 */
const BYTES_PER_MATCH = 64;
/** Matches and references that are read before a pause: about 2 ms of work. */
const MATCHES_PER_STEP = 1_000;
/** Longest list of the objects of an object stream, in characters: several thousand objects. */
const MAX_LIST_LENGTH = 65_536;
/** Assumed bytes per page if no page object is found: scans have more, texts fewer. */
const BYTES_PER_PAGE = 65_536;

/** White space and comments between two tokens. */
const GAP = String.raw`(?:[\0\s]|%[^\r\n]{0,40}[\r\n]){0,20}`;
/**
 * The references of an array. The match ends at any name or object: otherwise a bracket inside a text could hide them.
 */
const ARRAY = String.raw`(?:[^\]%/o]|%[^\r\n]*)*`;
const NUMBER = String.raw`(?<!\d)(\d{1,10})\s{1,9}\d{1,5}\s{1,9}`;

/** Returns a pattern for a name, in which any character may be escaped: `/K#69ds`. */
function nameOf(text: string): string {
  return "/" + text.replace(/./g, (letter) => `(?:${letter}|#(?i:${letter.charCodeAt(0).toString(16)}))`);
}

/**
 * An object stream, which since PDF 1.5 may hold compressed page objects. The search for its data ends at the next one,
 * so that names without data take linear time.
 */
const OBJECT_STREAM = new RegExp(
  String.raw`${nameOf("Type")}${GAP}${nameOf("ObjStm")}\b(?:(?!${nameOf("ObjStm")})[^]){0,400}?stream\r?\n`,
  "g",
);
/** The offset of the first object in an object stream. */
const FIRST = new RegExp(String.raw`.*${nameOf("First")}${GAP}(\d{1,9})`, "s");
/**
 * The number of an object with its array, the children of a node as an array or as a reference to one, the root of the
 * pages in a catalog, or a page object. The nodes above the pages have the type `/Pages`.
 */
const TREE = new RegExp(
  `${NUMBER}obj(?:${GAP}\\[(${ARRAY}))?|${nameOf("Kids")}${GAP}(?:\\[(${ARRAY})|${NUMBER}R)|` +
    `${nameOf("Pages")}${GAP}${NUMBER}R|(${nameOf("Type")}${GAP}${nameOf("Page")}(?![A-Za-z#]))`,
  "g",
);

const REFERENCE = new RegExp(`${NUMBER}R`, "g");

/** Maximum number of pages that count: more than any vendor reads. */
const MAX_PAGES = 10_000;
/** Maximum number of levels of a tree of pages. Most files have two or three. */
const MAX_LEVELS = 64;
/** Maximum number of references that are kept for the tree. Files with more of them count as `MAX_PAGES`. */
const MAX_REFERENCES = 250_000;

/** Bytes that may still be inflated: an object stream of a few bytes can inflate to a thousand times as many. */
export interface InflateBudget {
  bytes: number;
}

/** Creates the budget for all files of one prompt. */
export function inflateBudget(): InflateBudget {
  return { bytes: MAX_INFLATED_BYTES };
}

/** Estimates the pages of a file in base64 by its size: at least one. */
export function pagesBySize(base64: string): number {
  return Math.max(1, Math.ceil((base64.length * 3 / 4 - 2) / BYTES_PER_PAGE));
}

/** The pages of a file. */
export interface PdfPages {
  /** At least one. */
  count: number;
  /** True if the file may have more pages than were found. */
  isPartial: boolean;
}

/**
 * Counts the pages of a file in base64, with pauses: its page objects or, if they are more, the leaves of its page tree,
 * in which a page may occur many times. If it finds none, because the file is encrypted or not a PDF, or if it cannot
 * read a part, for example because the budget is spent, there are at least as many as the size of the file suggests.
 */
export function* countPdfPages(base64: string, budget: InflateBudget): Generator<void, PdfPages> {
  const tree = new PageTree();
  let isPartial = false;
  for (let from = 0; from < base64.length; from += DIGITS_PER_STEP) {
    const end = from + DIGITS_PER_STEP;
    const bytes = Buffer.from(base64.slice(from, end + OVERLAP_DIGITS), "base64");
    const text = bytes.toString("latin1");
    yield;
    // A match that begins in the overlap is counted in the next step.
    const ownBytes = DIGITS_PER_STEP / 4 * 3;
    yield* tree.read(text, ownBytes);
    for (const { index, 0: start } of text.matchAll(OBJECT_STREAM)) {
      if (index >= ownBytes) break;
      const objects = budget.bytes > 0 ? inflate(bytes.subarray(index + start.length), budget) : undefined;
      yield;
      const list = objects && unpack(objects, text.slice(Math.max(0, index - 200), index + start.length));
      if (list !== undefined) yield* tree.read(list, Infinity, budget);
      isPartial ||= list === undefined || budget.bytes <= 0;
    }
    yield;
  }
  const { pages } = tree;
  isPartial ||= pages === 0;
  return { count: isPartial ? Math.max(pages, pagesBySize(base64)) : pages, isPartial };
}

/**
 * Returns the objects of an object stream as they are written outside of one; undefined if they are too many. The
 * stream begins with their numbers and offsets from `/First`.
 */
function unpack(objects: string, dictionary: string): string | undefined {
  const first = Number(FIRST.exec(dictionary)?.[1] ?? 0);
  if (first > MAX_LIST_LENGTH) return undefined;
  const numbers = objects.slice(0, first).match(/\d+/g)?.map(Number) ?? [];
  const starts = Array.from({ length: numbers.length >> 1 }, (_, i) => [numbers[2 * i + 1], numbers[2 * i]] as const)
    .sort(([one = 0], [other = 0]) => one - other);
  const texts = starts.map(([start = 0, id], i) => {
    return `${id} 0 obj ${objects.slice(first + start, first + (starts[i + 1]?.[0] ?? objects.length))}\n`;
  });
  return objects.slice(0, first) + (texts.length === 0 ? objects.slice(first) : texts.join(""));
}

/** The nodes above the pages. Nodes may share children, and a page is read as often as the tree repeats it. */
class PageTree {
  /** Children by the number of an object: of a node, or of an array in which a node has them. */
  readonly #children = new Map<number, number[][]>();
  readonly #roots = new Set<number>();
  readonly #leaves = new Map<number, number>();
  /** Number of the object that is being read. */
  #id = -1;
  #pageObjects = 0;
  /** Number of all children and roots. */
  #references = 0;

  /**
   * Reads the objects that begin before an index, with pauses.
   * @param budget charged for each match, and the reading ends when it is spent; absent: unlimited
   */
  *read(text: string, end: number, budget?: InflateBudget): Generator<void> {
    let matches = 0;
    for (const { index, 1: id, 2: array, 3: kids, 4: kidsId, 5: rootId, 6: page } of text.matchAll(TREE)) {
      if (index >= end) return;
      if (budget !== undefined && (budget.bytes -= BYTES_PER_MATCH) <= 0) return;
      if (page !== undefined) this.#pageObjects++;
      if (id !== undefined) this.#id = Number(id);
      if (rootId !== undefined && this.#references++ < MAX_REFERENCES) this.#roots.add(Number(rootId));
      const children = array ?? kids;
      if (children?.includes("R")) yield* this.#addAll(children);
      else if (kidsId !== undefined) this.#add([Number(kidsId)]);
      if (++matches % MATCHES_PER_STEP === 0) yield;
    }
  }

  /** Adds the references of an array as children, with pauses. */
  *#addAll(array: string): Generator<void> {
    const children: number[] = [];
    for (const [, id] of array.replace(/%[^\r\n]*/g, "").matchAll(REFERENCE)) {
      if (this.#references + children.length > MAX_REFERENCES) break;
      children.push(Number(id));
      if (children.length % MATCHES_PER_STEP === 0) yield;
    }
    this.#add(children);
  }

  #add(children: number[]): void {
    this.#references += children.length;
    if (this.#references > MAX_REFERENCES) return;
    const versions = this.#children.get(this.#id);
    if (versions === undefined) this.#children.set(this.#id, [children]);
    else versions.push(children);
  }

  /** The page objects or, if they are more, the leaves of the tree. */
  get pages(): number {
    let most = this.#pageObjects;
    if (this.#references > MAX_REFERENCES) return Math.max(most, MAX_PAGES);
    for (const root of this.#roots) most = Math.max(most, this.#count(root, 0));
    return most;
  }

  /** Counts the leaves below an object. An edited file has several versions of an object. */
  #count(id: number, level: number): number {
    const known = this.#leaves.get(id);
    const versions = this.#children.get(id);
    if (known !== undefined || versions === undefined) return known ?? 1;
    if (level === MAX_LEVELS) return MAX_PAGES;
    // A node that contains itself would be followed without end.
    this.#leaves.set(id, MAX_PAGES);
    let most = 0;
    for (const children of versions) {
      let count = 0;
      for (const child of children) count = Math.min(MAX_PAGES, count + this.#count(child, level + 1));
      most = Math.max(most, count);
    }
    this.#leaves.set(id, most);
    return most;
  }
}

/** Inflates an object stream, and ignores any bytes after it. Returns `undefined` if it is invalid or too long. */
function inflate(bytes: Uint8Array, budget: InflateBudget): string | undefined {
  try {
    const inflated = inflateSync(bytes, { maxOutputLength: MAX_STREAM_BYTES });
    budget.bytes -= inflated.length;
    return inflated.toString("latin1");
  } catch {
    // zlib may have inflated as many bytes before it failed.
    budget.bytes -= MAX_STREAM_BYTES;
    return undefined;
  }
}
