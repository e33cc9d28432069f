/**
 * The time of a rejection must not reveal how much of a key was right. Compares keys that begin like a real one with
 * keys that begin like one that was never issued, in random order. Each group has a common beginning: repeated data is
 * always read a little faster. Welch's t of the two times must stay below 4.5, which chance alone reaches once in
 * 150,000 tries. Outliers (another program had the core) are cut off alike for both. A real leak shows each time, so a
 * pair fails only if three rounds in a row do.
 */
import { assert, assertEquals } from "@std/assert";
import { authenticate } from "../../lib/access/authenticate.ts";
import { authenticateAdmin } from "../../lib/access/authenticate_admin.ts";
import { createKeyRing, issueKey, mintKey } from "../../lib/access/keys.ts";
import { parseConfig } from "../../lib/config/parse.ts";
import { openMemoryStore } from "../../lib/store/sqlite/memory.ts";
import { openSqliteStore } from "../../lib/store/sqlite/store.ts";
import type { Store } from "../../lib/store/store.ts";
import { seeded } from "../support/random.ts";
import { inFolder } from "../store/in_folder.ts";
import { ADMIN_KEY, startKeyed } from "../support/keyed_gateway.ts";
import { type Figure, publish } from "./figures.ts";

/** Maximum absolute value of Welch's t. */
const MAX_T = 4.5;
/** Rounds that must all fail. */
const ROUNDS = 3;
/** Pairs of times in a round: of calls within the process, and of requests. */
const CALLS = 60_000;
const REQUESTS = 12_000;
/** Wrong keys that are sent repeatedly, in random order. */
const WRONG_KEYS = 8_192;
/** Share of times that are kept: the rest is noise of the machine. */
const KEPT = 0.8;
/** Leading characters that a key has in common with the real one: `sk-sluice-` and 29 of its own. */
const SHARED_BYTES = 22;

const SEED = Number(Deno.env.get("SEED") ?? crypto.getRandomValues(new Uint32Array(1))[0]);
const random = seeded(SEED);
const figures: Record<string, Figure> = { seed: SEED, most_t: MAX_T };

/** Two kinds of wrong keys, and what refuses them. */
interface Trial {
  name: string;
  pairs: number;
  /** Makes a wrong key: near the real one, or far from it. */
  make: (near: boolean) => string;
  refuse: (key: string) => Promise<unknown>;
}

/** Runs rounds until one is good. */
async function assertSilent(trial: Trial): Promise<void> {
  const statistics: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const t = await measure(trial);
    statistics.push(Math.round(t * 100) / 100);
    if (Math.abs(t) < MAX_T) break;
  }
  figures[trial.name] = { pairs: trial.pairs, t: statistics };
  assert(statistics.some((t) => Math.abs(t) < MAX_T), `${trial.name}: t is ${statistics.join(", ")}`);
}

async function measure({ pairs, make, refuse }: Trial): Promise<number> {
  const times: Record<"near" | "far", number[]> = { near: [], far: [] };
  const wrong = Array.from({ length: WRONG_KEYS }, () => {
    const kind = random.chance(0.5) ? "near" : "far";
    return { kind, key: flat(make(kind === "near")) } as const;
  });
  // The first ones are those of code that is not compiled yet.
  for (let call = -1_000; call < pairs * 2; call++) {
    const { kind, key } = random.pick(wrong);
    const begun = performance.now();
    await refuse(key);
    const took = performance.now() - begun;
    if (call >= 0) times[kind].push(took);
  }
  const all = [...times.near, ...times.far].sort((a, b) => a - b);
  const most = all[Math.floor(all.length * KEPT)] ?? Infinity;
  return welch(times.near.filter((ms) => ms <= most), times.far.filter((ms) => ms <= most));
}

/** The same text, kept in memory as every other is that came from outside, however it was put together. */
function flat(text: string): string {
  return new TextDecoder().decode(new TextEncoder().encode(text));
}

/** Welch's t of two samples. */
function welch(one: readonly number[], other: readonly number[]): number {
  const [a, b] = [momentsOf(one), momentsOf(other)];
  return (a.mean - b.mean) / Math.sqrt(a.variance / one.length + b.variance / other.length);
}

function momentsOf(sample: readonly number[]): { mean: number; variance: number } {
  const mean = sample.reduce((sum, value) => sum + value, 0) / sample.length;
  const variance = sample.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (sample.length - 1);
  return { mean, variance };
}

/** Keys in the form of issued ones, with a valid checksum: half of them begin like the real one. */
function nearAndFar(real: string): (near: boolean) => string {
  const [nearly, other] = [real, mintKey()].map((key) =>
    Uint8Array.fromBase64(key.slice("sk-sluice-".length, "sk-sluice-".length + 43), { alphabet: "base64url" })
      .subarray(0, SHARED_BYTES)
  );
  return (near) => {
    const random = crypto.getRandomValues(new Uint8Array(32));
    random.set((near ? nearly : other) ?? []);
    return mintKey(random);
  };
}

