/** Answers that their clients read late or never: they count among the bodies in memory. */
import { assertEquals } from "@std/assert";
import { startGateway, type TestGateway, type TestKey, upstream as connectTo } from "../../support/gateway.ts";
import { plainModel } from "../../support/plain_model.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { soon, until } from "../../support/soon.ts";
import { json, startUpstream } from "../../upstream/mod.ts";
import { prompt, WHOLE } from "../../upstream/replies.ts";
import { embeddingRow } from "../retrieval/retrieval.ts";
import { painter, PRICES } from "../images/gateway.ts";
import { base64Of, png } from "../../images/image_files.ts";

/** More than the system buffers for a client that does not read. */
const ANSWER_BYTES = 8_000_000;
/** Three quarters are less than two answers. */
const BUDGET_BYTES = 20_000_000;

const REFUSAL = "Cannot accept another request body now: too many bytes of this API key are being handled";

/** Sends a request and reads the status alone. The rest of the answer waits until the connection is closed. */
async function askUnread(
  { port }: TestGateway,
  { path, body, headers = "", key }: { path: string; body: string; headers?: string; key: TestKey },
): Promise<{ status: number } & Disposable> {
  const connection = await Deno.connect({ hostname: "127.0.0.1", port });
  const length = new TextEncoder().encode(body).length;
  await connection.write(new TextEncoder().encode(
    `POST ${path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${key.key}\r\n${headers}` +
      `content-type: application/json\r\ncontent-length: ${length}\r\n\r\n${body}`,
  ));
  let isOpen = true;
  const close = () => {
    if (isOpen) connection.close();
    isOpen = false;
  };
  const buffer = new Uint8Array(12);
  await connection.read(buffer);
  return { status: Number(new TextDecoder().decode(buffer).slice(9)), [Symbol.dispose]: close };
}

async function statusOf(answer: Promise<Response>): Promise<number> {
  const response = await answer;
  await response.body?.cancel();
  return response.status;
}

Deno.test("large answers that are not read count for their key until they were sent", async () => {
  const [choice] = structuredClone(WHOLE.chat.choices) as { message: { content: string } }[];
  if (choice !== undefined) choice.message.content = "x".repeat(ANSWER_BYTES);
  let isLarge = true;
  await using server = startUpstream(() => json(isLarge ? { ...WHOLE.chat, choices: [choice] } : WHOLE.chat));
  await using gateway = startGateway({
    upstreams: { one: connectTo("openai", server.url) },
    models: [plainModel({ targets: [{ upstream: "one", model: "m" }] })],
    resource_limits: { body_budget_bytes: BUDGET_BYTES },
  });
  const other = await gateway.addKey();
  const asked = { path: "/v1/chat/completions", body: JSON.stringify(prompt("chat", {})), key: gateway.key };
  {
    using first = await askUnread(gateway, asked);
    using second = await askUnread(gateway, asked);
    assertEquals([first.status, second.status], [200, 200]);
    isLarge = false;
    const refused = await gateway.ask("chat", prompt("chat", {}));
    assertEquals([refused.status, (await refused.json()).error.message], [429, REFUSAL]);
    assertEquals(await statusOf(gateway.ask("chat", prompt("chat", {}), { key: other })), 200);
  }
  await until(
    "the answers no longer count",
    async () => await statusOf(gateway.ask("chat", prompt("chat", {}))) === 200,
  );
});

/** A gateway with one image model, which paints in this process if `isLocal`. */
function startPainting(image: string, { isLocal = false, limits }: { isLocal?: boolean; limits: JsonObject }) {
  const upstream = { ...painter(() => [{ type: "image", index: 0, base64: image }]), isLocal };
  const gateway = startGateway({
    upstreams: { p: { vendor: "openai-compatible", base_url: "http://127.0.0.1:9" } },
    models: [{
      id: "acme/paint",
      created: 1,
      context_length: 32_000,
      architecture: { output_modalities: ["image"] },
      pricing: PRICES,
      targets: [{ upstream: "p", model: "paint-1" }],
    }],
    resource_limits: limits,
  }, { painters: { p: upstream } });
  const body = JSON.stringify({ model: "acme/paint", prompt: "A cat", quality: "low", size: "1024x1024" });
  const asked = { path: "/v1/images/generations", body, headers: "idempotency-key: a\r\n", key: gateway.key };
  return { gateway, upstream, asked };
}

Deno.test("repeats of an unread answer are refused before they fill the memory", async () => {
  const image = base64Of(png(1024, 1024)).padEnd(ANSWER_BYTES, "A");
  const { gateway, upstream, asked } = startPainting(image, { limits: { body_budget_bytes: BUDGET_BYTES } });
  await using _ = gateway;
  {
    using first = await askUnread(gateway, asked);
    using second = await askUnread(gateway, asked);
    assertEquals([first.status, second.status], [200, 429]);
  }
  await until("the answers no longer count", async () => {
    using again = await askUnread(gateway, asked);
    return again.status === 200;
  });
  assertEquals(upstream.calls.length, 1);
});

Deno.test("unread repeated images of one key leave pixels to other keys", async () => {
  const image = base64Of(png(1024, 1024)).padEnd(ANSWER_BYTES, "A");
  // An unread answer counts as two million pixels. Three of them fit into the share of a key.
  const limits = { image_pixels: 8_400_000, image_wait_ms: 600_000 };
  const { gateway, asked } = startPainting(image, { isLocal: true, limits });
  await using _ = gateway;
  const other = await gateway.addKey();
  using first = await askUnread(gateway, asked);
  using second = await askUnread(gateway, asked);
  using third = await askUnread(gateway, asked);
  const fourth = askUnread(gateway, asked);
  try {
    using ofOther = await soon("an image", askUnread(gateway, { ...asked, headers: "", key: other }));
    assertEquals([first, second, third, ofOther].map(({ status }) => status), [200, 200, 200, 200]);
  } finally {
    for (const each of [first, second, third]) each[Symbol.dispose]();
    (await fourth)[Symbol.dispose]();
  }
});

Deno.test("embeddings reserve the memory of their answer before they are made", async () => {
  const release = Promise.withResolvers<void>();
  const body = JSON.stringify({ data: [{ index: 0, embedding: "x" }], usage: { prompt_tokens: 1 } });
  await using server = startUpstream(() => ({
    headers: { "content-type": "application/json" },
    steps: [release.promise, body],
  }));
  await using gateway = startGateway({
    upstreams: { one: connectTo("openai", server.url) },
    models: [embeddingRow("acme/vectors", ["one"], { embedding: { dimensions: 1_000 } })],
    resource_limits: { body_budget_bytes: 1_000_000 },
  });
  const input = Array.from({ length: 50 }, (_, index) => `text ${index}`);
  const ask = (key: TestKey) =>
    fetch(`${gateway.url}/v1/embeddings`, {
      method: "POST",
      headers: { authorization: `Bearer ${key.key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "acme/vectors", input }),
    });
  // 600 KB of each answer: the second one is above the share of the key.
  const first = ask(gateway.key);
  await until("the first request is sent", () => server.requests.length === 1);
  assertEquals(await statusOf(ask(gateway.key)), 429);
  release.resolve();
  await statusOf(first);
});
