import { assert, assertEquals, assertGreater, assertLessOrEqual, assertRejects } from "@std/assert";
import type { Entry } from "../../../lib/store/ledger.ts";
import { type Journal, type JournalParts, openJournal } from "../../../lib/store/outage/journal.ts";
import { StoreError } from "../../../lib/store/store.ts";
import { seeded } from "../../support/random.ts";
import { entry, WHY } from "../behaviours_ledger.ts";
import { SHEET } from "../../billing/reports/entries.ts";
import { inFolder } from "../in_folder.ts";
import { findProgram, skipIf, skipInQuick } from "../../support/skip.ts";

/** Maximum number of bytes between two places at which a journal is cut or damaged. */
const [CUTS, DAMAGES] = skipInQuick("Most cut and damaged journals") ? [60, 40] : [20, 12];

const IS_UNIX = Deno.build.os !== "windows";

/** A journal with its log lines. */
async function open(
  path: string,
  parts: Partial<JournalParts> = {},
): Promise<{ journal: Journal; lines: Record<string, unknown>[] }> {
  const lines: Record<string, unknown>[] = [];
  const journal = await openJournal(path, { maxEntries: 1000, log: (line) => void lines.push(line), ...parts });
  return { journal, lines };
}

/** Replays all entries. */
async function empty(journal: Journal): Promise<Entry[]> {
  const entries: Entry[] = [];
  await journal.play((batch) => Promise.resolve(void entries.push(...batch)));
  return entries;
}

function ids(entries: readonly Entry[]): string[] {
  return entries.map(({ id }) => id);
}

/** Entries with all members, with only the required ones, and with the largest numbers. */
const VARIANTS: Entry[] = [
  entry({ id: "whole", details: WHY }),
  (({ sheet: _, firstMs: __, ...rest }) => ({ ...rest, id: "bare" }))(entry()),
  entry({
    id: "large",
    cost: 2n ** 63n - 1n,
    held: 2n ** 62n + 1n,
    overrun: 12_345_678_901_234_567n,
    totalMs: 2 ** 53 - 1,
  }),
  entry({ id: 'odd "\u2028\n\t\ud83d\ude00 \u0000', model: "a/b\nc", sheet: { ...SHEET, model: "\\u0041" } }),
];

Deno.test("Journal keeps entries in order over a restart, and empties its file after the replay", () =>
  inFolder(async (folder) => {
    const path = `${folder}/deep/journal`;
    const first = await open(path);
    const size = (await Deno.stat(path)).size;
    // A test write leaves nothing behind.
    await first.journal.append([]);
    assertEquals((await Deno.stat(path)).size, size);
    await first.journal.append(VARIANTS.slice(0, 2));
    await first.journal.append(VARIANTS.slice(2));
    assertEquals(first.journal.waiting, 4);
    await first.journal.close();
    if (IS_UNIX) {
      const modes = [(await Deno.stat(`${folder}/deep`)).mode, (await Deno.stat(path)).mode].map((mode) =>
        (mode ?? 0) & 0o777
      );
      assertEquals(modes, [0o700, 0o600]);
    }
    const second = await open(path);
    assertEquals(second.journal.waiting, 4);
    assertEquals(second.lines, [{ level: "info", event: "journal_found", path, entries: 4 }]);
    assertEquals(await empty(second.journal), VARIANTS);
    assertEquals([second.journal.waiting, (await Deno.stat(path)).size], [0, size]);
    await second.journal.append([entry({ id: "next" })]);
    assertEquals(ids(await empty(second.journal)), ["next"]);
    await second.journal.close();
    const third = await open(path);
    assertEquals([third.journal.waiting, third.lines], [0, []]);
    await third.journal.close();
  }));

Deno.test("Journal keeps entries whose replay failed before later ones, and repeats after a crash", () =>
  inFolder(async (folder) => {
    const path = `${folder}/journal`;
    const { journal } = await open(path, { maxEntries: 10_000 });
    const all: string[] = [];
    const add = async (count: number) => {
      const batch = Array.from({ length: count }, (_, index) => entry({ id: `e${all.length + index}` }));
      all.push(...ids(batch));
      await journal.append(batch);
    };
    for (const count of [1, 300, 100, 100, 100]) await add(count);
    const got: string[] = [];
    const failure = new Error("gone again");
    const playing = journal.play(async (batch) => {
      if (got.length >= 301) throw failure;
      assertLessOrEqual(batch.length, 300);
      got.push(...ids(batch));
      await add(1);
    });
    assertEquals(await assertRejects(() => playing), failure);
    assertEquals(got, all.slice(0, 301));
    assertEquals(journal.waiting, all.length - got.length);
    // Now the process dies: the file still has all entries.
    await journal.close();
    const again = await open(path);
    assertEquals(ids(await empty(again.journal)), all);
    await again.journal.close();
  }));

