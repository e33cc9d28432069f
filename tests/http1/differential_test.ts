import { assert, assertEquals } from "@std/assert";
import { createHttp1Transport } from "../../lib/upstreams/select_transport.ts";
import { createFetchTransport } from "../../lib/upstreams/fetch_transport.ts";
import type { Transport } from "../../lib/upstreams/transport.ts";
import { type Random, seeded } from "../support/random.ts";
import { rounds } from "../support/skip.ts";
import { soon } from "../support/soon.ts";
import { request } from "../upstreams/transports.ts";
import { DIFFERENCES } from "./differences.ts";
import { say, startRawUpstream, type Then } from "../upstream/raw.ts";

/** A transport's result for an answer. */
type Said = { status: number; headers: Record<string, string | null>; body: string } | "error";

const NAMES = ["content-type", "upgrade", "retry-after-ms", "retry-after"] as const;

async function sayOf(transport: Transport, url: string, body: string): Promise<Said> {
  try {
    const incoming = await soon("answer", transport.send(request(url, { body })));
    const headers = Object.fromEntries(NAMES.map((name) => [name, incoming.header(name)]));
    return { status: incoming.status, headers, body: await soon("body", incoming.text(10_000_000)) };
  } catch (error) {
    if (String(error).includes("Too late")) throw error;
    return "error";
  }
}

/** Like `sayOf`; after an error, which may be the end of a kept connection, retries once on a new one. */
async function sayOfKept(transport: Transport, url: string, body: string): Promise<Said> {
  const content = await sayOf(transport, url, body);
  if (content !== "error") return content;
  const fresh = createHttp1Transport();
  try {
    return await sayOf(fresh, url, body);
  } finally {
    fresh.close();
  }
}

/** An answer of the generator: its bytes, in the pieces in which they are sent. */
interface Made {
  pieces: string[];
  then: Then;
}

const WORDS = [
  "a",
  "data: {}",
  "\r\n",
  "0\r\n\r\n",
  "HTTP/1.1 200 OK",
  "\xc3\xa9",
  "\xff",
  "\0",
  "x".repeat(300),
  " ",
] as const;

function makeBody(random: Random): string {
  if (random.below(40) === 0) return "y".repeat(random.below(200_000));
  return Array.from({ length: random.below(30) }, () => random.pick(WORDS)).join("");
}

function cased(random: Random, name: string): string {
  return random.pick([name, name.toUpperCase(), name.replace(/^./, (char) => char.toUpperCase())]);
}

/** An answer that is valid, invalid, or valid in an unusual form. */
function makeAnswer(random: Random): Made {
  const status = random.pick([200, 200, 200, 200, 201, 204, 304, 400, 404, 429, 500, 503, 529, 307]);
  const version = random.below(12) === 0 ? "1.0" : "1.1";
  const first = `HTTP/${version} ${status}${random.pick([" OK", " ", "", " \xe4 b"])}`;
  const lines = Array.from({ length: random.below(6) }, () => {
    const value = random.pick([
      "",
      "1",
      "a b",
      "\xe9",
      "text/event-stream; charset=utf-8",
      "x".repeat(random.below(3_000)),
      "a, b",
    ]);
    return `${cased(random, random.pick(["content-type", "upgrade", "retry-after-ms", "x-three", "retry-after"]))}:${
      random.pick(["", " ", "\t "])
    }${value}${random.pick(["", "", " \t"])}`;
  });
  if (random.below(8) === 0) {
    lines.push(random.pick(["connection: close", "Connection: keep-alive", "keep-alive: timeout=5"]));
  }
  const body = status === 204 || status === 304 ? "" : makeBody(random);
  const kind = version === "1.0"
    ? random.pick(["length", "close"])
    : random.pick(["length", "length", "chunked", "chunked", "close"]);
  let wire = body;
  if (kind === "length" && status !== 204) lines.push(`${cased(random, "content-length")}: ${body.length}`);
  if (kind === "chunked" && status !== 204 && status !== 304) {
    lines.push(`${cased(random, "transfer-encoding")}: ${cased(random, "chunked")}`);
    wire = chunksOf(random, body);
  }
  let all = `${first}\r\n${random.shuffled(lines).map((line) => `${line}\r\n`).join("")}\r\n${wire}`;
  if (random.below(10) === 0) all = `HTTP/1.1 ${random.pick([100, 102, 103])} Wait\r\nupgrade: no\r\n\r\n${all}`;
  let then: Then = kind === "close" ? "close" : "keep";
  if (random.below(10) === 0 && all.length > 1) {
    all = all.slice(0, random.below(all.length));
    then = "close";
  } else if (random.below(12) === 0) {
    all = broken(random, all);
    then = "close";
  }
  const pieces: string[] = [];
  const size = random.pick([1 << 30, 1 << 30, 1_000, 50]);
  for (let at = 0; at < all.length && pieces.length < 20; at += size) pieces.push(all.slice(at, at + size));
  pieces.push(all.slice(pieces.join("").length));
  return { pieces, then };
}

