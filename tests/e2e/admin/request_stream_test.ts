import { assert, assertEquals, assertMatch } from "@std/assert";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { createDrain } from "../../../lib/server/drain.ts";
import { readSse } from "../../support/sse.ts";
import { freshDatabase, postgresTest } from "../../support/databases.ts";
import { startGateway, type TestGateway } from "../../support/gateway.ts";
import { inFolder, reuseGateways, reuseProcess, run, startReused } from "../../support/program.ts";
import { until } from "../../support/soon.ts";
import { postChat } from "../../support/post_chat.ts";

reuseProcess();
reuseGateways();

const ADMIN_KEY = "an-admin-key-in-a-variable";
const CONFIG = { admin: { key: { env: "ADMIN_KEY" } } };

/** An open stream. */
class Tail implements AsyncDisposable {
  text = "";
  readonly #reader: ReadableStreamDefaultReader<string>;

  private constructor(response: Response) {
    assert(response.body !== null);
    this.#reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  }

  static async open(origin: string, query = "", headers: Record<string, string> = {}): Promise<Tail> {
    const response = await askStream(origin, query, headers);
    assertEquals([response.status, response.headers.get("content-type")], [
      200,
      "text/event-stream; charset=utf-8",
    ]);
    const tail = new Tail(response);
    await tail.until(/^retry: 2000\nid: \d+\n\n/);
    return tail;
  }

  /** Reads until the text has it. */
  async until(pattern: RegExp): Promise<void> {
    while (!pattern.test(this.text)) assert(await this.#read(), this.text);
  }

  /** Reads to the end. */
  async end(): Promise<void> {
    while (await this.#read());
  }

  requests(): JsonObject[] {
    // An event that has not arrived completely is not read.
    const text = this.text.slice(0, this.text.lastIndexOf("\n\n") + 2);
    return readSse(text).filter(({ event }) => event === "request").map(({ data }) => data);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#reader.cancel();
  }

  async #read(): Promise<boolean> {
    const { done, value } = await this.#reader.read();
    this.text += value ?? "";
    return !done;
  }
}

function askStream(origin: string, query = "", headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${origin}/admin/v1/requests/stream?${query}`, {
    headers: { authorization: `Bearer ${ADMIN_KEY}`, ...headers },
  });
}

/** Follows the requests of two keys in the program, with a filter, from a place, and to its end. */
async function followThem(folder: string, env: Record<string, string>): Promise<void> {
  await Deno.writeTextFile(`${folder}/sluice.jsonc`, JSON.stringify(CONFIG));
  const keys: Record<string, string> = {};
  for (const name of ["anna", "ben"]) keys[name] = (await run(["keys", "add", name], { folder, env })).out.trim();
  const gateway = await startReused([], { folder, env });
  const { origin } = gateway;
  const ask = async (name: string) => {
    const response = await postChat(origin, keys[name] ?? "", { messages: [{ role: "user", content: "hi" }] });
    await response.text();
    return response.headers.get("x-request-id");
  };
  const first = await ask("anna");
  const all = await Tail.open(origin);
  const bens = await Tail.open(origin, "key=ben");
  assertEquals([all.text, bens.text], ["retry: 2000\nid: 1\n\n", "retry: 2000\nid: 1\n\n"]);
  const [second, third] = [await ask("anna"), await ask("ben")];
  await all.until(/^id: 3\nevent: request\ndata: .*\n\nid: 3\n\n$/m);
  await bens.until(/^id: 3\nevent: request\ndata: .*\n\nid: 3\n\n$/m);
  assertEquals(all.requests().map(({ id, key, seq }) => [id, key, seq]), [[second, "anna", 2], [third, "ben", 3]]);
  assertEquals(bens.requests().map(({ id }) => id), [third]);
  await using resumed = await Tail.open(origin, "after_seq=3", { "last-event-id": "1" });
  await resumed.until(/^id: 3\n\n$/m);
  assertEquals(resumed.requests().map(({ id }) => id), [second, third]);
  await using whole = await Tail.open(origin, "after_seq=0&key=anna");
  await whole.until(/^id: 3\n\n$/m);
  assertEquals(whole.requests().map(({ id }) => id), [first, second]);
  for (
    const [query, param] of [["sort=cost", "sort"], ["key=nobody", "key"], ["upstream=nope", "upstream"], [
      "after_seq=x",
      "after_seq",
    ]]
  ) {
    const response = await askStream(origin, query);
    assertEquals([response.status, (await response.json()).error.param], [400, param]);
  }
  // Streams do not hold up the end of the process.
  gateway.kill("SIGTERM");
  await Promise.all([all.end(), bens.end()]);
  const { code, err } = await gateway.ended;
  assertEquals(code, 0);
  assertMatch(err, /stopped.*drained/);
}

Deno.test("the request stream follows entries of a SQLite ledger", () =>
  inFolder((folder) => followThem(folder, { ADMIN_KEY })));

postgresTest("the request stream follows entries of a Postgres ledger", () =>
  inFolder(async (folder) => {
    await using database = await freshDatabase();
    await followThem(folder, { ADMIN_KEY, SLUICE_STORE: database.url });
  }));

async function askEcho(gateway: TestGateway): Promise<void> {
  await (await gateway.ask("chat", { model: "sluice/echo", messages: [{ role: "user", content: "hi" }] })).text();
}

Deno.test("request streams beyond the limit are refused, and disconnected ones make room", async () => {
  const drain = createDrain();
  await using gateway = startGateway(CONFIG, { adminKey: ADMIN_KEY, drain });
  const tails = await Promise.all(Array.from({ length: 20 }, () => Tail.open(gateway.url)));
  const refused = await askStream(gateway.url);
  assertEquals([refused.status, (await refused.json()).error.message], [
    429,
    "Cannot open another stream: 20 are open",
  ]);
  const head = await fetch(`${gateway.url}/admin/v1/requests/stream`, {
    method: "HEAD",
    headers: { authorization: `Bearer ${ADMIN_KEY}` },
  });
  await head.body?.cancel();
  await tails[0]?.[Symbol.asyncDispose]();
  await until("the disconnect", () => drain.connections("stream") < 20);
  await using again = await Tail.open(gateway.url);
  await askEcho(gateway);
  await again.until(/^event: request$/m);
  drain.beginShutdown();
  await Promise.all([...tails.slice(1), again].map((tail) => tail.end()));
  assertEquals(drain.connections("stream"), 0);
  const late = await askStream(gateway.url);
  assertEquals([late.status, (await late.json()).error.message], [
    503,
    "Cannot accept this request: the gateway is shutting down",
  ]);
});

Deno.test("a silent request stream has keep-alives with its position, and ends after an hour", async () => {
  let clockMs = 0;
  await using gateway = startGateway(CONFIG, { adminKey: ADMIN_KEY, monotonic: () => clockMs });
  const tail = await Tail.open(gateway.url, "user=nobody");
  await askEcho(gateway);
  clockMs += 15_000;
  await tail.until(/^retry: 2000\nid: 0\n\nid: 1\n\n$/);
  clockMs += 3_600_000;
  await tail.end();
  assertEquals(tail.requests(), []);
});
