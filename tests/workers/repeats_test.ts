import { assert, assertEquals, assertRejects, assertStrictEquals } from "@std/assert";
import { GatewayError } from "../../lib/errors.ts";
import type { StoredAnswer } from "../../lib/images/answer_shelf.ts";
import { createIdempotency, type RepeatableRequest } from "../../lib/images/idempotency.ts";
import { openMemoryStore } from "../../lib/store/memory.ts";
import { OWNER, WORKER } from "../../lib/workers/contract.ts";
import { createRepeats, openDesk } from "../../lib/workers/repeats.ts";
import { openWires } from "./wires.ts";

/** An owner, and two workers that know each other through it alone. */
function open() {
  const store = openMemoryStore();
  const idempotency = createIdempotency({
    store,
    now: Date.now,
    report: (cause) => {
      throw cause;
    },
    windowMs: 60_000,
    maxBytes: 1_000_000,
  });
  const workers = [1, 2].map(() => {
    const wires = openWires();
    const desk = openDesk(idempotency, {
      work: wires.one.remote(WORKER.repeats),
      told: wires.one.told(WORKER.repeats),
    });
    wires.one.offer(OWNER.repeats, desk);
    const repeats = createRepeats(wires.other.remote(OWNER.repeats), wires.other.told(OWNER.repeats));
    wires.other.offer(WORKER.repeats, repeats.work);
    return {
      run: repeats.idempotency.run,
      close: repeats.idempotency.close,
      /** As when its owner loses it. */
      die() {
        wires.one.close(new GatewayError("overloaded", "It has ended"));
        desk.close();
      },
      wires,
    };
  });
  const [one, two] = workers;
  assert(one !== undefined && two !== undefined);
  return {
    one,
    two,
    [Symbol.dispose]() {
      for (const { wires } of workers) wires[Symbol.dispose]();
    },
  };
}

function answerOf(text: string): StoredAnswer {
  // A piece of something larger.
  return { status: 200, headers: { "x-a": "b" }, body: new TextEncoder().encode(`--${text}--`).subarray(2, -2) };
}

function request(work: RepeatableRequest["work"], more: Partial<RepeatableRequest> = {}): RepeatableRequest {
  return { scope: "key images", key: "k", requestHash: "h", signal: new AbortController().signal, work, ...more };
}

function textOf({ body }: StoredAnswer): string {
  return new TextDecoder().decode(body);
}

const NEVER = () => Promise.reject(new Error("It was done twice"));

Deno.test("a request at two isolates is done by one, and both get its answer; later ones get it again", async () => {
  using world = open();
  const begun = Promise.withResolvers<void>();
  const done = Promise.withResolvers<StoredAnswer>();
  const first = world.one.run(request(() => {
    begun.resolve();
    return done.promise;
  }));
  await begun.promise;
  const second = world.two.run(request(NEVER));
  await assertRejects(() => world.two.run(request(NEVER, { requestHash: "other" })), GatewayError, "another request");
  done.resolve(answerOf("done"));
  const answers = [await first, await second, await world.one.run(request(NEVER)), await world.two.run(request(NEVER))];
  assertEquals(answers.map(textOf), Array(4).fill("done"));
  const replay = "x-sluice-idempotent-replay";
  assertEquals(answers.map(({ headers }) => headers[replay]), [undefined, "true", "true", "true"]);
});

Deno.test("what the work throws is thrown at every isolate, as it was", async () => {
  using world = open();
  const begun = Promise.withResolvers<void>();
  const fail = Promise.withResolvers<never>();
  const first = world.one.run(request(() => {
    begun.resolve();
    return fail.promise;
  }));
  await begun.promise;
  const second = world.two.run(request(NEVER));
  // It waits before the work fails.
  await new Promise((resolve) => setTimeout(resolve, 20));
  fail.reject(new GatewayError("limited", "No more", { retryAfterMs: 7 }));
  for (const waiting of [first, second]) {
    const thrown = await assertRejects(() => waiting, GatewayError, "No more");
    assertEquals([thrown.kind, thrown.retryAfterMs], ["limited", 7]);
  }
});

Deno.test("work goes on while any client waits, wherever it is, and stops when the last has gone", async () => {
  using world = open();
  const begun = Promise.withResolvers<AbortSignal>();
  const [leaver, stayer] = [new AbortController(), new AbortController()];
  const first = world.one.run(request((signal) => {
    begun.resolve(signal);
    return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  }, { signal: leaver.signal }));
  const signal = await begun.promise;
  const second = world.two.run(request(NEVER, { signal: stayer.signal }));
  await new Promise((resolve) => setTimeout(resolve, 20));
  const reason = new Error("The first has gone");
  leaver.abort(reason);
  assertStrictEquals(await first.catch((error) => error), reason);
  assertEquals(signal.aborted, false);
  const stopped = new Promise((resolve) => signal.addEventListener("abort", resolve));
  stayer.abort(new Error("The second has gone"));
  await assertRejects(() => second, Error, "The second has gone");
  await stopped;
  // Nothing came of it: the next one does it.
  const third = await world.two.run(request(() => Promise.resolve(answerOf("again"))));
  assertEquals(textOf(third), "again");
});

Deno.test("a request whose isolate ends is done by the next who asks, and whoever waited is told", async () => {
  using world = open();
  const begun = Promise.withResolvers<void>();
  void world.one.run(request(() => {
    begun.resolve();
    return new Promise(() => {});
  })).catch(() => {});
  await begun.promise;
  const second = world.two.run(request(NEVER));
  await new Promise((resolve) => setTimeout(resolve, 20));
  world.one.die();
  await assertRejects(() => second, GatewayError, "It has ended");
  assertEquals(textOf(await world.two.run(request(() => Promise.resolve(answerOf("again"))))), "again");
});

Deno.test("all work of an isolate can be ended", async () => {
  using world = open();
  const begun = Promise.withResolvers<void>();
  const waiting = world.one.run(request((signal) => {
    begun.resolve();
    return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  }));
  await begun.promise;
  world.one.close();
  await assertRejects(() => waiting, DOMException, "Closed");
});