function chunksOf(random: Random, body: string): string {
  let wire = "";
  for (let at = 0; at < body.length;) {
    const size = Math.min(1 + random.below(random.pick([4, 100, 20_000])), body.length - at);
    const hex = random.pick([size.toString(16), size.toString(16).toUpperCase(), `0${size.toString(16)}`]);
    wire += `${hex}${random.pick(["", "", "", ";a", ";a=b"])}\r\n${body.slice(at, at + size)}\r\n`;
    at += size;
  }
  return `${wire}0\r\n${random.pick(["", "", "x-sum: 1\r\n"])}\r\n`;
}

/** One byte more, less or another. */
function broken(random: Random, wire: string): string {
  const at = random.below(Math.min(wire.length, 400));
  const byte = random.pick(["\r", "\n", "\0", " ", ":", "x", "5", "\t", ""]);
  return wire.slice(0, at) + byte + wire.slice(at + random.below(2));
}

Deno.test("our client reads answers as fetch does, or more strictly", async () => {
  const random = seeded(20_261);
  const answers = Array.from({ length: rounds(3_000) }, () => makeAnswer(random));
  await using server = startRawUpstream(async (socket, { body }) => {
    const made = answers[Number(body)];
    if (made === undefined) return "close";
    for (const piece of made.pieces) {
      await say(socket, piece);
      if (made.pieces.length > 2) await Promise.resolve();
    }
    return made.then;
  });
  const ours = createHttp1Transport();
  const theirs = createFetchTransport({ idleConnections: 0 });
  let errors = 0;
  let stricter = 0;
  let next = 0;
  async function compare(): Promise<void> {
    for (let number = next++; number < answers.length; number = next++) {
      const wire = answers[number]?.pieces.join("") ?? "";
      const [we, they] = await Promise.all([
        sayOfKept(ours, server.url, String(number)),
        sayOf(theirs, server.url, String(number)),
      ]);
      const about = `${number}: ${JSON.stringify(wire.slice(0, 1_000))}`;
      if (we === "error" && they !== "error") {
        stricter++;
        assert(isKnown(wire), about);
        continue;
      }
      if (we === "error") errors++;
      else if (we.status === 205) we.body = "";
      assertEquals(we, they, about);
    }
  }
  try {
    await Promise.all(Array.from({ length: 16 }, compare));
  } finally {
    ours.close();
    theirs.close();
  }
  assert(errors > answers.length / 30 && stricter > 0, `${errors} errors, ${stricter} stricter`);
});

/** True if an answer that only `fetch` takes has one of the written differences. */
function isKnown(all: string): boolean {
  const wire = all.replace(/^HTTP\/1\.1 1\d\d [^]*?\r\n\r\n/, "");
  const end = wire.search(/\r?\n\r?\n/);
  const head = end < 0 ? wire : wire.slice(0, end + 2);
  const rest = wire.slice(head.length);
  return /(^|[^\r])\n/.test(all) || /^\r\n/.test(wire) ||
    (/content-length/i.test(head) && /transfer-encoding/i.test(head)) ||
    (/transfer-encoding:/i.test(head) && !/transfer-encoding: *chunked[ \t]*\r\n/i.test(`${head}\r\n`)) ||
    /^HTTP\/1\.\d (204|304)[^]*content-length:(?! *\d+[ \t]*\r\n)/i.test(`${head}\r\n`) ||
    /\r\n[0-9a-f]+([ \t]+[\r;]|;[^\r\n]*\0)/i.test(rest);
}

Deno.test("the documented differences from fetch are real", async () => {
  for (const { name, wire, ...wanted } of DIFFERENCES) {
    for (const [which, transport] of [["fetch", createFetchTransport()], ["http1", createHttp1Transport()]] as const) {
      await using server = startRawUpstream(async (socket) => {
        await say(socket, wire);
        return "close";
      });
      const content = await sayOf(transport, server.url, "{}");
      transport.close();
      assertEquals(
        content === "error" ? content : { status: content.status, body: content.body },
        wanted[which],
        `${name}: ${which}`,
      );
    }
  }
});
