import { assert, assertEquals } from "@std/assert";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { loadTokenCounter } from "../../../lib/o200k/mod.ts";
import { othersTurns } from "../../support/others_turns.ts";
import { model, startGateway, upstream } from "../../support/gateway.ts";
import { prompt, PROTOCOLS } from "../../upstream/replies.ts";
import { assertSameBill, streamedBill } from "./bills.ts";
import { frames, whole } from "../../upstream/frames.ts";
import { startUpstream, type Step } from "../../upstream/mod.ts";
import { entriesOf, priceOf, startWorld, tokens, type World } from "./world.ts";

const counter = await loadTokenCounter();
const never = new Promise<never>(() => {});

/** Chat frames that report a usage with each piece, as some hosts do. */
function withRunningUsage(pieces: readonly string[]): string[] {
  const { opening, pieces: texts, ending } = frames("chat", pieces, "missing");
  return [...opening, ...texts, ...ending].map((frame, index) => {
    if (!frame.startsWith("data: {")) return frame;
    const body = JSON.parse(frame.slice(6));
    const usage = { prompt_tokens: 11, completion_tokens: index, total_tokens: 11 + index };
    return `data: ${JSON.stringify({ ...body, usage })}\n\n`;
  });
}

function startChat(steps: Iterable<Step>, config = {}): World {
  return startWorld({ protocol: "chat", way: "relayed", says: () => ({ steps }), config });
}

async function readUntil(reader: ReadableStreamDefaultReader<Uint8Array>, text: string): Promise<string> {
  const decoder = new TextDecoder();
  let got = "";
  while (!got.includes(text)) {
    const { value } = await reader.read();
    assert(value !== undefined, got);
    got += decoder.decode(value, { stream: true });
  }
  return got;
}

const ASKED = prompt("chat", { stream: true, stream_options: { include_usage: true } });

Deno.test("usage reports in every chunk delay nothing, and the last one is billed", async () => {
  const goOn = Promise.withResolvers<void>();
  const [first = "", ...steps] = withRunningUsage(["alpha ", "beta ", "gamma"]);
  // The first frame has no text and arrives alone.
  function* saying(): Generator<Step> {
    yield* [first, othersTurns(6), ...steps.slice(0, 2), goOn.promise, ...steps.slice(2)];
  }
  await using world = startChat(saying());
  const response = await world.gateway.ask("chat", ASKED);
  const reader = response.body?.getReader();
  assert(reader !== undefined);
  let got = await readUntil(reader, "beta");
  goOn.resolve();
  got += await readUntil(reader, "[DONE]");
  await reader.cancel();
  const entry = await world.entry();
  assertEquals(entry.tokens, tokens({ prompt: 11, completion: 4 }));
  assertSameBill(streamedBill("chat", got), entry, got);
  assertEquals(got.split("sluice_cost").length, 2);
  assertEquals([...got.matchAll(/alpha|beta|gamma/g)].map(([piece]) => piece), ["alpha", "beta", "gamma"]);
  await world.assertSettled(entry, "running usage");
});

Deno.test("a client that disconnects from a stream with running usage is charged for what it received", async () => {
  const steps = withRunningUsage(["alpha ", "beta ", "gamma"]);
  await using world = startChat([...steps.slice(0, 3), never]);
  const leave = new AbortController();
  const response = await world.gateway.ask("chat", ASKED, { signal: leave.signal });
  const reader = response.body?.getReader();
  assert(reader !== undefined);
  await readUntil(reader, "beta");
  leave.abort();
  const entry = await world.entry();
  const charged = tokens({ prompt: 11, completion: counter.count("alpha beta ") });
  assertEquals([entry.ending, entry.cost], ["client_disconnected", priceOf(charged)]);
  await world.assertSettled(entry, "left");
});

Deno.test("a chat stream without usage gets one at its end for clients that asked", async () => {
  const { opening, pieces, ending } = frames("chat", ["alpha ", "beta"], "missing");
  for (const asks of [true, false]) {
    await using world = startChat([...opening, ...pieces, ...ending]);
    const response = await world.gateway.ask("chat", asks ? ASKED : prompt("chat", { stream: true }));
    const text = await response.text();
    const entry = await world.entry();
    assertEquals(entry.tokens.completion, counter.count("alpha beta"));
    if (asks) assertSameBill(streamedBill("chat", text), entry, text);
    assertEquals([text.includes("usage"), text.includes("sluice_cost")], [asks, asks], text);
    assertEquals(text.endsWith("data: [DONE]\n\n"), true);
  }
});