Deno.test("Journal recovers all entries before a truncated write", () =>
  inFolder(async (folder) => {
    const path = `${folder}/journal`;
    const { journal } = await open(path);
    const sizes = [(await Deno.stat(path)).size];
    for (const id of ["one", "two"]) {
      await journal.append([entry({ id }), entry({ id: `${id}b` })]);
      sizes.push((await Deno.stat(path)).size);
    }
    await journal.close();
    const bytes = await Deno.readFile(path);
    const { below } = seeded(5);
    for (
      let length = 0;
      length <= bytes.length;
      length += length < 40 || length > bytes.length - 10 ? 1 : below(CUTS)
    ) {
      await Deno.writeFile(path, bytes.subarray(0, length));
      const cut = await open(path);
      const whole = sizes.filter((size) => size <= length && size > (sizes[0] ?? 0)).length;
      assertEquals(cut.journal.waiting, whole * 2, String(length));
      const isTorn = length > 0 && !sizes.includes(length);
      assertEquals(cut.lines.some(({ event }) => event === "journal_truncated"), isTorn, String(length));
      await cut.journal.append([entry({ id: "next" })]);
      assertEquals(ids(await empty(cut.journal)), [...["one", "oneb", "two", "twob"].slice(0, whole * 2), "next"]);
      await cut.journal.close();
    }
  }));

Deno.test("Journal skips and reports modified records, keeps a copy, and reads the rest", () =>
  inFolder(async (folder) => {
    const path = `${folder}/journal`;
    const { journal } = await open(path);
    const start = (await Deno.stat(path)).size;
    const sizes: number[] = [];
    for (const id of ["one", "two", "three"]) {
      await journal.append([entry({ id })]);
      sizes.push((await Deno.stat(path)).size);
    }
    await journal.close();
    const bytes = await Deno.readFile(path);
    const [one = 0, two = 0] = sizes;
    const { below } = seeded(9);
    for (let at = start; at < bytes.length - 1; at += 1 + below(DAMAGES)) {
      const damaged = bytes.slice();
      damaged[at] = (damaged[at] ?? 0) ^ (1 << below(8));
      await Deno.writeFile(path, damaged);
      const opened = await open(path);
      const kept = String(opened.lines.find(({ event }) => event === "journal_damaged")?.kept);
      assertEquals(await Deno.readFile(kept), damaged, String(at));
      const isEnd = [one - 1, two - 1].includes(at);
      const lost = at < one ? ["one"] : at < two ? ["two"] : ["three"];
      // Without the line end between them, two records are one invalid record.
      if (isEnd) lost.push(at < one ? "two" : "three");
      assertEquals(ids(await empty(opened.journal)), ["one", "two", "three"].filter((id) => !lost.includes(id)));
      await opened.journal.close();
      await Deno.remove(kept);
    }
  }));

Deno.test("Journal stops new work when it is full, accepts a tenth more from running work, and recovers", () =>
  inFolder(async (folder) => {
    for (const parts of [{ maxEntries: 20 }, { maxEntries: 1e6, maxBytes: 15_000 }]) {
      const { journal } = await open(`${folder}/${parts.maxEntries}`, parts);
      const counts: number[] = [];
      const fill = async () => {
        while (journal.hasRoom) await journal.append([entry({ id: crypto.randomUUID() })]);
        counts.push(journal.waiting);
        await assertRejects(
          async () => {
            for (let more = 0; more < 10; more++) await journal.append([entry({ id: crypto.randomUUID() })]);
          },
          Error,
          "the journal is full",
        );
        counts.push(journal.waiting);
      };
      await fill();
      const [full = 0, over = 0] = counts;
      if (parts.maxEntries === 20) assertEquals(counts, [20, 22]);
      assert(full < over && over <= full * 1.2, String(counts));
      await assertRejects(() => journal.append(Array.from({ length: 9 }, () => entry())));
      assertEquals((await empty(journal)).length, over);
      assertEquals(journal.hasRoom, true);
      await fill();
      assertEquals(counts, [full, over, full, over]);
      await journal.close();
    }
  }));

Deno.test("Journal is exclusive to one process, and rejects other files", () =>
  inFolder(async (folder) => {
    const path = `${folder}/journal`;
    const { journal } = await open(path);
    const other = await assertRejects(() => open(path), StoreError, "another gateway uses it");
    assert(other.message.includes('"nodes.journal"') && other.message.includes(path));
    await journal.close();
    await (await open(path)).journal.close();
    for (const text of ["something else\n", "something else without an end", "sluice-journal 2\nx\n"]) {
      await Deno.writeTextFile(path, text);
      await assertRejects(() => open(path), StoreError, "it is not a journal");
      assertEquals(await Deno.readTextFile(path), text);
    }
    await assertRejects(() => open(`${folder}/journal/below`), StoreError, "Cannot open the journal");
    await assertRejects(() => open(folder), StoreError, "Cannot open the journal");
  }));

