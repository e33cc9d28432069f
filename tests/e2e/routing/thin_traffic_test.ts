/** Failover with rare requests: one every five seconds, so that no window ever has ten of them. */
import { assert, assertEquals } from "@std/assert";
import type { Protocol } from "../../../lib/protocols/canonical/types.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { type SimulatedTime, simulateTime } from "../../support/simulated_time.ts";
import { skipInQuick } from "../../support/skip.ts";
import { base64Of, png } from "../../images/image_files.ts";
import { model, startGateway, type TestGateway, upstream } from "../../support/gateway.ts";
import { errorBody, prompt, STREAMED, WHOLE } from "../../upstream/replies.ts";
import {
  events,
  type FakeUpstream,
  json,
  type ScriptedAnswer,
  startUpstream,
  type UpstreamRequest,
} from "../../upstream/mod.ts";

const BROKEN = json(errorBody("chat", "broken"), { status: 500 });
const EVERY_MS = 5_000;

const IMAGE = json({ created: 1, data: [{ b64_json: base64Of(png(1024, 1024)) }] });

/** Failures of a host: it answers only generations with an error, or everything. */
type Broken = "no" | "generations" | "everything";

/** A host that can be broken and mended. */
interface FakeHost extends FakeUpstream {
  broken: Broken;
  /** Requests of clients: all but the gateway's own probes. */
  requestCount(): number;
}

function fakeHost(broken: Broken = "no", error: ScriptedAnswer = BROKEN): FakeHost {
  const script = ({ method, path, body }: UpstreamRequest): ScriptedAnswer => {
    if (method === "GET") return host.broken === "everything" ? error : json({ object: "list", data: [{ id: "one" }] });
    if (host.broken !== "no") return error;
    if (path.includes("/images/")) return IMAGE;
    return body.includes('"stream":true') ? events(STREAMED.chat.join("")) : json(WHOLE.chat);
  };
  const host: FakeHost = Object.assign(startUpstream(script), {
    broken,
    requestCount: () => host.requests.filter(({ method, body }) => method === "POST" && body !== "{}").length,
  });
  return host;
}

/** A gateway whose models have these targets in order; absent: `acme/one` has all. */
function start(
  hosts: Record<string, FakeUpstream>,
  models: Record<string, string[]> = { "acme/one": Object.keys(hosts) },
  more: JsonObject = {},
): TestGateway {
  return startGateway({
    upstreams: Object.fromEntries(
      Object.entries(hosts).map(([name, { url }]) => [name, upstream("openai-compatible", url)]),
    ),
    models: Object.entries(models).map(([id, names]) =>
      model(id, names.map((name, priority) => ({ upstream: name, model: id.slice(5), priority })), more)
    ),
  }, { breakers: true });
}

/** Sends one request every five seconds; their statuses. */
async function send(
  gateway: TestGateway,
  { time, count, more = {}, protocol = "chat" }: {
    time: SimulatedTime;
    count: number;
    more?: JsonObject;
    protocol?: Protocol;
  },
): Promise<number[]> {
  const statuses: number[] = [];
  for (let request = 0; request < count; request++) {
    const response = await gateway.ask(protocol, prompt(protocol, more));
    await response.text();
    statuses.push(response.status);
    await time.pass(EVERY_MS);
  }
  return statuses;
}

async function readyStatus({ url }: TestGateway): Promise<string> {
  return (await (await fetch(`${url}/readyz`)).json()).status;
}

function all(status: number, count: number): number[] {
  return Array(count).fill(status);
}

const IS_SAMPLE = skipInQuick("Thin traffic in each protocol, and with 2 to 5 targets");

