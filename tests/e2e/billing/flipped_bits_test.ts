import { assert, assertEquals } from "@std/assert";
import { isDeepStrictEqual } from "node:util";
import { DatabaseSync } from "node:sqlite";
import { auditLedger } from "../../../lib/billing/reports/audit.ts";
import type { AuditReport } from "../../../lib/billing/reports/schemas.ts";
import { findDamage } from "../../../lib/store/sqlite/integrity.ts";
import type { Entry } from "../../../lib/store/ledger.ts";
import { openSqliteStore } from "../../../lib/store/sqlite/store.ts";
import { StoreError } from "../../../lib/store/store.ts";
import { inFolder } from "../../support/program.ts";
import { entryOf, someEntries, tokensOf } from "../../billing/reports/entries.ts";
import { QUICK, rounds, skipInQuick } from "../../support/skip.ts";

/** Entries in which no column has the same value everywhere. */
function entries(): Entry[] {
  const held = entryOf({ id: "held", held: 1_000_000_000n, keyId: "key_9", attempts: 2 });
  const image = entryOf({
    id: "image",
    endpoint: "images.edits",
    ending: "done",
    source: "formula",
    images: 2,
    tokens: tokensOf({ prompt: 90, completion: 14_048, input_cache_write_5m: 7, input_cache_write_1h: 5 }),
    details: {
      extras: [{ item: "input_image", count: 510, price: "0.0000012" }],
      image_sizes: { asked: "1024x1024", delivered: ["1024x1024", "1024x1024"] },
    },
  });
  return [...someEntries(16), held, image];
}

/** A store with these entries, closed. */
async function writeStore(path: string): Promise<void> {
  const store = openSqliteStore(`${path}`, { own: true });
  await store.ledger.append(entries());
  await store.close();
}

/** Result of the file's audit; `undefined` if it cannot be opened. */
async function audit(path: string): Promise<AuditReport | undefined> {
  try {
    const store = openSqliteStore(`${path}`);
    try {
      return await auditLedger(store.ledger, { damage: findDamage(path) });
    } finally {
      await store.close();
    }
  } catch (error) {
    if (error instanceof StoreError) return undefined;
    throw error;
  }
}

/** The value with one of its bits flipped. */
function flipped(value: unknown): string | number | bigint {
  if (typeof value === "string") {
    return value === "" ? "\u0001" : value.slice(0, -1) + String.fromCharCode(value.charCodeAt(value.length - 1) ^ 8);
  }
  return typeof value === "bigint" ? value ^ 8n : 8;
}

Deno.test("the audit finds one flipped bit in any column of entries, price sheets and sums per day", () =>
  inFolder(async (folder) => {
    const whole = `${folder}/whole.db`;
    await writeStore(whole);
    assertEquals((await audit(whole))?.ok, true);
    for (const table of ["entries", "price_sheets", "days", "ledger_start"]) {
      using db = new DatabaseSync(whole, { readOnly: true });
      const rows = db.prepare(`SELECT * FROM ${table}`);
      rows.setReadBigInts(true);
      const [row] = rows.all().slice(-1);
      assert(row !== undefined);
      for (const [index, [column, value]] of Object.entries(row).entries()) {
        if (QUICK && index % 4 > 0) continue;
        // The one row of its table has this name; nothing is kept in it.
        if (column === "one") continue;
        const copy = `${folder}/${table}-${column}.db`;
        await Deno.copyFile(whole, copy);
        tamper(copy, { table, column, row, value: flipped(value) });
        const report = await audit(copy);
        assertEquals(report?.ok, false, `${table}.${column}: ${value} became ${flipped(value)}`);
        await Deno.remove(copy);
      }
    }
  }));

