import { assertEquals } from "@std/assert";
import { PhaseTimers } from "../../lib/phase_timers.ts";
import { ClientWatch } from "../../lib/request/client_disconnect.ts";
import { soon } from "../support/soon.ts";

/** A watched request whose handler is running. */
interface Watched {
  watch: ClientWatch;
  /** Resolves when the watch has reported the disconnect. */
  disconnected: Promise<void>;
  request: Request;
}

/** A real server whose only request is watched until `work` resolves. `disconnect` closes the client's connection. */
async function watched(
  stream: boolean,
  work: (watched: Watched, disconnect: () => void) => Promise<void>,
): Promise<void> {
  const timers = new PhaseTimers();
  const done = Promise.withResolvers<void>();
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, async (request) => {
    const disconnected = Promise.withResolvers<void>();
    const watch = new ClientWatch(request, { stream, timers, disconnected: disconnected.resolve });
    try {
      await work({ watch, disconnected: disconnected.promise, request }, () => connection.close());
      done.resolve();
    } catch (error) {
      done.reject(error);
    } finally {
      watch.stop();
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
    watched(stream, async ({ watch, disconnected }, disconnect) => {
      assertEquals(watch.hasDisconnected, false);
      disconnect();
      await soon("word of the disconnect", disconnected);
      assertEquals(watch.hasDisconnected, true);
    }));

  Deno.test(`a client of ${what} that stays is not reported, and nothing is after the watch has ended`, () =>
    watched(stream, async ({ watch, disconnected, request }, disconnect) => {
      let isCalled = false;
      void disconnected.then(() => isCalled = true);
      watch.stop();
      const aborted = new Promise((resolve) => request.signal.addEventListener("abort", resolve, { once: true }));
      disconnect();
      await soon("the client's disconnect", aborted);
      assertEquals([isCalled, stream ? watch.hasDisconnected : false], [false, stream]);
    }));
}
