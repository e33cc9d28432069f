import { assert, assertEquals } from "@std/assert";
import type { FaultServer } from "../../lib/fault/server.ts";
import { startServer } from "./start_server.ts";
import { until } from "../support/soon.ts";

function chat(text: string, more: Record<string, unknown> = {}): string {
  return JSON.stringify({ model: "any", messages: [{ role: "user", content: text }], ...more });
}

/** Sends a request by hand. */
async function open(server: FaultServer, body: string): Promise<Deno.TcpConn> {
  const connection = await Deno.connect({ hostname: "127.0.0.1", port: server.port });
  const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: ${body.length}\r\n\r\n`;
  await connection.write(new TextEncoder().encode(head + body));
  return connection;
}

/** Everything up to the end. @throws if the connection is reset */
async function readAll(connection: Deno.TcpConn): Promise<string> {
  const buffer = new Uint8Array(65_536);
  let text = "";
  for (let size = await connection.read(buffer); size !== null; size = await connection.read(buffer)) {
    text += new TextDecoder().decode(buffer.subarray(0, size));
  }
  return text;
}

Deno.test("cut and reset end the answer early, on first and later connections", async () => {
  await using server = startServer();
  for (const ask of ["cut-after:2", "reset-after:2"]) {
    for (const stream of [true, false]) {
      const connection = await open(server, chat(ask, { stream }));
      const text = await readAll(connection).catch((error) => {
        // A late read gets the reset in place of the end.
        assert(error instanceof Deno.errors.ConnectionReset);
        return "HTTP/1.1 200 OK";
      });
      assert(text.startsWith("HTTP/1.1 200 OK") && !text.includes("[DONE]"));
      connection.close();
    }
  }
  const kept = await open(server, chat("nothing wrong"));
  const buffer = new Uint8Array(65_536);
  assert((await kept.read(buffer) ?? 0) > 0);
  const body = chat("cut");
  await kept.write(
    new TextEncoder().encode(`POST /v1/chat/completions HTTP/1.1\r\ncontent-length: ${body.length}\r\n\r\n${body}`),
  );
  assertEquals(await readAll(kept), "");
  kept.close();
});

Deno.test("an answer that stalls in its middle is complete, even within a multi-byte character", async () => {
  await using server = startServer();
  // The length of the model's name moves the middle, which is within an emoji for some of them.
  for (let length = 75; length < 105; length++) {
    const body = chat("stall-after:1:1ms", { model: "m".repeat(length) });
    const answer = await fetch(`${server.url}/v1/chat/completions`, { method: "POST", body });
    assertEquals((await answer.json()).choices.length, 1);
  }
});

Deno.test("a bomb is a gzip file with as many zeros as requested", async () => {
  await using server = startServer();
  const body = chat("gzip-bomb:3mb");
  const answer = await fetch(`${server.url}/v1/chat/completions`, { method: "POST", body });
  assertEquals((await answer.bytes()).length, 3 * 1024 ** 2);
});

Deno.test("an answer ends when its peer disconnects, in any phase", async () => {
  await using server = startServer();
  for (const ask of ["stall", "stall-after:2", "endless", "drip:5ms", "slow:5s"]) {
    const connection = await open(server, chat(ask, { stream: true }));
    await until(`${ask} under way`, () => server.busy === 1);
    connection.close();
    await until(`${ask} over`, () => server.busy === 0 && server.open === 0);
  }
});

Deno.test("a stopped server leaves nothing behind", async () => {
  const server = startServer();
  const connections = await Promise.all(
    ["stall", "stall-after:2", "endless", "drip:1s"].map((ask) => open(server, chat(ask, { stream: true }))),
  );
  await until("all under way", () => server.busy === connections.length);
  await server[Symbol.asyncDispose]();
  assertEquals([server.busy, server.open], [0, 0]);
  for (const connection of connections) connection.close();
});

Deno.test("the fault may be constant, or that of the model id", async () => {
  const paths: string[] = [];
  await using always = startServer({
    always: { name: "status", status: 418 },
    onRequest: ({ path }) => paths.push(path),
  });
  const post = { method: "POST", body: chat("status:500") };
  for (const path of ["/v1/chat/completions", "/chat/completions"]) {
    const response = await fetch(always.url + path, post);
    await response.body?.cancel();
    assertEquals(response.status, 418);
  }
  assertEquals(paths, ["/v1/chat/completions", "/chat/completions"]);
  await using server = startServer();
  const body = chat("hello", { model: "acme/fault-status-429" });
  const response = await fetch(`${server.url}/v1/chat/completions`, { method: "POST", body });
  await response.body?.cancel();
  assertEquals(response.status, 429);
});

Deno.test("a request of an unknown protocol is refused", async () => {
  await using server = startServer();
  const cases: [path: string, body: string, status: number][] = [
    ["/v1/chat/completions", "{", 400],
    ["/v1/messages", "[]", 400],
    ["/v1/moderations", "{}", 404],
  ];
  for (const [path, body, status] of cases) {
    const response = await fetch(server.url + path, { method: "POST", body });
    assertEquals((await response.json()).error.type, "invalid_request_error");
    assertEquals(response.status, status);
  }
});

Deno.test("image requests in JSON and in forms are read", async () => {
  await using server = startServer();
  const form = new FormData();
  form.set("prompt", "status:429");
  form.set("model", "any");
  form.set("image", new Blob([new Uint8Array(1_000)]), "a.png");
  const edit = await fetch(`${server.url}/v1/images/edits`, { method: "POST", body: form });
  await edit.body?.cancel();
  assertEquals(edit.status, 429);
  for (const [stream, type] of [[true, "text/event-stream"], [false, "application/json"]] as const) {
    const body = JSON.stringify({ model: "any", prompt: "A heron", stream });
    const made = await fetch(`${server.url}/v1/images/generations`, { method: "POST", body });
    assertEquals([made.status, made.headers.get("content-type")], [200, type]);
    assert((await made.text()).includes("b64_json"));
  }
});
