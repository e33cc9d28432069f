/** Exports and imports keys as JSON lines, with their hashes and without their secrets. */
import { z } from "zod";
import { groupOf, keyRulesSchema, nameSchema } from "../config.ts";
import { schemaProblems } from "../config/problems.ts";
import { GatewayError } from "../errors.ts";
import { tryParse } from "../json/mod.ts";
import type { KeyRecord } from "../store/keys.ts";
import type { KeyAdmin } from "./key_admin.ts";
import { isoTime } from "../store/times.ts";

/** Version of the format. An incompatible change increments it. */
const VERSION = 1;

/** Largest number of problems that an error lists. */
const MAX_PROBLEMS = 20;

const hashSchema = z.string().regex(/^[0-9a-f]{64}$/, { error: "Expected SHA-256 in hexadecimal" });
const timeSchema = z.iso.datetime({ precision: 3, error: 'Expected a time such as "2026-11-21T04:18:10.907Z"' });

/** The first line: the format and the number of keys. */
const headSchema = z.strictObject({
  format: z.literal("sluice-keys"),
  version: z.literal(VERSION),
  keys: z.number().int().min(0),
});

/** Each further line: a key. `null`: there is no such time, or no previous secret. */
const keySchema = z.strictObject({
  id: z.string().regex(/^key_[A-Za-z0-9_-]{1,64}$/, { error: 'Expected an id such as "key_FJJUXxbndaOn"' }),
  name: nameSchema,
  hash: hashSchema,
  group: nameSchema,
  created_at: timeSchema,
  disabled: z.boolean(),
  revoked_at: timeSchema.nullable(),
  expires_at: timeSchema.nullable(),
  last_used_at: timeSchema.nullable(),
  rules: keyRulesSchema,
  former: z.strictObject({ hash: hashSchema, until: timeSchema }).nullable(),
});

type KeyLine = z.output<typeof keySchema>;

/** Formats keys as JSON lines: a header with their number, then a line for each key. */
export function writeKeyLines(records: readonly KeyRecord[]): string {
  const head: z.output<typeof headSchema> = { format: "sluice-keys", version: VERSION, keys: records.length };
  return [head, ...records.map(toLine)].map((line) => `${JSON.stringify(line)}\n`).join("");
}

/**
 * Reads the output of `writeKeyLines`.
 * @throws {GatewayError} `invalid` for another format or version, or a bad line
 */
export function readKeyLines(text: string): KeyRecord[] {
  const [first, ...keys] = text.split("\n").map((line, index) => ({ line, number: index + 1 }))
    .filter(({ line }) => line.trim() !== "").map(({ line, number }) => ({
      value: tryParse(line, JSON.parse),
      number,
    }));
  const head = headSchema.safeParse(first?.value);
  if (!head.success) {
    const version = z.object({ format: z.literal("sluice-keys"), version: z.number() }).safeParse(first?.value);
    throw refused([
      version.success && version.data.version > VERSION
        ? `they were exported by a newer version of Sluice (format ${version.data.version}, known up to ${VERSION})`
        : "the first line is not the header of a key export",
    ]);
  }
  if (keys.length !== head.data.keys) {
    throw refused([`the file is incomplete: ${keys.length} of ${head.data.keys} keys are there`]);
  }
  const parsed = keys.map((key) => ({ ...key, ...keySchema.safeParse(key.value) }));
  const problems = parsed.flatMap(({ value, number, error }) =>
    error === undefined ? [] : schemaProblems(keySchema, error, value).map((problem) => `line ${number}: ${problem}`)
  );
  if (problems.length > 0) throw refused(problems);
  return parsed.flatMap(({ data }) => data === undefined ? [] : [toRecord(data)]);
}

/** The result of an import. */
export interface ImportedKeys {
  added: number;
  /** Number of keys that the store had already. */
  present: number;
}

/**
 * Adds keys with all their properties to a store. A key that the store has already is skipped, even if its last use
 * differs, so an import can be repeated. If any key conflicts, none is added, unless another process adds a conflicting
 * key at the same time.
 * @throws {GatewayError} `invalid` for keys that differ from stored ones, or whose name or secret is in use
 */
export async function importKeys(
  { config, store, origin }: Pick<KeyAdmin, "config" | "store" | "origin">,
  records: readonly KeyRecord[],
): Promise<ImportedKeys> {
  const known = new KnownKeys(config, await store.keys.list());
  const missing = records.filter((record) => known.addIfNew(record));
  if (known.problems.length > 0) throw refused(known.problems);
  for (const record of missing) {
    if (await store.keys.add(record, origin)) continue;
    throw new GatewayError(
      "invalid",
      `Cannot import key "${record.name}": another process added a key with its name or secret in the meantime. ` +
        "The keys before it were added; import the file again",
    );
  }
  return { added: missing.length, present: records.length - missing.length };
}

