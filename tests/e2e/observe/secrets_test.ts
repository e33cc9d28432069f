import { assert, assertEquals } from "@std/assert";
import type { JsonObject } from "../../../lib/json/mod.ts";
import type { Protocol } from "../../../lib/protocols/canonical/types.ts";
import { mintKey } from "../../../lib/access/keys.ts";
import { addressed, oneModel, startGateway, UPSTREAM_KEY } from "../../support/gateway.ts";
import { limitedTo, prompt, PROTOCOLS } from "../../upstream/replies.ts";
import { events, json, type ScriptedAnswer, startUpstream } from "../../upstream/mod.ts";
import { until } from "../../support/soon.ts";

/** Words that no line, metric or header may hold eight characters in a row of. */
const PROMPT = "quokkaPrompt7719zebra";
const ANSWER = "walrusAnswer3382tiger";
const WORDS = [PROMPT, ANSWER, UPSTREAM_KEY.slice(13)];

function leaksOf(text: string, words: readonly string[]): string[] {
  return words.flatMap((word) =>
    Array.from({ length: word.length - 7 }, (_, at) => word.slice(at, at + 8)).filter((part) => text.includes(part))
  );
}

function body(protocol: Protocol, stream: boolean): JsonObject {
  const members = { stream, [PROMPT]: PROMPT, user: PROMPT, metadata: { [PROMPT]: PROMPT } };
  return prompt(protocol, { ...members, ...limitedTo(protocol, 50) }, PROMPT);
}

const ERROR = { error: { message: `${ANSWER} ${PROMPT} ${UPSTREAM_KEY}`, type: ANSWER, code: ANSWER, param: PROMPT } };
const CHUNK = { id: ANSWER, object: "chat.completion.chunk", created: 1, model: ANSWER };
const SAID = `data: ${JSON.stringify({ ...CHUNK, choices: [{ index: 0, delta: { content: ANSWER } }] })}\n\n`;
const ENDED = `data: ${JSON.stringify({ ...CHUNK, choices: [{ index: 0, delta: {}, finish_reason: "stop" }] })}\n\n`;

/** Answers of an upstream, good and bad. */
const PLAYS: readonly ((stream: boolean) => ScriptedAnswer)[] = [
  (stream) =>
    stream ? events(`${SAID}${ENDED}data: [DONE]\n\n`) : json({
      ...CHUNK,
      object: "chat.completion",
      choices: [{ index: 0, message: { role: "assistant", content: ANSWER }, finish_reason: "stop" }],
      usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
    }),
  ...[400, 401, 403, 404, 413, 422, 429, 500, 503, 529].map((status) => () => json(ERROR, { status })),
  () => ({ body: `<html>${ANSWER}${PROMPT}`, status: 502, headers: { "content-type": "text/html" } }),
  (stream) => stream ? events(SAID) : { body: `{"${ANSWER}":"${PROMPT}` },
  (stream) => stream ? events(`${SAID}data: ${JSON.stringify(ERROR)}\n\n`) : json([ANSWER]),
  (stream) => stream ? events(`${SAID}data: {"${ANSWER}\n\n`) : json({ choices: ANSWER }),
  () => events(SAID, { cutAfterBytes: SAID.length - 3 }),
  () => ({ status: 302, headers: { location: `http://127.0.0.1:1/${ANSWER}` }, body: ANSWER }),
];

Deno.test("no secret and no text of a prompt or answer is in a log line, metric or header", async () => {
  let play: ScriptedAnswer = { body: "" };
  await using server = startUpstream(() => play);
  await using gateway = startGateway({
    ...oneModel("chat", server.url),
    log: { level: "info", requests: "all", probes: true, client_address: true },
  });
  const stranger = mintKey();
  const words = [...WORDS, gateway.key.key.replace("sk-sluice-", ""), stranger.replace("sk-sluice-", "")];
  let heads = "";
  let sent = 0;
  async function ask(path: string, init: RequestInit): Promise<void> {
    const response = await fetch(gateway.url + path, init);
    heads += JSON.stringify([...response.headers]);
    await response.body?.cancel();
    sent++;
  }
  for (const protocol of PROTOCOLS) {
    for (const stream of [false, true]) {
      for (const each of PLAYS) {
        play = each(stream);
        const response = await gateway.ask(protocol, body(protocol, stream));
        heads += JSON.stringify([...response.headers].filter(([name]) => name !== "x-sluice-dropped"));
        await response.text();
        sent++;
      }
    }
    for (const key of [stranger, `${gateway.key.key}x`]) {
      const headers = { authorization: `Bearer ${key}`, "x-api-key": key, "anthropic-version": PROMPT };
      await ask(addressed(protocol, { model: "acme/one" }).path, { method: "POST", headers, body: PROMPT });
    }
    const headers = { authorization: `Bearer ${gateway.key.key}`, "idempotency-key": PROMPT, "user-agent": PROMPT };
    for (const text of [PROMPT, `{"model":"${PROMPT}"}`, `{"model":"${PROMPT}","messages":[]}`, "[", ""]) {
      await ask(addressed(protocol, { model: "acme/one" }).path, { method: "POST", headers, body: text });
    }
  }
  const headers = { authorization: `Bearer ${gateway.key.key}` };
  await ask(`/${PROMPT}?key=${gateway.key.key}`, { headers });
  await ask(`/v1/models/${PROMPT}`, { headers });
  await ask(`/v1/models/sluice/${PROMPT}`, { headers });
  await until("the lines", () => gateway.requestLines.length >= sent);
  assertEquals(gateway.requestLines.length, sent);
  // A vendor's message is logged without keys; here it holds words of a prompt, which no real one is meant to do.
  const messages = gateway.logs.flatMap(({ vendor_message }) => vendor_message === undefined ? [] : [vendor_message]);
  assert(messages.length > 0);
  assertEquals(leaksOf(JSON.stringify(messages), words.filter((word) => word !== PROMPT && word !== ANSWER)), []);
  const logs = JSON.stringify([gateway.logs.map((line) => ({ ...line, vendor_message: 0 })), gateway.requestLines]);
  const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
  assert(gateway.logs.length > 20 && metrics.length > 3_000);
  assertEquals({ logs: leaksOf(logs, words), metrics: leaksOf(metrics, words), heads: leaksOf(heads, words) }, {
    logs: [],
    metrics: [],
    heads: [],
  });
});