Deno.test("Journal acknowledges nothing that it writes to a file that was deleted, replaced or emptied", () =>
  inFolder(async (folder) => {
    const ways: [name: string, act: (path: string) => Promise<void>, left: string[]][] = [
      ["deleted", (path) => Deno.remove(path), ["one"]],
      ["replaced", (path) => Deno.remove(path).then(() => Deno.writeTextFile(path, "")), ["one"]],
      ["emptied", (path) => Deno.truncate(path), []],
    ];
    for (const [name, act, left] of ways) {
      const path = `${folder}/${name}`;
      const { journal } = await open(path);
      await journal.append([entry({ id: "one" })]);
      await act(path);
      await assertRejects(() => journal.append([entry({ id: "two" })]), Error, "was deleted or replaced", name);
      await assertRejects(() => journal.append([]), Error, "was deleted or replaced", name);
      assertEquals([journal.hasRoom, ids(await empty(journal))], [false, left], name);
      await journal.close();
    }
  }));

Deno.test("Journal moves permanently rejected entries to a separate file", () =>
  inFolder(async (folder) => {
    const { journal } = await open(`${folder}/journal`);
    for (const id of ["one", "two"]) await journal.putAside([entry({ id })]);
    const kept = await Deno.readTextFile(`${folder}/journal.refused`);
    assertEquals(kept.match(/"id":"(\w+)"/g), ['"id":"one"', '"id":"two"']);
    await journal.close();
  }));

/** Starts the writer; `limit` is the largest file it may write, in blocks of 512 or 1024 bytes. */
function startWriter(path: string, { count, limit }: { count: number; limit?: number }): Deno.ChildProcess {
  const args = ["run", "--no-prompt", "-A", "tests/store/outage/journal_writer.ts", path, String(count)];
  if (limit === undefined) return new Deno.Command(Deno.execPath(), { args, stdout: "piped" }).spawn();
  const script = `trap '' XFSZ; ulimit -f ${limit}; exec "$0" "$@"`;
  const env = { DENO_NO_UPDATE_CHECK: "1" };
  return new Deno.Command("sh", { args: ["-c", script, Deno.execPath(), ...args], env, stdout: "piped" }).spawn();
}

async function acked(
  child: Deno.ChildProcess,
  enough = Infinity,
): Promise<Record<"acked" | "refused" | "failed", string[]>> {
  const content = { acked: [] as string[], refused: [] as string[], failed: [] as string[] };
  let rest = "";
  let isKilled = false;
  for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      const [how, id = ""] = line.split(" ");
      if (how === "acked" || how === "refused" || how === "failed") content[how].push(id);
    }
    // Only once: earlier output may still arrive after the kill.
    if (content.acked.length < enough || isKilled) continue;
    isKilled = true;
    child.kill("SIGKILL");
  }
  await child.status;
  return content;
}

Deno.test("Journal loses no acknowledged entry whenever the process is killed", () =>
  inFolder(async (folder) => {
    for (const enough of [1, 30, 100]) {
      const path = `${folder}/${enough}`;
      const acknowledged = (await acked(startWriter(path, { count: 100_000 }), enough)).acked;
      const { journal } = await open(path, { maxEntries: 1e6 });
      const found = ids(await empty(journal));
      await journal.close();
      const expected = acknowledged.flatMap((id) => [id, `${id}b`]);
      assertEquals(found.slice(0, expected.length), expected);
      assertGreater(acknowledged.length, enough - 1);
      // A write in progress is there completely, or not at all.
      assertEquals((found.length - expected.length) % 2, 0);
    }
  }));

Deno.test({
  name: "Journal rejects entries on a full disk, and keeps acknowledged ones",
  ignore: !IS_UNIX || skipIf(findProgram("sh") === undefined, "sh is not installed"),
  fn: () =>
    inFolder(async (folder) => {
      const path = `${folder}/journal`;
      const content = await acked(startWriter(path, { count: 1000, limit: 40 }));
      assertEquals([content.refused.length, content.failed], [3, content.refused]);
      assertGreater(content.acked.length, 5);
      const { journal, lines } = await open(path);
      assertEquals(lines.map(({ event }) => event), ["journal_found"]);
      assertEquals(ids(await empty(journal)), content.acked.flatMap((id) => [id, `${id}b`]));
      await journal.close();
    }),
});
