/** Counts the pages of an untrusted PDF by its page objects, without rendering it. */
import { Buffer } from "node:buffer";
import { inflateSync } from "node:zlib";

/** Base64 digits that are searched between two pauses, and the overlap of two searches. Both are divisible by 4. */
const DIGITS_PER_STEP = 1_048_576;
const OVERLAP_DIGITS = 349_524;
/** Most inflated bytes of one object stream. Real streams have 100 or 200 objects of some hundred bytes. */
const MAX_STREAM_BYTES = 1_048_576;
/** Most inflated bytes for all files of a prompt: about 80 ms of work. */
const MAX_INFLATED_BYTES = 16_777_216;
/** Assumed bytes per page if no page object is found: scans have more, texts fewer. */
const BYTES_PER_PAGE = 65_536;

/** A page object. The nodes above the pages have the type `/Pages`. */
const PAGE = /\/Type\s*\/Page(?![A-Za-z])/g;
/** An object stream, which since PDF 1.5 may hold compressed page objects. */
const OBJECT_STREAM = /\/Type\s*\/ObjStm\b[^]{0,400}?stream\r?\n/g;

/** The children of a node, and a reference in them. */
const KIDS = /\/Kids\s*\[([^\]]*)/g;
const REFERENCE = /(?<!\d)(\d{1,10})\s+\d{1,5}\s+R/g;
/** Most repetitions of a page that count: more than any vendor reads. */
const MAX_REPETITIONS = 10_000;

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

/**
 * Counts the pages of a file in base64, with pauses. If it finds none, because the file is encrypted or not a PDF, or
 * because the budget is spent, it estimates them by the size of the file.
 */
export function* countPdfPages(base64: string, budget: InflateBudget): Generator<void, number> {
  const repetitions = new Repetitions();
  let pages = 0;
  for (let from = 0; from < base64.length; from += DIGITS_PER_STEP) {
    const end = from + DIGITS_PER_STEP;
    const bytes = Buffer.from(base64.slice(from, end + OVERLAP_DIGITS), "base64");
    const text = bytes.toString("latin1");
    // A match that begins in the overlap is counted in the next step.
    const ownBytes = DIGITS_PER_STEP / 4 * 3;
    pages += countPages(text, ownBytes);
    repetitions.read(text, ownBytes);
    for (const match of text.matchAll(OBJECT_STREAM)) {
      if (match.index >= ownBytes || budget.bytes <= 0) break;
      const objects = inflate(bytes.subarray(match.index + match[0].length), budget);
      pages += countPages(objects, MAX_STREAM_BYTES);
      repetitions.read(objects, MAX_STREAM_BYTES);
      yield;
    }
    yield;
  }
  return (pages > 0 ? pages : pagesBySize(base64)) * repetitions.count;
}

/** Counts how often nodes name the same child: a page is then read several times. Usual files do not repeat any. */
class Repetitions {
  /** Product of the most repetitions in each node, because a repeated child may itself repeat its children. */
  count = 1;

  /** Reads the nodes that begin before an index. */
  read(text: string, end: number): void {
    for (const { index, 1: kids = "" } of text.matchAll(KIDS)) {
      if (index >= end || this.count >= MAX_REPETITIONS) return;
      const times = new Map<number, number>();
      let most = 1;
      for (const [, digits] of kids.matchAll(REFERENCE)) {
        const id = Number(digits);
        const count = (times.get(id) ?? 0) + 1;
        times.set(id, count);
        most = Math.max(most, count);
      }
      this.count = Math.min(this.count * most, MAX_REPETITIONS);
    }
  }
}

/** Counts the page objects that begin before an index. */
function countPages(text: string, end: number): number {
  let pages = 0;
  for (const { index } of text.matchAll(PAGE)) if (index < end) pages++;
  return pages;
}

/** Inflates an object stream, and ignores any bytes after it. Returns an empty text if it is invalid or too long. */
function inflate(bytes: Uint8Array, budget: InflateBudget): string {
  try {
    const inflated = inflateSync(bytes, { maxOutputLength: MAX_STREAM_BYTES });
    budget.bytes -= inflated.length;
    return inflated.toString("latin1");
  } catch {
    // zlib may have inflated as many bytes before it failed.
    budget.bytes -= MAX_STREAM_BYTES;
    return "";
  }
}