/** The stored keys and those to add, to find conflicts between them. */
class KnownKeys {
  readonly problems: string[] = [];
  readonly #config: KeyAdmin["config"];
  readonly #byId = new Map<string, KeyRecord>();
  readonly #byHash = new Map<string, KeyRecord>();
  readonly #byName = new Map<string, KeyRecord>();

  constructor(config: KeyAdmin["config"], records: readonly KeyRecord[]) {
    this.#config = config;
    for (const record of records) this.#add(record);
  }

  /** Adds a key if it is new and has no conflict, and returns whether it did. Adds a conflict to `problems`. */
  addIfNew(record: KeyRecord): boolean {
    const same = this.#byId.get(record.id);
    const problem = same === undefined ? this.#newProblem(record) : differenceText(record, same);
    if (problem !== undefined) this.problems.push(`key "${record.name}" (${record.id}): ${problem}`);
    if (same !== undefined || problem !== undefined) return false;
    this.#add(record);
    return true;
  }

  #add(record: KeyRecord): void {
    this.#byId.set(record.id, record);
    for (const hash of hashesOf(record)) this.#byHash.set(hash, record);
    if (record.revokedAt === undefined) this.#byName.set(record.name, record);
  }

  /** Returns what prevents adding a new key; `undefined` if nothing does. */
  #newProblem(record: KeyRecord): string | undefined {
    const withSameSecret = hashesOf(record).map((hash) => this.#byHash.get(hash)).find((key) => key !== undefined);
    if (withSameSecret !== undefined) {
      return `it has the same secret as key "${withSameSecret.name}" (${withSameSecret.id})`;
    }
    if (record.revokedAt !== undefined) return undefined;
    const withSameName = this.#byName.get(record.name);
    if (withSameName !== undefined) return `its name is used by ${withSameName.id}`;
    const { keys, groups } = this.#config;
    if (keys.some(({ name }) => name === record.name)) return "the configuration has a key with this name";
    if (groupOf(this.#config, record.group) !== undefined) return undefined;
    return `unknown group "${record.group}"; known: ${Object.keys(groups).join(", ")}`;
  }
}

function hashesOf({ hash, former }: KeyRecord): string[] {
  return former === undefined ? [hash] : [hash, former.hash];
}

/** Names the members in which two keys differ; `undefined` if at most their last use differs. */
function differenceText(record: KeyRecord, present: KeyRecord): string | undefined {
  const [imported, stored] = [toLine(record), toLine(present)];
  const differing = (Object.keys(imported) as (keyof KeyLine)[]).filter((name) =>
    name !== "last_used_at" && JSON.stringify(imported[name]) !== JSON.stringify(stored[name])
  );
  return differing.length === 0
    ? undefined
    : `the key with this id has a different ${differing.join(", ")} in the store`;
}

function toLine(record: KeyRecord): KeyLine {
  const { id, name, hash, group, createdAt, disabled, revokedAt, expiresAt, lastUsedAt, rules, former } = record;
  return {
    id,
    name,
    hash,
    group,
    created_at: new Date(createdAt).toISOString(),
    disabled,
    revoked_at: isoTime(revokedAt),
    expires_at: isoTime(expiresAt),
    last_used_at: isoTime(lastUsedAt),
    rules,
    former: former === undefined ? null : { hash: former.hash, until: new Date(former.until).toISOString() },
  };
}

function toRecord(line: KeyLine): KeyRecord {
  const { id, name, hash, group, disabled, rules, former } = line;
  return {
    id,
    name,
    hash,
    group,
    createdAt: Date.parse(line.created_at),
    disabled,
    ...(line.revoked_at !== null && { revokedAt: Date.parse(line.revoked_at) }),
    ...(line.expires_at !== null && { expiresAt: Date.parse(line.expires_at) }),
    ...(line.last_used_at !== null && { lastUsedAt: Date.parse(line.last_used_at) }),
    rules,
    ...(former !== null && { former: { hash: former.hash, until: Date.parse(former.until) } }),
  };
}

function refused(problems: readonly string[]): GatewayError {
  const shown = problems.slice(0, MAX_PROBLEMS);
  const more = problems.length > shown.length ? [`and ${problems.length - shown.length} more`] : [];
  return new GatewayError("invalid", ["Cannot import the keys; none was added:", ...shown, ...more].join("\n  "));
}
