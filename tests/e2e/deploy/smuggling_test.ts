import { assert, assertEquals } from "@std/assert";
import { json, startUpstream } from "../../upstream/mod.ts";
import { type Probe, probes, readAnswers } from "./probes.ts";
import { isInstalled, PROXIES, startProxy } from "./programs.ts";
import { close, connect, hear, send, startWatched, type Watched } from "./stack.ts";

/** Silence after which nothing more is expected, in milliseconds. */
const SILENCE_MS = 600;

/** Sends a probe and then a plain request over one connection; no client may get another's answer. */
async function check(
  { id, name, text, pipelined }: Probe & { id: string },
  { gateway, port, tls }: { gateway: Watched; port: number; tls: boolean },
): Promise<void> {
  const connection = await connect(port, { tls });
  try {
    await send(connection, text);
    const received = await hear(connection, { silenceMs: SILENCE_MS });
    const { answers, rest } = readAnswers(received.text);
    const what = `${name}: ${JSON.stringify(received)}`;
    assertEquals(rest, "", what);
    // A proxy whose client breaks off a body answers 502 or 501 itself.
    for (const { status, head } of answers) assert(status < 500 || !/^x-request-id:/im.test(head), what);
    const arrived = gateway.seen.filter((line) => line.endsWith(`/outer-${id}`) || line.endsWith(`/inner-${id}`));
    const outer = arrived.filter((line) => line.includes("/outer-")).length;
    const ours = answers.filter(({ head }) => /^x-request-id:/im.test(head)).length;
    // One answer of the gateway per request that reached it, and none for the hidden one. A proxy may read an ambiguous
    // request as two, as the rules allow: it has rewritten both, and the client gets both answers.
    const most = pipelined || tls ? 1 : 0;
    assert(outer <= 1 && arrived.length - outer <= most, `${arrived}, ${what}`);
    if (pipelined) assertEquals(arrived.length, 2, `${arrived}, ${what}`);
    assert(ours === arrived.length || received.closed && ours < arrived.length, `${arrived}, ${what}`);
    assert(answers.length <= 1 + most || received.closed, what);
    if (received.closed) return;
    // A server that still waits for the body reads the next request as the rest of it: there is no answer, so no other
    // client is affected.
    await send(connection, `GET /after-${id} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
    const next = readAnswers((await hear(connection, { silenceMs: SILENCE_MS })).text).answers;
    const taken = gateway.seen.filter((line) => line.endsWith(`/after-${id}`)).length;
    assert(taken <= 1 && next.length <= 1, `after ${what}: ${JSON.stringify(next)}`);
  } finally {
    close(connection);
  }
}

/** An innocent client: its request arrives unchanged, and it gets its own answer. */
async function askAsVictim(id: string, { gateway, port, tls }: { gateway: Watched; port: number; tls: boolean }) {
  const connection = await connect(port, { tls });
  try {
    await send(connection, `GET /victim-${id} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    const received = await hear(connection, { silenceMs: 2000, until: (text) => readAnswers(text).answers.length > 0 });
    const { answers, rest } = readAnswers(received.text);
    assertEquals([answers.map(({ status }) => status), rest], [[404], ""], `victim ${id}: ${received.text}`);
    assertEquals(gateway.seen.filter((line) => line.endsWith(`/victim-${id}`)).map((line) => line.split(" ")[0]), [
      "GET",
    ]);
  } finally {
    close(connection);
  }
}

async function checkAll(target: { gateway: Watched; port: number; tls: boolean }, prefix: string): Promise<void> {
  const all = probes(prefix);
  assertEquals(all.length, 45);
  for (let at = 0; at < all.length; at += 9) {
    await Promise.all(all.slice(at, at + 9).map((probe) => check(probe, target)));
    for (let victim = 0; victim < 5; victim++) await askAsVictim(`${prefix}${at}-${victim}`, target);
  }
}

Deno.test("smuggling: 45 probes sent to the gateway get one answer per request, or a closed connection", async () => {
  await using upstream = startUpstream(() => json({}));
  await using gateway = await startWatched(upstream.url);
  await checkAll({ gateway, port: gateway.port, tls: false }, "direct");
  assertEquals(upstream.requests.length, 0);
});

for (const kind of PROXIES) {
  Deno.test({
    name: `smuggling: 45 probes through ${kind.name} get one answer per request, and none of another client`,
    ignore: !isInstalled(kind.name),
    async fn() {
      await using upstream = startUpstream(() => json({}));
      await using gateway = await startWatched(upstream.url);
      await using proxy = await startProxy(kind, gateway.port);
      await checkAll({ gateway, port: proxy.port, tls: true }, kind.name);
    },
  });
}