Deno.test("a Gemini stream without usage gets one in its last piece, whatever follows the finish reason", async () => {
  const { pieces, ending } = frames("gemini", ["alpha ", "beta"], "missing");
  const more = 'data: {"candidates":[{"content":{"parts":[],"role":"model"},"index":0}],"modelVersion":"real-one"}\n\n';
  for (const after of [[], [more]]) {
    const steps = [...pieces, ...ending, ...after];
    await using google = startUpstream(() => ({ steps }));
    const pricing = { prompt: "0.000003", completion: "0.000015" };
    await using gateway = startGateway({
      upstreams: { google: upstream("gemini", google.url) },
      models: [model("acme/one", [{ upstream: "google", model: "real-one" }], { pricing })],
    });
    const text = await (await gateway.ask("gemini", prompt("gemini", { stream: true }))).text();
    const [entry] = await entriesOf(gateway.store.ledger, 1);
    assert(entry !== undefined);
    assertEquals(entry.tokens.completion, counter.count("alpha beta"));
    assertSameBill(streamedBill("gemini", text), entry, text);
    assertEquals([text.split("usageMetadata").length, text.split("sluice_cost").length], [2, 2], text);
  }
});

/** Moves the usage of a chat frame to where only some clients read it. */
function moveUsage(frame: string, move: (usage: JsonObject) => JsonObject): string {
  if (!frame.includes('"usage"')) return frame;
  const { usage, ...body } = JSON.parse(frame.slice("data: ".length));
  return `data: ${JSON.stringify({ ...body, ...move(usage) })}\n\n`;
}

Deno.test("a chat stream has one usage chunk at its end, however the upstream sends it", async () => {
  const spellings: [reportedUsage: "reported" | "missing", spell: (frame: string) => string][] = [
    ["missing", (frame) => frame.replace("data: {", "data:  { ")],
    ["reported", (frame) => frame.replace('"usage"', '"\\u0075s\\u0061ge"')],
    ["reported", (frame) => frame.replace('"usage":', '"usage" : ').replace("data: {", "data:\t{")],
    // As Groq and Moonshot do.
    ["reported", (frame) => moveUsage(frame, (usage) => ({ x_groq: { usage } }))],
    ["reported", (frame) => moveUsage(frame, (usage) => ({ choices: [{ index: 0, delta: {}, usage }] }))],
  ];
  for (const [reportedUsage, spell] of spellings) {
    const { opening, pieces, ending } = frames("chat", ["alpha ", "beta"], reportedUsage);
    const steps = [...opening, ...pieces, ...ending].map(spell);
    for (const cut of [steps, [steps.join("")]]) {
      await using world = startChat(cut);
      const text = await (await world.gateway.ask("chat", ASKED)).text();
      const bodies = text.split("\n\n").slice(0, -2).map((frame) => JSON.parse(frame.slice("data:".length)));
      const tells = bodies.map(({ usage }) => usage !== undefined && usage !== null);
      assertEquals(tells, bodies.map((_, index) => index === bodies.length - 1), text);
      assertEquals(bodies.map(({ sluice_cost }) => sluice_cost !== undefined), tells, text);
      const plain = bodies.map((body) => `data: ${JSON.stringify(body)}\n\n`).join("");
      assertSameBill(streamedBill("chat", plain), await world.entry(), text);
    }
  }
});

Deno.test("correcting the usage of a whole answer leaves the rest as written", async () => {
  for (const protocol of PROTOCOLS) {
    for (const reportedUsage of ["missing", "absurd"] as const) {
      const text = whole(protocol, "Hello there", reportedUsage);
      await using world = startWorld({ protocol, way: "relayed", says: () => ({ steps: [text] }) });
      const answer = await (await world.gateway.ask(protocol, prompt(protocol))).json();
      const { usage: _, usageMetadata: _usage, ...rest } = answer;
      const { usage: __, usageMetadata: __usage, ...expected } = JSON.parse(text);
      assertEquals(rest, { ...expected, [protocol === "gemini" ? "modelVersion" : "model"]: "acme/one" });
    }
  }
});
