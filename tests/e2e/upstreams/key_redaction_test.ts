import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import type { Protocol } from "../../../lib/protocols/canonical/types.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { oneModel, startGateway } from "../../support/gateway.ts";
import { prompt, PROTOCOLS, STREAMED, WHOLE } from "../../upstream/replies.ts";
import { events, type FakeUpstream, json, startUpstream } from "../../upstream/mod.ts";
import { skipInQuick } from "../../support/skip.ts";

/** Keys without a known format. */
const KEYS = ["token-abc123-zeta-4711", "0f1e2d3c4b5a69788796a5b4c3d2e1f0", "gsk_Zy9Xw8Vu7Ts6Rq5Po4Nm3Lk2"]
  .slice(0, skipInQuick("Two of three keys that upstreams repeat") ? 1 : 3);

const UPSTREAMS = ["chat", "responses", "messages", "gemini"] as const;
type Upstream = typeof UPSTREAMS[number];

const GEMINI_WHOLE: JsonObject = {
  candidates: [{ content: { role: "model", parts: [{ text: "Hello there" }] }, finishReason: "STOP" }],
  usageMetadata: { promptTokenCount: 7, candidatesTokenCount: 2, totalTokenCount: 9 },
};

/** Everything in an error that an upstream may write into. */
function errorBody(protocol: Upstream, words: string): JsonObject {
  if (protocol === "gemini") {
    return { error: { code: 400, status: "INVALID_ARGUMENT", message: words, details: [{ reason: words }] } };
  }
  const error = { type: "invalid_request_error", message: words, param: words, code: words };
  return protocol === "messages" ? { type: "error", error } : { error };
}

/** The same as an event within a stream, after the first words. */
function errorStream(protocol: Upstream, words: string): string {
  const error = { type: "invalid_request_error", message: words, param: words, code: words };
  const line = (event: string, data: JsonObject) => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
  switch (protocol) {
    case "chat":
      return `${STREAMED.chat.slice(0, 2).join("")}data: ${JSON.stringify({ error })}\n\n`;
    case "responses":
      return STREAMED.responses.slice(0, 5).join("") + line("error", { ...error, type: "error", sequence_number: 5 });
    case "messages":
      return STREAMED.messages.slice(0, 4).join("") + line("error", { type: "error", error });
    case "gemini":
      return `data: ${JSON.stringify({ candidates: [{ content: { parts: [{ text: "Hello" }] } }] })}\n\n` +
        `data: ${JSON.stringify(errorBody("gemini", words))}\n\n`;
  }
}

/** A good answer with these words in place of "Hello". */
function saying(protocol: Upstream, { words, stream }: { words: string; stream: boolean }): string {
  const whole = protocol === "gemini" ? GEMINI_WHOLE : WHOLE[protocol];
  const text = !stream
    ? JSON.stringify(whole)
    : protocol === "gemini"
    ? `data: ${JSON.stringify(whole)}\n\n`
    : STREAMED[protocol].join("");
  return text.replaceAll("Hello", words);
}

function clientsOf(upstream: Upstream): readonly Protocol[] {
  return upstream === "gemini" ? ["chat", "messages"] : PROTOCOLS;
}

/** Fails if a text has more than eight characters of a key, or its base64. */
function assertWithout(text: string, { key, about }: { key: string; about: string }): void {
  for (let at = 0; at + 9 <= key.length; at++) {
    assert(!text.includes(key.slice(at, at + 9)), `${about}: ${text}`);
  }
  for (const spelled of [key, `:${key}`, `u:${key}`]) {
    assert(!text.includes(btoa(spelled).slice(4, 20)), `${about}, base64: ${text}`);
  }
}

function spellingsOf(key: string): Record<string, string> {
  return {
    plain: `Wrong key ${key}, sorry`,
    header: `Header "Authorization: Bearer ${key}"`,
    prefix: `Incorrect key provided: ${key.slice(0, 12)}****`,
    base64: `Header "Basic ${btoa(`u:${key}`)}"`,
    escaped: `Body {"key":"${[...key].map((letter) => `\\u00${letter.charCodeAt(0).toString(16)}`).join("")}"}`,
    percent: `Query ?key=${[...key].map((letter) => `%${letter.charCodeAt(0).toString(16)}`).join("")}`,
  };
}

interface Heard {
  text: string;
  status: number;
}

/** Sends requests in every client protocol through a gateway with a scripted upstream. */
async function hear(
  upstream: Upstream,
  { key, stream, play, check }: {
    key: string;
    stream: boolean;
    play: Parameters<typeof startUpstream>[0];
    check: (received: Heard, about: string, server: FakeUpstream) => void;
  },
): Promise<void> {
  await using server = startUpstream(play);
  await using gateway = startGateway(oneModel(upstream, server.url), { upstreamKey: key });
  for (const client of clientsOf(upstream)) {
    const response = await gateway.ask(client, prompt(client, { stream }));
    const text = JSON.stringify([...response.headers]) + await response.text();
    check({ text, status: response.status }, `${upstream} for ${client}, stream ${stream}`, server);
  }
  assertWithout(JSON.stringify([gateway.logs, gateway.requestLines]), { key, about: `the log, ${upstream}` });
}

for (const upstream of UPSTREAMS) {
  Deno.test(`${upstream}: no error of an upstream carries the gateway's key to a client`, async () => {
    for (const key of KEYS) {
      for (const [spelling, words] of Object.entries(spellingsOf(key))) {
        await hear(upstream, {
          key,
          stream: false,
          play: () => json(errorBody(upstream, words), { status: 400, headers: { "x-echo": words } }),
          check({ text, status }, about) {
            assertEquals(status, 400, text);
            assertWithout(text, { key, about: `${about}, ${spelling}` });
          },
        });
      }
    }
  });

  Deno.test(`${upstream}: no error within a stream carries the gateway's key to a client`, async () => {
    for (const key of KEYS) {
      const words = Object.values(spellingsOf(key)).join("; ");
      await hear(upstream, {
        key,
        stream: true,
        play: () => events(errorStream(upstream, words), { chunkBytes: 7 }),
        check({ text, status }, about) {
          assertEquals(status, 200);
          assertStringIncludes(text, "error", about);
          assertWithout(text, { key, about });
        },
      });
    }
  });

  Deno.test(`${upstream}: no answer carries the gateway's key to a client, split anywhere`, async () => {
    for (const key of KEYS) {
      for (const stream of [false, true]) {
        const body = saying(upstream, { words: `My key is ${key}!`, stream });
        await hear(upstream, {
          key,
          stream,
          // The upstream repeats the key in its headers, too.
          play: ({ headers }) => {
            assertStringIncludes(JSON.stringify([...headers]), key);
            const answerHeaders = { "content-type": stream ? "text/event-stream" : "application/json", "x-echo": key };
            return { body, headers: answerHeaders, chunkBytes: 11 };
          },
          check({ text, status }, about) {
            assertEquals(status, 200, text);
            assertStringIncludes(text, "My key is [key]!", about);
            assertWithout(text, { key, about });
          },
        });
      }
    }
  });
}