/** Writes a value and bypasses the triggers that protect rows. */
function tamper(
  path: string,
  { table, column, row, value }: {
    table: string;
    column: string;
    row: Record<string, unknown>;
    value: string | number | bigint;
  },
): void {
  using db = new DatabaseSync(path);
  for (const { name } of db.prepare("SELECT name FROM sqlite_schema WHERE type = 'trigger'").all()) {
    db.exec(`DROP TRIGGER ${name}`);
  }
  db.exec("PRAGMA ignore_check_constraints = ON");
  const names = Object.keys(row);
  const is = names.map((name) => `${name} IS ?`).join(" AND ");
  const values = Object.values(row) as (string | bigint | null)[];
  assertEquals(db.prepare(`UPDATE ${table} SET ${column} = ? WHERE ${is}`).run(value, ...values).changes, 1);
}

/** Distance between tested bits. Odd, so that every position within a byte is tested eventually. */
const STRIDE = skipInQuick("Most flipped bits") ? 1_301 : Math.floor(431 / rounds(7)) | 1;

Deno.test("the audit finds one flipped bit in the bytes of rows and of indexes", () =>
  inFolder(async (folder) => {
    const [whole, copy] = [`${folder}/whole.db`, `${folder}/copy.db`];
    await writeStore(whole);
    const bytes = await Deno.readFile(whole);
    const spans = payloads(whole, bytes);
    const missed: string[] = [];
    let tried = 0;
    for (const { name, from, until } of spans) {
      for (let bit = from * 8; bit < until * 8; bit++) {
        if (bit % STRIDE !== 0) continue;
        tried++;
        bytes[bit >> 3] = (bytes[bit >> 3] ?? 0) ^ (1 << (bit & 7));
        await Deno.writeFile(copy, bytes);
        bytes[bit >> 3] = (bytes[bit >> 3] ?? 0) ^ (1 << (bit & 7));
        // A NULL at the end of a row may be stored or omitted.
        if ((await audit(copy))?.ok === true && !(name === "entries" && await saysTheSame(copy, whole))) {
          missed.push(`${name}, byte ${bit >> 3}, bit ${bit & 7}`);
        }
      }
    }
    assertEquals(missed, []);
    assert(tried > 18_000 / STRIDE, `only ${tried} bits were tried`);
  }));

/** True if two files have the same entries. */
async function saysTheSame(one: string, other: string): Promise<boolean> {
  const [first, second] = await Promise.all([one, other].map(async (path) => {
    const store = openSqliteStore(path);
    try {
      return await store.ledger.entries({ after: 0, limit: 1_000 });
    } finally {
      await store.close();
    }
  }));
  return isDeepStrictEqual(first, second);
}

/** Offsets of the rows of the ledger in the file, by the format of SQLite: https://www.sqlite.org/fileformat2.html */
function payloads(path: string, bytes: Uint8Array): { name: string; from: number; until: number }[] {
  using db = new DatabaseSync(path, { readOnly: true });
  const pageSize = Number(db.prepare("PRAGMA page_size").get()?.page_size);
  const trees = db.prepare(
    "SELECT name, rootpage FROM sqlite_schema WHERE rootpage > 0 AND tbl_name IN ('entries', 'price_sheets', 'days')",
  ).all();
  const view = new DataView(bytes.buffer);
  return trees.flatMap(({ name, rootpage }) => {
    const page = (Number(rootpage) - 1) * pageSize;
    const kind = bytes[page];
    // Leaves of tables and of indexes. These few rows need no other pages.
    assert(kind === 13 || kind === 10, `${name} has more than one page`);
    return Array.from({ length: view.getUint16(page + 3) }, (_, cell) => {
      const size = readVarint(bytes, page + view.getUint16(page + 8 + 2 * cell));
      const from = kind === 13 ? readVarint(bytes, size.end).end : size.end;
      const span = { name: String(name), from, until: from + size.value };
      // The second byte of a table row is the type of its key, whose value is stored elsewhere: nothing reads it.
      return kind === 10 ? [span] : [{ ...span, until: from + 1 }, { ...span, from: from + 2 }];
    }).flat();
  });
}

function readVarint(bytes: Uint8Array, at: number): { value: number; end: number } {
  let value = 0;
  for (let end = at;; end++) {
    const byte = bytes[end] ?? 0;
    value = value * 128 + (byte & 127);
    if (byte < 128) return { value, end: end + 1 };
  }
}
