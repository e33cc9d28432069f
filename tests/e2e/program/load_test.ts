import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { inFolder, reuseGateways, type RunningWithKey, startReused, startWithKey } from "../../support/program.ts";

reuseGateways();

const LONG = "one two three four ".repeat(20_000);

const REQUESTS: Record<string, (text: string) => Record<string, unknown>> = {
  "/v1/chat/completions": (text) => ({ messages: [{ role: "user", content: text }] }),
  "/v1/responses": (text) => ({ input: text }),
  "/anthropic/v1/messages": (text) => ({ max_tokens: 1000, messages: [{ role: "user", content: text }] }),
};

function ask(gateway: RunningWithKey, path: string, text: string): Promise<Response> {
  return fetch(`${gateway.origin}${path}`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${gateway.key}`,
      "content-type": "application/json",
      "anthropic-version": "2023-06-01",
    },
    body: JSON.stringify({ model: "sluice/echo", stream: true, ...REQUESTS[path]?.(text) }),
  });
}

/** The text of a stream of any protocol. */
async function textOf(response: Response): Promise<string> {
  const events = (await response.text()).split("\n").filter((line) => line.startsWith("data: {"))
    .map((line) => JSON.parse(line.slice(6)));
  return events.map((event) => {
    if (typeof event.delta === "string") return event.delta;
    return event.delta?.text ?? event.choices?.[0]?.delta.content ?? "";
  }).join("");
}

/** Opens a stream on a connection of its own, and reads only its first bytes. */
async function openStream(gateway: RunningWithKey): Promise<Deno.TcpConn> {
  const { hostname, port } = new URL(gateway.origin);
  const body = JSON.stringify({ model: "sluice/echo", stream: true, messages: [{ role: "user", content: LONG }] });
  const connection = await Deno.connect({ hostname, port: Number(port) });
  const head = [
    "POST /v1/chat/completions HTTP/1.1",
    `host: ${hostname}`,
    `authorization: Bearer ${gateway.key}`,
    "content-type: application/json",
    `content-length: ${body.length}`,
  ];
  const writer = connection.writable.getWriter();
  await writer.write(new TextEncoder().encode(`${head.join("\r\n")}\r\n\r\n${body}`));
  writer.releaseLock();
  const bytes = new Uint8Array(16);
  const size = await connection.read(bytes);
  assertEquals(new TextDecoder().decode(bytes.subarray(0, size ?? 0)), "HTTP/1.1 200 OK\r");
  return connection;
}

/** Stops a gateway without running requests. */
async function endsAtOnce(gateway: RunningWithKey): Promise<void> {
  gateway.kill("SIGTERM");
  const { code, err } = await gateway.ended;
  assertEquals(code, 0);
  assertStringIncludes(err, '"outcome":"drained"');
  assertEquals(err.includes('"level":"error"'), false, err);
}

Deno.test("concurrent streams each receive their own text", () =>
  inFolder(async (folder) => {
    const gateway = await startWithKey([], { folder }, startReused);
    const questions = Array.from({ length: 20 }, (_, index) =>
      Object.keys(REQUESTS).map((path) => ({
        path,
        text: `${path} number ${index}, ${"and so on ".repeat(index * 3)}.`,
      }))).flat();
    const texts = await Promise.all(questions.map(async ({ path, text }) => textOf(await ask(gateway, path, text))));
    assertEquals(texts, questions.map(({ text }) => text));
    await endsAtOnce(gateway);
  }));

Deno.test("a client that does not read its stream delays no others", () =>
  inFolder(async (folder) => {
    const gateway = await startWithKey([], { folder }, startReused);
    const connections = await Promise.all(Array.from({ length: 3 }, () => openStream(gateway)));
    for (const path of Object.keys(REQUESTS)) {
      assertEquals(await textOf(await ask(gateway, path, "Me first")), "Me first");
    }
    // The rest arrives complete once it is read.
    const [first, ...others] = connections;
    assert(first !== undefined);
    for (const connection of others) connection.close();
    let end = "";
    const decoder = new TextDecoder();
    for await (const bytes of first.readable) {
      end = (end + decoder.decode(bytes, { stream: true })).slice(-100);
      if (end.endsWith("\r\n0\r\n\r\n")) break;
    }
    assertStringIncludes(end, "data: [DONE]\n\n");
    await endsAtOnce(gateway);
  }));
