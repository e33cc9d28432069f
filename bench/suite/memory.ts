/** Measures the memory of open streams and the time to the first answer. */
import { bodyOf } from "./bodies.ts";
import type { Peer } from "./peer.ts";
import { memoryBytes } from "./proc.ts";
import { median, tell } from "./rounds.ts";
import type { Running } from "./running.ts";
import type { Target } from "./targets.ts";

/** Memory of a target with open streams. */
export interface StreamMemory {
  /** Memory of the target before the first stream, and with all streams open, in bytes. */
  idleBytes: number;
  openBytes: number;
  /** Growth for each stream, in bytes. */
  perStreamBytes: number;
}

/** Streams with an event every two seconds, translated if the target can translate. */
const HELD = { client: "chat", upstream: "messages", play: "slow" } as const;
const HELD_RELAYED = { client: "chat", upstream: "chat", play: "slow" } as const;

/** Time for which all streams are open before memory is read, in milliseconds: each has sent two events by then. */
const OPEN_MS = 5_000;

/**
 * Time after the first answer at which the memory without streams is measured, in milliseconds. By then the gateway has
 * imported the modules that its first answer did not need, so they do not count as memory of streams.
 */
const SETTLE_MS = 30_000;

/** Opens streams on a target that was started for that, and weighs it. @throws {Error} if not all can be opened */
export async function weighStreams(running: Running, { load, streams }: { load: Peer; streams: number }): Promise<
  StreamMemory
> {
  const entrance = entranceOf(running.target);
  const ask = { protocol: "chat", size: "1k", model: entrance.model, stream: true } as const;
  const { path, headers } = entrance;
  await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
  const idleBytes = await memoryBytes(running.pid);
  await tell(load, { kind: "open", port: running.port, path, headers, ask, connections: streams, untried: true });
  await tell(load, { kind: "hold" });
  await new Promise((resolve) => setTimeout(resolve, OPEN_MS));
  const openBytes = await memoryBytes(running.pid);
  return { idleBytes, openBytes, perStreamBytes: (openBytes - idleBytes) / streams };
}

function entranceOf(target: Target): NonNullable<ReturnType<Target["entrance"]>> {
  const entrance = target.entrance(HELD) ?? target.entrance(HELD_RELAYED);
  if (entrance === undefined) throw new Error(`${target.name} has no streams`);
  return entrance;
}

/** The request whose answer shows that a target has started. */
export function firstRequest(target: Target): { entrance: ReturnType<typeof entranceOf>; body: string } {
  const entrance = target.entrance({ client: "chat", upstream: "chat", play: "json" });
  if (entrance === undefined) throw new Error(`${target.name} does not speak chat`);
  return { entrance, body: bodyOf({ protocol: "chat", size: "1k", model: entrance.model, stream: false }) };
}

/** Starts targets in turns. Returns the medians in milliseconds, by name. */
export async function timeStarts(
  targets: readonly Target[],
  { rounds, start }: { rounds: number; start: (target: Target) => Promise<Running> },
): Promise<Record<string, number>> {
  const times = new Map<string, number[]>();
  for (let round = 0; round < rounds; round++) {
    for (const target of targets) {
      const running = await start(target);
      await running.stop();
      times.set(target.name, [...times.get(target.name) ?? [], running.startMs]);
    }
  }
  return Object.fromEntries([...times].map(([name, list]) => [name, median(list)]));
}
