import { assert } from "@std/assert";
import { createHttp1Transport } from "../../lib/upstreams/select_transport.ts";
import type { Incoming } from "../../lib/upstreams/transport.ts";
import { until } from "../support/soon.ts";
import { request } from "../upstreams/transports.ts";
import { chunk, CHUNKED_EVENTS, say, startRawUpstream } from "../upstream/raw.ts";

/** Open descriptors of this process. */
function descriptors(): number {
  return [...Deno.readDirSync("/proc/self/fd")].length;
}

Deno.test("calls leak no descriptor, however they end", async () => {
  await using server = startRawUpstream(async (socket, { body }) => {
    if (body === "cut") await say(socket, `${CHUNKED_EVENTS}5\r\nhel`);
    if (body === "broken") await say(socket, "HTTP/1.1 200 OK\n\n");
    if (body === "cut" || body === "broken") return "close";
    await say(socket, CHUNKED_EVENTS + chunk("hello"));
    if (body === "whole") await say(socket, chunk(""));
    else await socket.read(new Uint8Array(1));
    return body === "whole" ? "keep" : "close";
  });
  const before = descriptors();
  const transport = createHttp1Transport({ idleConnections: 8 });
  const ends: Record<string, (incoming: Incoming, client: AbortController) => Promise<unknown>> = {
    whole: (incoming) => incoming.text(100),
    cut: (incoming) => incoming.text(100),
    broken: (incoming) => incoming.text(100),
    left: (incoming, client) => {
      client.abort(new Error("Left"));
      return incoming.read();
    },
    cancelled: (incoming) => Promise.resolve(incoming.cancel()),
    large: (incoming) => incoming.text(1),
  };
  for (let round = 0; round < 20; round++) {
    await Promise.all(
      Object.entries(ends).map(async ([body, end]) => {
        const client = new AbortController();
        const incoming = await transport.send(request(server.url, { body, signal: client.signal })).catch(() =>
          undefined
        );
        if (incoming !== undefined) await end(incoming, client).catch(() => {});
      }),
    );
  }
  // Both sides are in this process: two for each idle one.
  await until("only idle ones left", () => server.open <= 8);
  assert(descriptors() <= before + 16, `${descriptors() - before} more`);
  transport.close();
  await until("none left", () => server.open === 0 && descriptors() <= before);
});

Deno.test("calls that end while connecting leak no descriptor", async () => {
  await using server = startRawUpstream(async (socket) => {
    await say(socket, CHUNKED_EVENTS + chunk(""));
    return "keep";
  });
  const before = descriptors();
  const transport = createHttp1Transport({ idleConnections: 0 });
  let left = 0;
  const lane = async (number: number) => {
    for (let call = 0; call < 50; call++) {
      const client = new AbortController();
      // Some calls are aborted at once, some never, and some at about the time of the connection.
      const sent = transport.send(request(server.url, { signal: client.signal }));
      const leave = () => client.abort(new Error("Left"));
      if (call % 4 === 0) leave();
      const timer = call % 4 < 2 ? undefined : setTimeout(leave, ((number * 50 + call) % 40) / 10);
      await sent.then((incoming) => incoming.text(10)).catch(() => left++);
      clearTimeout(timer);
    }
  };
  await Promise.all(Array.from({ length: 20 }, (_, number) => lane(number)));
  assert(left >= 260 && left <= 760, `${left} left`);
  await until("none left", () => server.open === 0 && descriptors() <= before);
  transport.close();
});
