import { assertEquals, assertRejects } from "@std/assert";
import { listenForStopSignals, shutDownServer, type ShutdownTimes } from "../../lib/cli/shutdown.ts";
import type { LogEntry } from "../../lib/log_events.ts";
import { createDrain } from "../../lib/server/drain.ts";
import { type InFlightKind, InFlightRequests } from "../../lib/billing/in_flight_requests.ts";
import { GatewayError } from "../../lib/errors.ts";
import { soon, until } from "../support/soon.ts";

/** Time limits that do not expire during the test. */
const PATIENT: ShutdownTimes = { readyDelayMs: 0, drainMs: 60_000, imagesDrainMs: 60_000 };

const NEVER = new Promise<void>(() => {});

/** A real server with one request that stays open until `finish`, or until it is stopped. */
async function world(kind: InFlightKind = "text") {
  const arrived = Promise.withResolvers<void>();
  const finish = Promise.withResolvers<string>();
  const done = Promise.withResolvers<void>();
  const inFlight = new InFlightRequests();
  const drain = createDrain();
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, async () => {
    inFlight.add({ done: done.promise, fail: () => Promise.resolve() }, {
      kind,
      stop: (why) => finish.resolve(why.kind),
    });
    arrived.resolve();
    const text = await finish.promise;
    done.resolve();
    return new Response(text);
  });
  const answer = fetch(`http://127.0.0.1:${server.addr.port}`).then((response) => response.text());
  await arrived.promise;
  const logs: LogEntry[] = [];
  const stopped: string[] = [];
  const why = new GatewayError("overloaded", "The end");
  const end = (times: Partial<ShutdownTimes> = {}, second = NEVER) =>
    shutDownServer({
      server,
      drain,
      inFlight,
      stopTexts: () => (stopped.push("texts"), inFlight.stop(why, "text")),
      stopAll: () => (stopped.push("all"), inFlight.stop(why)),
      second,
      times: { ...PATIENT, ...times },
      log: (entry) => logs.push(entry),
    });
  return { finish, server, answer, logs, drain, stopped, end };
}

Deno.test("shutDownServer() lets open requests finish and accepts no new ones", async () => {
  const { finish, server, answer, logs, stopped, end } = await world();
  const ended = end();
  await assertRejects(() => Deno.connect({ hostname: "127.0.0.1", port: server.addr.port }), Error);
  assertEquals(logs, [{ level: "info", event: "stopping", texts: 1, images: 0 }]);
  finish.resolve("whole");
  assertEquals([await ended, await answer, stopped], ["drained", "whole", []]);
  assertEquals(logs.slice(1), [{ level: "info", event: "stopped", outcome: "drained" }]);
});

Deno.test("shutDownServer() aborts texts and images after their drain times", async () => {
  const cases: [InFlightKind, Partial<ShutdownTimes>, string[]][] = [
    ["text", { drainMs: 20 }, ["texts", "all"]],
    ["images", { drainMs: 0, imagesDrainMs: 20 }, ["texts", "all"]],
    // Images never get less time than texts.
    ["images", { drainMs: 20, imagesDrainMs: 0 }, ["texts", "all"]],
  ];
  for (const [kind, times, expected] of cases) {
    const { answer, stopped, end } = await world(kind);
    assertEquals([await end(times), await answer, stopped], ["late", "overloaded", expected], kind);
  }
});

Deno.test("shutDownServer() lets images finish after the drain time of texts", async () => {
  const { finish, answer, stopped, end } = await world("images");
  const ended = end({ drainMs: 0, imagesDrainMs: 60_000 });
  await until("the drain time of texts", () => stopped.length > 0);
  finish.resolve("an image");
  assertEquals([await answer, await ended], ["an image", "drained"]);
});

Deno.test("shutDownServer() reports not ready before it closes, and closes once no body is arriving", async () => {
  const { finish, server, answer, drain, end } = await world();
  const arrived = drain.arrive();
  const ended = end({ readyDelayMs: 30 });
  assertEquals(drain.phase, "shutting_down");
  const connect = () => Deno.connect({ hostname: "127.0.0.1", port: server.addr.port });
  await until("bodies are refused", async () => {
    (await connect()).close();
    return drain.phase === "refusing";
  });
  (await connect()).close();
  arrived();
  finish.resolve("whole");
  assertEquals([await ended, await answer], ["drained", "whole"]);
  await assertRejects(connect, Error);
});

Deno.test("shutDownServer() stops waiting at the second signal", async () => {
  const { finish, server, answer, logs, stopped, end } = await world();
  assertEquals([await end({}, Promise.resolve()), stopped, logs.at(-1)?.outcome], ["cut", [], "cut"]);
  finish.resolve("whole");
  await answer;
  await server.finished;
});

Deno.test("listenForStopSignals() treats signals within 300 ms as one", async () => {
  let now = 0;
  const { first, second, forget } = listenForStopSignals(() => now);
  let isSecond = false;
  void second.then(() => isSecond = true);
  await signalItself();
  await first;
  now = 299;
  await signalItself();
  assertEquals(isSecond, false);
  now = 300;
  await signalItself();
  await second;
  forget();
});

/** Sends SIGTERM to this process, and waits until its listeners have been called: a pending signal could end it. */
async function signalItself(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  Deno.addSignalListener("SIGTERM", resolve);
  Deno.kill(Deno.pid, "SIGTERM");
  // A listener alone does not keep the event loop running.
  await soon("the signal", promise);
  Deno.removeSignalListener("SIGTERM", resolve);
}
