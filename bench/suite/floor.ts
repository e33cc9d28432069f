/**
 * Floors: gateways that make no decisions. They consist of `Deno.serve`, Sluice's HTTP client, and a splice that
 * replaces the model id; they do not parse, check, count or limit. With `headers` an answer has the eleven headers of
 * Sluice; with `ledger` it waits for a durable row in Sluice's ledger; `both` does both. They relay whole chat answers
 * only. Arguments: port, upstream, variant, folder.
 */
import { findValue } from "../../lib/json/mod.ts";
import { replaceSpan } from "../../lib/text.ts";
import { createLedger, type Ledger } from "../../lib/billing/ledger.ts";
import type { Entry, PriceSheet } from "../../lib/store/ledger.ts";
import { openStore } from "../../lib/store/open.ts";
import { createHttp1Transport } from "../../lib/upstreams/select_transport.ts";

const [port = "0", upstream = "", has = "nothing", folder = "."] = Deno.args;

const JSON_TYPE = { headers: { "content-type": "application/json" } };
const LIMITS = { connectMs: 10_000, firstByteMs: 60_000, idleMs: 60_000, totalMs: 600_000 };
const HEADERS = [
  ["x-ratelimit-limit-requests", "1000000"],
  ["x-ratelimit-remaining-requests", "999983"],
  ["x-ratelimit-reset-requests", "12ms"],
  ["x-ratelimit-limit-tokens", "1000000000"],
  ["x-ratelimit-remaining-tokens", "999998741"],
  ["x-ratelimit-reset-tokens", "1s"],
  ["x-sluice-upstream", "chat-whole"],
  ["x-sluice-model", "chat/whole"],
  ["x-sluice-attempts", "1"],
  ["x-sluice-cost", "0.00123"],
] as const;

const transport = createHttp1Transport({ idleMs: 60_000 });
const ledger = has === "ledger" || has === "both" ? await openLedger() : undefined;
const headers = has === "headers" || has === "both" ? HEADERS : [];
const decoder = new TextDecoder();
const never = new AbortController().signal;
const SHEET: PriceSheet = {
  model: "chat/whole",
  factor: "1",
  prompt: "0.00000125",
  completion: "0.00001",
  input_cache_read: "0.00000125",
  input_cache_write_5m: "0.00000125",
  input_cache_write_1h: "0.00000125",
};
let requests = 0;

Deno.serve({ hostname: "127.0.0.1", port: Number(port), onListen: () => {} }, async (request) => {
  const { url } = request;
  const text = decoder.decode(await request.bytes());
  const incoming = await transport.send({
    url: upstream + url.slice(url.indexOf("/", 8)),
    headers: { "content-type": "application/json" },
    body: withModel(text, "model-1"),
    signal: never,
    limits: LIMITS,
  });
  const answer = withModel(await incoming.text(1_000_000), "model");
  incoming.release();
  const id = `req_${String(++requests).padStart(20, "0")}`;
  await ledger?.enter(entryOf(id));
  const response = new Response(answer, JSON_TYPE);
  if (headers.length > 0) {
    for (const [name, value] of headers) response.headers.append(name, value);
    response.headers.append("x-request-id", id);
  }
  return response;
});

function withModel(text: string, model: string): string {
  const span = findValue(text, ["model"]);
  return span === undefined ? text : replaceSpan(text, span, `"${model}"`);
}

async function openLedger(): Promise<Ledger> {
  const { ledger: store } = await openStore({ kind: "sqlite", path: `${folder}/floor.db` }, { own: true });
  return createLedger({ store, now: Date.now });
}

function entryOf(id: string): Entry {
  return {
    id,
    at: Date.now(),
    keyId: "key_floor",
    group: "default",
    model: "chat/whole",
    upstream: "chat-whole",
    endpoint: "chat",
    status: 200,
    ending: "end",
    tokens: {
      prompt: 200,
      input_cache_read: 0,
      input_cache_write_5m: 0,
      input_cache_write_1h: 0,
      completion: 100,
      reasoning: 0,
    },
    source: "upstream",
    sheet: SHEET,
    cost: 1_250_000_000n,
    held: 0n,
    overrun: 0n,
    firstMs: 1,
    totalMs: 2,
    attempts: 1,
    images: 0,
  };
}
