/** Demo clients that keep sending requests while the demo is watched. */
import { delay } from "../../lib/abort.ts";
import type { JsonObject } from "../../lib/json/mod.ts";
import type { MeteredEndpoint } from "../../lib/store/ledger.ts";
import type { Random } from "../support/random.ts";
import { attributionOf, CLIENTS, type DemoClient } from "./clients.ts";

/** Addresses and keys of live requests. */
export interface LiveTraffic {
  /** Such as `http://127.0.0.1:40123`. */
  origin: string;
  /** Secrets of the keys by name. */
  secrets: ReadonlyMap<string, string>;
  random: Random;
}

const PATHS: Readonly<Partial<Record<MeteredEndpoint, string>>> = {
  chat: "/v1/chat/completions",
  responses: "/v1/responses",
  messages: "/anthropic/v1/messages",
  embeddings: "/v1/embeddings",
};

/** Keys that send requests. */
const LIVE = CLIENTS.filter(({ state, endpoint }) => state === undefined && PATHS[endpoint] !== undefined);

/** Sends this many requests at once, cycling through keys and models. Returns the statuses. */
export async function sendBurst(count: number, traffic: LiveTraffic): Promise<number[]> {
  const requests = Array.from({ length: count }, (_, index) => {
    const client = LIVE[index % LIVE.length];
    if (client === undefined) throw new RangeError("Cannot send requests: no key does");
    return sendOne(client, { ...traffic, turn: Math.floor(index / LIVE.length) });
  });
  return await Promise.all(requests);
}

/** Sends requests, one every second or two, until the signal is aborted. */
export async function sendOnAndOn(traffic: LiveTraffic, signal: AbortSignal): Promise<void> {
  const { random } = traffic;
  const all = LIVE.flatMap((client) => Array<DemoClient>(Math.ceil(client.perDay / 10)).fill(client));
  while (!signal.aborted) {
    // Requests overlap, as those of real clients do.
    void sendOne(random.pick(all), { ...traffic, turn: random.below(10) }).catch(() => {});
    await delay(400 + random.below(1600), signal).catch(() => {});
  }
}

async function sendOne(
  client: DemoClient,
  { origin, secrets, random, turn }: LiveTraffic & { turn: number },
): Promise<number> {
  const { name, endpoint, models } = client;
  const [model = ""] = models[turn % models.length] ?? [];
  const { user, tags = [] } = attributionOf(client, random.below);
  const response = await fetch(origin + PATHS[endpoint], {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "anthropic-version": "2023-06-01",
      authorization: `Bearer ${secrets.get(name)}`,
      ...(user !== undefined && { "x-sluice-user": user }),
      ...(tags.length > 0 && { "x-sluice-tags": tags.join(",") }),
    },
    body: JSON.stringify({ model, ...bodyOf(endpoint, random) }),
  });
  await response.body?.pipeTo(new WritableStream());
  return response.status;
}

function bodyOf(endpoint: MeteredEndpoint, { below, chance }: Random): JsonObject {
  const text = "A line of a long conversation. ".repeat(1 + below(200));
  if (endpoint === "embeddings") return { input: [text, text] };
  const stream = chance(0.7);
  if (endpoint === "responses") return { input: text, max_output_tokens: 1000, stream };
  return { messages: [{ role: "user", content: text }], max_tokens: 1000, stream };
}
