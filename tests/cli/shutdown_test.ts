import { assertEquals, assertGreaterOrEqual, assertRejects } from "@std/assert";
import type { LogEntry } from "../../lib/gateway.ts";
import { shutDown, stopSignals } from "../../lib/cli/shutdown.ts";

/** A real server with one request that stays open until `finish`. */
async function world() {
  const arrived = Promise.withResolvers<void>();
  const finish = Promise.withResolvers<void>();
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, async () => {
    arrived.resolve();
    await finish.promise;
    return new Response("whole");
  });
  const answer = fetch(`http://127.0.0.1:${server.addr.port}`).then((response) => response.text());
  await arrived.promise;
  const outcomes: unknown[] = [];
  return { finish, server, answer, outcomes, log: (entry: LogEntry) => void outcomes.push(entry.outcome) };
}

const NEVER = new Promise<void>(() => {});

Deno.test("shutDown() lets open requests finish and takes no new ones", async () => {
  const { finish, server, answer, outcomes, log } = await world();
  const ended = shutDown({ server, second: NEVER, log });
  await assertRejects(() => Deno.connect({ hostname: "127.0.0.1", port: server.addr.port }), Error);
  assertEquals(outcomes, []);
  finish.resolve();
  assertEquals([await ended, await answer, outcomes], [0, "whole", ["drained"]]);
});

Deno.test("shutDown() waits no longer than its time", async () => {
  const { finish, server, answer, outcomes, log } = await world();
  assertEquals([await shutDown({ server, second: NEVER, log, drainMs: 20 }), outcomes], [0, ["late"]]);
  finish.resolve();
  await answer;
  await server.finished;
});

Deno.test("shutDown() waits no longer than the second signal", async () => {
  const { finish, server, answer, outcomes, log } = await world();
  assertEquals([await shutDown({ server, second: Promise.resolve(), log }), outcomes], [1, ["cut"]]);
  finish.resolve();
  await answer;
  await server.finished;
});

Deno.test("stopSignals() takes signals that follow at once for one", async () => {
  const { first, second, forget } = stopSignals();
  const timer = setInterval(() => Deno.kill(Deno.pid, "SIGTERM"), 10);
  await first;
  const begin = performance.now();
  await second;
  // Counted from here, which is a little after the first.
  assertGreaterOrEqual(performance.now() - begin, 250);
  clearInterval(timer);
  forget();
});
