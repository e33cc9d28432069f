import { assert, assertEquals, assertMatch } from "@std/assert";
import { createLog, createLogWriter } from "../../lib/cli/log.ts";
import { Secret } from "../../lib/secret.ts";

Deno.test("the log writes one JSON object per line for any entry", () => {
  const lines: string[] = [];
  const log = createLog({ write: (line) => void lines.push(line), now: () => 0 });
  log({ level: "warn", event: "prune_failed", path: "\u001b[31m\r\n" });
  assertEquals(lines.length, 1);
  assertEquals(lines[0]?.indexOf("\n"), (lines[0]?.length ?? 0) - 1);
  assertEquals(JSON.parse(lines[0] ?? ""), {
    time: "1970-01-01T00:00:00.000Z",
    level: "warn",
    event: "prune_failed",
    path: "\u001b[31m\r\n",
  });
});

Deno.test("a log line contains no line separators, has a bounded length, and respects the level", () => {
  const lines: string[] = [];
  let level: "info" | "warn" | "error" = "info";
  const log = createLog({ write: (line) => void lines.push(line), now: () => 0, level: () => level });
  const text = "\u009b2J\u007f\u0085\u2028\u2029\u202e\ud800\u0000";
  log({ level: "info", event: "stopping", text, long: "x".repeat(100_000) });
  // deno-lint-ignore no-control-regex
  assertEquals(lines[0]?.slice(0, -1).match(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202e]/g), null);
  assert((lines[0]?.length ?? 0) < 4_400);
  assertEquals(JSON.parse(lines[0] ?? "").text, text);
  level = "warn";
  log({ level: "info", event: "stopping" });
  log({ level: "warn", event: "prune_failed" });
  level = "error";
  log({ level: "warn", event: "prune_failed" });
  log({ level: "error", event: "store_down" });
  assertEquals(lines.slice(1).map((line) => JSON.parse(line).event), ["prune_failed", "store_down"]);
});

Deno.test("the log writer writes all lines in order, batched, even in small chunks", async () => {
  let text = "";
  let writes = 0;
  const writer = createLogWriter({
    async write(bytes) {
      writes++;
      await Promise.resolve();
      text += new TextDecoder().decode(bytes.subarray(0, 100));
      return Math.min(100, bytes.length);
    },
  });
  for (let i = 0; i < 1_000; i++) writer.write(`${i}\n`);
  await writer.flush();
  assertEquals(text, Array.from({ length: 1_000 }, (_, i) => `${i}\n`).join(""));
  assert(writes < 60, `${writes} writes`);
  assertEquals(writer.lost, 0);
});

Deno.test("a slow or closed reader of the log blocks nothing, and lost lines are counted and logged", async () => {
  const open = Promise.withResolvers<void>();
  let text = "";
  const writer = createLogWriter({
    async write(bytes) {
      await open.promise;
      text += new TextDecoder().decode(bytes);
      return bytes.length;
    },
  }, { maxWaitingUnits: 100, flushMs: 20 });
  writer.write("first\n");
  await Promise.resolve();
  await Promise.resolve();
  for (let i = 0; i < 100; i++) writer.write("0123456789\n");
  await writer.flush();
  assertEquals([text, writer.lost], ["", 91]);
  open.resolve();
  await writer.flush();
  assertMatch(text, /^first\n(0123456789\n){9}\{"time":"[-\d]+T[\d:.]+Z",.*"log_lines_lost","lines":91\}\n$/);

  const gone = createLogWriter({ write: () => Promise.reject(new Deno.errors.BrokenPipe()) });
  gone.write("one\n");
  await gone.flush();
  assertEquals(gone.lost, 1);
});

Deno.test("after a full disk the log continues on a line of its own, with the number of all lost lines", async () => {
  let [text, room] = ["", 12];
  const writer = createLogWriter({
    write(bytes) {
      const part = bytes.subarray(0, Math.min(room, 8));
      if (part.length === 0) return Promise.reject(new Error("No space left on device"));
      text += new TextDecoder().decode(part);
      room -= part.length;
      return Promise.resolve(part.length);
    },
  });
  for (const line of ["whole", "torn lost\nlost", "lost", "lost"]) {
    writer.write(`${line}\n`);
    await writer.flush();
  }
  room = 1_000;
  writer.write("back\n");
  await writer.flush();
  assertMatch(text, /^whole\ntorn l\nback\n\{.*"lines":4\}\n$/);
});

Deno.test("createLog() redacts secrets in failure lines", () => {
  new Secret("log-secret-0123456789");
  const lines: string[] = [];
  const log = createLog({ write: (line) => void lines.push(line), now: () => 0 });
  log({ level: "warn", event: "transport_fallback", reason: "Bearer log-secret-0123456789 is refused" });
  log({ level: "info", event: "request", kind: "not_found", model: btoa("log-secret-0123456789") });
  assertEquals(lines.map((line) => JSON.parse(line)), [
    { time: "1970-01-01T00:00:00.000Z", level: "warn", event: "transport_fallback", reason: "Bearer [key] is refused" },
    { time: "1970-01-01T00:00:00.000Z", level: "info", event: "request", kind: "not_found", model: "[key]" },
  ]);
});
