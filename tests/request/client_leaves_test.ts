import { assertEquals } from "@std/assert";
import { PhaseTimers } from "../../lib/phase_timers.ts";
import { ClientWatch } from "../../lib/request/client_leaves.ts";
import { soon } from "../support/soon.ts";

/** A watched request whose handler is running. */
interface Watched {
  watch: ClientWatch;
  /** Resolves when the watch has reported the disconnect. */
  left: Promise<void>;
  request: Request;
}

/** A real server whose only request is watched until `work` resolves. `leave` closes the client's connection. */
async function watched(
  stream: boolean,
  work: (watched: Watched, leave: () => void) => Promise<void>,
): Promise<void> {
  const timers = new PhaseTimers();
  const done = Promise.withResolvers<void>();
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, async (request) => {
    const left = Promise.withResolvers<void>();
    timers.hold();
    const watch = new ClientWatch(request, { stream, timers, left: left.resolve });
    try {
      await work({ watch, left: left.promise, request }, () => connection.close());
      done.resolve();
    } catch (error) {
      done.reject(error);
    } finally {
      watch.stop();
      timers.release();
    }
    return new Response();
  });
  const connection = await Deno.connect({ hostname: "127.0.0.1", port: server.addr.port });
  await connection.write(new TextEncoder().encode("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
  try {
    await done.promise;
  } finally {
    try {
      connection.close();
    } catch {
      // The test has closed it.
    }
    await server.shutdown();
  }
}

for (const stream of [false, true]) {
  const what = stream ? "a stream" : "a whole answer";

  Deno.test(`a disconnect of a client of ${what} is detected`, () =>
    watched(stream, async ({ watch, left }, leave) => {
      assertEquals(watch.hasLeft, false);
      leave();
      await soon("word of the client that has left", left);
      assertEquals(watch.hasLeft, true);
    }));

  Deno.test(`a client of ${what} that stays is not reported, and nothing is after the watch has ended`, () =>
    watched(stream, async ({ watch, left, request }, leave) => {
      let isCalled = false;
      void left.then(() => isCalled = true);
      watch.stop();
      const gone = new Promise((resolve) => request.signal.addEventListener("abort", resolve, { once: true }));
      leave();
      await soon("the client's leaving", gone);
      assertEquals([isCalled, stream ? watch.hasLeft : false], [false, stream]);
    }));
}
