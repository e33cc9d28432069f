/** Nodes that count limits in one Redis. */
import { Redis } from "ioredis";
import { until } from "./soon.ts";

/**
 * Waits until each node knows the number of all nodes, which it learns with its next heartbeat.
 * @param prefix that of their keys in Redis
 */
export async function untilNodesKnow(url: string, { count, prefix }: { count: number; prefix: string }): Promise<void> {
  const redis = new Redis(url);
  // The ends of their sessions, which every heartbeat moves.
  const ends = async () => {
    const flat = await redis.zrange(`${prefix}nodes`, "0", "-1", "WITHSCORES");
    return new Map(flat.flatMap((node, index) => index % 2 === 0 ? [[node, flat[index + 1]] as const] : []));
  };
  try {
    await until(`${count} nodes are there`, async () => (await ends()).size === count);
    // The second heartbeat follows the answer to the first.
    for (const beat of ["first", "second"]) {
      const before = await ends();
      await until(`the ${beat} heartbeat of all`, async () => {
        const now = await ends();
        return [...before].every(([node, end]) => now.get(node) !== end);
      });
    }
  } finally {
    const closed = new Promise((resolve) => redis.once("end", resolve));
    redis.disconnect();
    await closed;
  }
}
