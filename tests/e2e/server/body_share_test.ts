import { assertEquals } from "@std/assert";
import { model, PATHS, startGateway, type TestKey, upstream as connectTo } from "../../support/gateway.ts";
import { soon, until } from "../../support/soon.ts";
import { startUpstream } from "../../upstream/mod.ts";
import { prompt, PROTOCOLS, STREAMED } from "../../upstream/replies.ts";

const BUDGET_BYTES = 1_000_000;
/** Sent and announced bytes of a slow body. */
const [SENT_BYTES, ANNOUNCED_BYTES] = [120_000, 125_000];
const FLOOD = 10;

/** A body that is never complete. It is over when its connection is closed. */
interface SlowBody extends Disposable {
  /** The status line; empty where the connection ends without one. */
  status: Promise<string>;
}

async function sendSlowBody(port: number, { key }: TestKey): Promise<SlowBody> {
  const connection = await Deno.connect({ hostname: "127.0.0.1", port });
  const head = `POST ${PATHS.chat} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${key}\r\n` +
    `content-type: application/json\r\ncontent-length: ${ANNOUNCED_BYTES}\r\n\r\n`;
  const bytes = new TextEncoder().encode(`${head}{"a":"`.padEnd(head.length + SENT_BYTES, "x"));
  const sending = (async () => {
    for (let at = 0; at < bytes.length;) at += await connection.write(bytes.subarray(at));
  })().catch(() => {});
  const buffer = new Uint8Array(1024);
  const status = connection.read(buffer).then(
    (size) => new TextDecoder().decode(buffer.subarray(0, size ?? 0)).split("\r\n")[0] ?? "",
    () => "",
  );
  await sending;
  return { status, [Symbol.dispose]: () => connection.close() };
}

Deno.test("bodies of one key leave a quarter of the budget to other keys", async () => {
  await using gateway = startGateway({
    models: [model("acme/one", [{ upstream: "embedded", model: "echo" }])],
    resource_limits: {
      body_budget_bytes: BUDGET_BYTES,
      json_body_bytes: 250_000,
      body_gap_ms: 60_000,
      body_grace_ms: 60_000,
    },
  });
  const other = await gateway.addKey();
  const statuses: string[] = [];
  const held: SlowBody[] = [];
  try {
    for (let count = 0; count < FLOOD; count++) {
      const body = await soon("a slow body", sendSlowBody(gateway.port, gateway.key));
      void body.status.then((status) => statuses.push(status));
      held.push(body);
    }
    // Six of them fit into three quarters of the budget.
    await until("all others are refused", () => statuses.length === FLOOD - 6);
    for (const status of statuses) assertEquals(status.slice(0, 12), "HTTP/1.1 429");
    for (const protocol of PROTOCOLS) {
      const body = prompt(protocol, {}, "x ".repeat(10_000));
      const served = await gateway.ask(protocol, body, { key: other });
      await served.body?.cancel();
      assertEquals(served.status, 200, protocol);
      const refused = await gateway.ask(protocol, body);
      const answer = await refused.json();
      assertEquals([refused.status, refused.headers.get("retry-after")], [429, "1"], protocol);
      const { message } = answer.error;
      assertEquals(message, "Cannot accept another request body now: too many bytes of this API key are being handled");
      assertEquals(answer.type, protocol === "messages" ? "error" : undefined);
    }
    assertEquals(statuses.length, FLOOD - 6);
  } finally {
    for (const body of held) body[Symbol.dispose]();
  }
  // A body alone may take all of the budget.
  const large = prompt("chat", {}, "x ".repeat(BUDGET_BYTES / 8 - 500));
  let status = 0;
  for (let run = 0; run < 500 && status !== 200; run++) {
    const response = await gateway.ask("chat", large);
    await response.body?.cancel();
    status = response.status;
  }
  assertEquals(status, 200);
});

Deno.test("a body counts until its stream has ended, also if the client has left it", async () => {
  const end = Promise.withResolvers<void>();
  const [first = "", second = "", ...rest] = STREAMED.chat;
  await using upstream = startUpstream(() => ({ steps: [first, second, end.promise, ...rest] }));
  await using gateway = startGateway({
    upstreams: { one: connectTo("openai", upstream.url) },
    models: [model("acme/one", [{ upstream: "one", model: "real-one" }], { on_disconnect: "drain" })],
    resource_limits: { body_budget_bytes: BUDGET_BYTES, json_body_bytes: 250_000 },
  });
  const other = await gateway.addKey();
  const body = prompt("chat", { stream: true }, "x ".repeat(50_000));
  const statusOf = async (key?: TestKey) => {
    const response = await gateway.ask("chat", body, key && { key });
    await response.body?.cancel();
    return response.status;
  };
  // 100 KB of each open stream, and 400 KB of the body that is read: 750 KB in all.
  for (const status of [200, 200, 200, 200, 429, 429]) assertEquals(await statusOf(), status);
  assertEquals(await statusOf(other), 200);
  end.resolve();
  await until("the bodies no longer count", async () => await statusOf() === 200);
});