async function withRing(
  store: Store,
  test: (parts: { key: string; refuse: (key: string) => Promise<unknown> }) => Promise<void>,
): Promise<void> {
  const issued = Array.from({ length: 200 }, (_, i) => issueKey({ name: `k${i}`, group: "default", now: 0 }));
  for (const { record } of issued) await store.keys.add(record);
  const keys = createKeyRing({ config: parseConfig({}), store: store.keys, now: () => 1 });
  // The real one is in use: its cached record must not reveal it either.
  assert(await keys.find(issued[100]?.key ?? "") !== undefined);
  const refuse = (key: string) =>
    Promise.try(() =>
      authenticate(new Headers({ authorization: `Bearer ${key}` }), {
        credential: "bearer",
        keys,
        address: () => undefined,
      })
    ).then(() => assert(false, "a wrong key was let in"), () => {});
  await test({ key: issued[100]?.key ?? "", refuse });
  await store.close();
}

Deno.test(`timing: a key of a store in memory, SEED=${SEED}`, () =>
  withRing(openMemoryStore(), async ({ key, refuse }) => {
    await assertSilent({ name: "key_in_memory", pairs: CALLS, make: nearAndFar(key), refuse });
  }));

Deno.test(`timing: a key of a store in a file, SEED=${SEED}`, () =>
  inFolder((folder) =>
    withRing(openSqliteStore(`${folder}/sluice.db`, { own: true }), async ({ key, refuse }) => {
      await assertSilent({ name: "key_in_a_file", pairs: CALLS, make: nearAndFar(key), refuse });
    })
  ));

Deno.test(`timing: a key of the configuration, SEED=${SEED}`, async () => {
  const real = `a-key-of-the-configuration-${"x".repeat(20)}-0123456789`;
  const config = parseConfig(
    { keys: [{ name: "ci", key: { env: "CI" } }] },
    (name) => name === "CI" ? real : undefined,
  );
  const keys = createKeyRing({ config, store: openMemoryStore().keys, now: () => 1 });
  const refuse = (key: string) =>
    Promise.try(() =>
      authenticate(new Headers({ "x-api-key": key }), { credential: "api_key", keys, address: () => undefined })
    ).then(() => assert(false, "a wrong key was let in"), () => {});
  await assertSilent({ name: "configured_key", pairs: CALLS, make: likeText(real), refuse });
});

Deno.test(`timing: the admin key, SEED=${SEED}`, async () => {
  const { admin } = parseConfig({ admin: { key: { env: "ADMIN_KEY" } } }, () => ADMIN_KEY);
  assert(admin !== undefined);
  const refuse = (key: string) => {
    try {
      authenticateAdmin(new Headers({ authorization: `Bearer ${key}` }), admin);
    } catch {
      return Promise.resolve();
    }
    throw new Error("A wrong key was let in");
  };
  await assertSilent({ name: "admin_key", pairs: CALLS, make: likeText(ADMIN_KEY), refuse });
});

/** Keys as long as the real one: half of them differ from it only in the last six characters. */
function likeText(real: string): (near: boolean) => string {
  const letters = "abcdefghijklmnopqrstuvwxyz0123456789";
  const some = (length: number) => Array.from({ length }, () => letters[random.below(letters.length)]).join("");
  const other = some(real.length);
  return (near) => (near ? real : other).slice(0, -6) + some(6);
}

Deno.test(`timing: over HTTP, SEED=${SEED}`, async () => {
  await using gateway = startKeyed();
  const connection = await Deno.connect({ hostname: "127.0.0.1", port: gateway.port });
  const [writer, answer] = [new TextEncoder(), new Uint8Array(16_384)];
  const decoder = new TextDecoder();
  const refuse = async (key: string) => {
    await connection.write(
      writer.encode(`GET /v1/models HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${key}\r\n\r\n`),
    );
    let text = "";
    // The body ends the object that it is.
    while (!/\r\n\r\n\{[^]*\}\}\s*$/.test(text)) {
      text += decoder.decode(answer.subarray(0, await connection.read(answer) ?? 0));
    }
    assertEquals(text.slice(0, 12), "HTTP/1.1 401");
  };
  await assertSilent({ name: "over_http", pairs: REQUESTS, make: nearAndFar(gateway.keys.good), refuse });
  connection.close();
});

Deno.test("timing: a comparison that stops at the first difference would be detected", async () => {
  const real = mintKey();
  const t = await measure({
    name: "leaky",
    pairs: CALLS / 3,
    make: nearAndFar(real),
    refuse: (key) => prefixWork(real, key),
  });
  figures.a_leak = { t: Math.round(t) };
  assert(Math.abs(t) > MAX_T, `t is ${t}`);
});

/** The work of a character-by-character comparison, up to the first difference. */
function prefixWork(real: string, key: string): Promise<void> {
  let right = 0;
  while (right < key.length && key.charCodeAt(right) === real.charCodeAt(right)) right++;
  return right < 0 ? Promise.reject(new Error("Never")) : Promise.resolve();
}

Deno.test("timing: report", () => publish("timing", figures));
