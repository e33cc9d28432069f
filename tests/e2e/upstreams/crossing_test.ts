import { assert, assertEquals } from "@std/assert";
import type { Protocol } from "../../../lib/protocols/canonical/types.ts";
import { seeded } from "../../support/random.ts";
import { oneModel, startGateway, UPSTREAM_KEY } from "../../support/gateway.ts";
import { prompt, PROTOCOLS, STREAMED, WHOLE } from "../../upstream/replies.ts";
import { events, json, startUpstream } from "../../upstream/mod.ts";

/** Headers of one request or answer: less than a head may have, with what else is in it. */
const PER_HEAD = 50;

/** 200 unknown headers with unique names and values, in a head for each protocol of clients. */
function strangers(seed: number, prefix: string): Record<string, string>[] {
  const { below } = seeded(seed);
  const word = () => below(2 ** 32).toString(36).padStart(7, "0");
  return Array.from(
    { length: PROTOCOLS.length },
    () => Object.fromEntries(Array.from({ length: PER_HEAD }, () => [`${prefix}-${word()}`, `crosses-${word()}`])),
  );
}

/** Known ones that are a client's or a hop's own. */
const OF_CLIENTS: Readonly<Record<string, string>> = {
  cookie: "crosses=1",
  origin: "https://crosses.example",
  referer: "https://crosses.example/",
  "user-agent": "crosses",
  "accept-language": "crosses",
  "openai-organization": "crosses",
  "openai-project": "crosses",
  "http-referer": "crosses",
  "x-title": "crosses",
  "x-forwarded-for": "192.0.2.77",
  "x-request-id": "crosses",
  "x-stainless-lang": "crosses",
  traceparent: "00-11111111111111111111111111111111-2222222222222222-01",
  "proxy-authorization": "crosses",
  "x-goog-api-key": "crosses",
  "api-key": "crosses",
};
const OF_UPSTREAMS: Readonly<Record<string, string>> = {
  "set-cookie": "crosses=1",
  server: "crosses",
  location: "https://crosses.example",
  "openai-organization": "crosses",
  "openai-version": "crosses",
  "x-request-id": "crosses",
  "request-id": "crosses",
  "cf-ray": "crosses",
  "strict-transport-security": "crosses",
  "access-control-allow-origin": "https://crosses.example",
  "x-sluice-cost": "crosses",
  "www-authenticate": "crosses",
  via: "crosses",
  link: "<https://crosses.example>",
  refresh: "0; url=https://crosses.example",
};

/** Headers that an upstream always gets. */
const SENT = [
  "accept",
  "accept-encoding",
  // Deno's own, always "*".
  "accept-language",
  "anthropic-version",
  "authorization",
  "content-length",
  "content-type",
  "host",
  "user-agent",
  "x-api-key",
  "x-goog-api-key",
];

Deno.test("of 200 random and common client headers none reaches an upstream", async () => {
  for (const to of PROTOCOLS) {
    await using server = startUpstream(() => json(WHOLE[to]));
    await using gateway = startGateway(oneModel(to, server.url));
    const heads = strangers(7, "x");
    for (const [at, client] of PROTOCOLS.entries()) {
      const headers: Record<string, string> = { ...heads[at], ...OF_CLIENTS };
      // Gemini's protocol reads the key there.
      if (client === "gemini") delete headers["x-goog-api-key"];
      const response = await gateway.ask(client, prompt(client), { headers });
      assertEquals(response.status, 200, await response.text());
    }
    assertEquals(server.requests.length, PROTOCOLS.length);
    for (const { headers } of server.requests) {
      for (const [name, value] of headers) {
        assert(SENT.includes(name), name);
        assert(!/crosses|192\.0\.2\.77|2222222222222222/.test(value), `${name}: ${value}`);
      }
    }
  }
});

Deno.test("of 200 random and common upstream headers none reaches a client, whole, streamed or failed", async () => {
  const cases: [name: string, from: Protocol, body: { stream?: true }, status: number][] = PROTOCOLS.flatMap((from) => [
    ["whole", from, {}, 200],
    ["streamed", from, { stream: true }, 200],
    ["failed", from, {}, 400],
  ]);
  for (const [name, from, more, status] of cases) {
    const heads = strangers(11, "y");
    await using server = startUpstream((_request, at) => {
      const headers = { ...heads[at % heads.length], ...OF_UPSTREAMS };
      if (status === 400) {
        const failure = { error: { type: "invalid_request_error", message: "No" } };
        return json(failure, { status, headers: { "content-type": "application/json", ...headers } });
      }
      if (name === "whole") return json(WHOLE[from], { headers: { "content-type": "application/json", ...headers } });
      const text = STREAMED[from].join("");
      return events(text, { headers: { "content-type": "text/event-stream", ...headers } });
    });
    await using gateway = startGateway(oneModel(from, server.url));
    for (const client of PROTOCOLS) {
      const response = await gateway.ask(client, prompt(client, more));
      const text = await response.text();
      assertEquals(response.status, status, `${name}, ${from} to ${client}: ${text}`);
      for (const [header, value] of response.headers) {
        const what = `${name}, ${from} to ${client}: ${header}: ${value}`;
        assert(!header.startsWith("y-") && !value.includes("crosses"), what);
        assert(/^[\x20-\x7e]*$/.test(value) && !value.includes(UPSTREAM_KEY), what);
      }
    }
    assert(server.requests.length >= PROTOCOLS.length);
  }
});
