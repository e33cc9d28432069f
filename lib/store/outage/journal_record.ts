/** Formats and parses the records of a journal. A record has the entries of one write, as a line with a checksum. */
import { crc32 } from "node:zlib";
import type { Entry } from "../ledger.ts";

/** First line of a journal: the type of the file and the version of its records. */
export const HEADER = "sluice-journal 1\n";

/** Hexadecimal digits of the checksum before each line. */
const CHECK_DIGITS = 8;

/** Formats entries as one line, so that either all or none of them can be read. */
export function writeRecord(entries: readonly Entry[]): string {
  const text = JSON.stringify(entries.map(({ cost, held, overrun, ...others }) => ({
    ...others,
    cost: cost.toString(),
    held: held.toString(),
    overrun: overrun.toString(),
  })));
  return `${checkOf(text)} ${text}\n`;
}

/** Parses the entries of a line without its line feed. Returns `undefined` if the line is damaged. */
export function readRecord(line: string): Entry[] | undefined {
  const text = line.slice(CHECK_DIGITS + 1);
  if (line.slice(0, CHECK_DIGITS + 1) !== `${checkOf(text)} `) return undefined;
  // The checksum matches, so `writeRecord` made the line.
  const entries: WrittenEntry[] = JSON.parse(text);
  return entries.map(({ cost, held, overrun, ...others }) => ({
    ...others,
    cost: BigInt(cost),
    held: BigInt(held),
    overrun: BigInt(overrun),
  }));
}

/** An entry in JSON. Its amounts are texts, since JSON cannot represent large integers. */
type WrittenEntry = Omit<Entry, "cost" | "held" | "overrun"> & Record<"cost" | "held" | "overrun", string>;

function checkOf(text: string): string {
  return crc32(text).toString(16).padStart(CHECK_DIGITS, "0");
}
