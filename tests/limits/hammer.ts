/**
 * A node in a process of its own that reserves from one limit as fast as it can, and writes each reservation as a line
 * to standard output: `deno run -A hammer.ts ORDERS`, with the orders as JSON. It ends cleanly with its standard input.
 */
import { limitOf, openNode } from "./redis_nodes.ts";

/** Orders of the process. */
export interface Orders {
  url: string;
  unit: "requests" | "concurrency";
  limit: number;
  /** Number of concurrent requests. */
  workers: number;
  /** Longest time that a slot is held, in milliseconds. */
  holdMs: number;
  leaseMs: number;
  /** True: requests end, and their ledger entries never become durable. */
  isUnentered?: boolean;
  /** Speed of the limits' clock; 1 for the server's own. */
  speed: number;
}

if (import.meta.main) await hammer(JSON.parse(Deno.args[0] ?? ""));

async function hammer(
  { url, unit, limit, workers, holdMs, leaseMs, speed, isUnentered = false }: Orders,
): Promise<void> {
  const now = () => (performance.timeOrigin + performance.now()) * speed;
  await using node = await openNode(url, { leaseMs, timeoutMs: 5_000, ...(speed !== 1 && { clock: now }) });
  const limitRequests = [limitOf("key:hammered", unit, limit)];
  const encoder = new TextEncoder();
  const tell = (line: object) => Deno.stdout.writeSync(encoder.encode(JSON.stringify(line) + "\n"));
  const wait = (mostMs: number) => new Promise((resolve) => setTimeout(resolve, Math.random() * mostMs));
  let isOver = false;
  let refused = 0;

  async function work(): Promise<void> {
    while (!isOver) {
      const id = crypto.randomUUID();
      const begun = now();
      const running = { id, at: Date.now(), keyId: "hammered", group: "g", model: "m", endpoint: "chat" as const };
      const { admitted } = await node.limiter.take({ id, limitRequests, forMs: 600_000, running });
      if (admitted && isUnentered) {
        await node.limiter.end(id, 0, { isEntered: false });
        tell({ id, ended: now() });
        return;
      }
      if (admitted) {
        tell({ id, begun, taken: now() });
        if (unit === "concurrency") {
          await wait(holdMs);
          // The slot is held until a command ends it.
          tell({ id, ended: now() });
        }
        await node.limiter.end(id, 0);
      } else if (unit === "concurrency") await wait(5);
      else if (++refused % 100 === 0) tell({ refused });
    }
  }

  tell({ ready: true });
  const working = Promise.all(Array.from({ length: workers }, work));
  await Deno.stdin.readable.pipeTo(new WritableStream());
  isOver = true;
  await working;
}
