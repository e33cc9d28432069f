/** A host that neither accepts nor refuses connections. */

import { othersTurns } from "../support/others_turns.ts";

/** A running host. */
export interface DeafHost extends AsyncDisposable {
  /** Such as `http://127.0.0.1:40123`. */
  url: string;
}

/** Starts a host whose connection queue is full, so that the system drops further connections. */
export async function startDeaf(): Promise<DeafHost> {
  const tcpBacklog = 1;
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0, tcpBacklog });
  const { port } = listener.addr;
  const waiting: Deno.TcpConn[] = [];
  // Linux queues one more than it is asked to (`sk_acceptq_is_full`).
  while (waiting.length <= tcpBacklog) waiting.push(await Deno.connect({ hostname: "127.0.0.1", port }));
  return {
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      listener.close();
      for (const connection of waiting) connection.close();
      // Connections that were given up end a few turns later.
      await othersTurns();
    },
  };
}