Deno.test("a recovered target answers rare requests at once, while another stays down", async () => {
  const requests = [["responses", true], ["chat", false], ["messages", false]] as const;
  for (const [protocol, stream] of IS_SAMPLE ? requests.slice(0, 1) : requests) {
    using time = simulateTime(1_800_000_000_000);
    await using first = fakeHost("generations");
    await using second = fakeHost("generations");
    await using gateway = start({ first, second });
    const traffic = { time, more: { stream }, protocol };
    await send(gateway, { ...traffic, count: 6 });
    second.broken = "no";
    assertEquals(await send(gateway, { ...traffic, count: 24 }), all(200, 24), protocol);
    assertEquals(await readyStatus(gateway), "degraded");
    first.broken = "no";
    assertEquals(await send(gateway, { ...traffic, count: 8 }), all(200, 8));
    assertEquals(await readyStatus(gateway), "ok");
    // The first one leads again.
    const before = first.requestCount();
    await send(gateway, { ...traffic, count: 1 });
    assertEquals(first.requestCount(), before + 1);
    const changes = gateway.logs.filter(({ event, upstream }) => event.startsWith("breaker") && upstream === "first");
    assertEquals(changes[0]?.event, "breaker_opened");
    assertEquals(changes.slice(-2).map(({ event }) => event), ["breaker_half_open", "breaker_closed"]);
  }
});

Deno.test("a target that recovers while its breaker is open answers if no other target does", async () => {
  using time = simulateTime(1_800_000_000_000);
  await using first = fakeHost("everything");
  await using second = fakeHost("everything");
  await using gateway = start({ first, second });
  await send(gateway, { time, count: 6 });
  // Its breaker has just opened again.
  assert(gateway.gateway.health.snapshot().some(({ state, upstream }) => state !== "closed" && upstream === "first"));
  first.broken = "no";
  assertEquals(await send(gateway, { time, count: 24 }), all(200, 24));
});

Deno.test("no client request goes to a silent host while another target is up", async () => {
  using time = simulateTime(1_800_000_000_000);
  await using first = fakeHost("everything");
  await using second = fakeHost();
  await using gateway = start({ first, second });
  assertEquals(await send(gateway, { time, count: 6 }), all(200, 6));
  const before = first.requestCount();
  assertEquals(await send(gateway, { time, count: 30 }), all(200, 30));
  assertEquals(first.requestCount(), before);
  first.broken = "no";
  await send(gateway, { time, count: 6 });
  assert(first.requestCount() > before);
});

Deno.test("of three targets and of several models, the healthy one answers", async () => {
  using time = simulateTime(1_800_000_000_000);
  await using first = fakeHost("generations");
  await using second = fakeHost("generations");
  await using third = fakeHost("generations");
  const hosts = { first, second, third };
  await using gateway = start(hosts, {
    "acme/one": ["first", "second", "third"],
    "acme/two": ["first"],
    "acme/three": ["second", "third"],
  });
  const list = { model: "acme/two", models: ["acme/three"] };
  for (const well of IS_SAMPLE ? [third, first] : [second, third, first, second]) {
    for (const host of Object.values(hosts)) host.broken = "generations";
    for (const more of [{}, list]) await send(gateway, { time, count: 4, more });
    well.broken = "no";
    for (const more of [{}, list]) assertEquals(await send(gateway, { time, count: 6, more }), all(200, 6));
  }
});

Deno.test("a half-open target costs no client its image", async () => {
  const requestCount = JSON.stringify({ model: "acme/one", prompt: "A cat", quality: "low", size: "1024x1024" });
  for (const status of [500, 503]) {
    using time = simulateTime(1_800_000_000_000);
    await using first = fakeHost("generations", json(errorBody("chat", "broken"), { status }));
    await using second = fakeHost();
    await using gateway = start({ first, second }, undefined, {
      architecture: { input_modalities: ["text"], output_modalities: ["image"] },
      supported_parameters: undefined,
      reasoning: undefined,
    });
    const paint = async (count: number): Promise<number[]> => {
      const statuses: number[] = [];
      for (let request = 0; request < count; request++) {
        const response = await fetch(`${gateway.url}/v1/images/generations`, {
          method: "POST",
          headers: { authorization: `Bearer ${gateway.key.key}`, "content-type": "application/json" },
          body: requestCount,
        });
        await response.text();
        statuses.push(response.status);
        await time.pass(EVERY_MS);
      }
      return statuses;
    };
    // After a 500 the upstream may still make the image, so the request is not repeated until the breaker is open.
    assertEquals(await paint(5), all(status === 500 ? 502 : 200, 5));
    const before = first.requestCount();
    assertEquals(await paint(12), all(200, 12), String(status));
    assert(first.requestCount() > before && first.requestCount() <= before + 5, String(first.requestCount() - before));
    first.broken = "no";
    assertEquals(await paint(6), all(200, 6));
    assertEquals(await readyStatus(gateway), "ok");
  }
});
