/** What is asked of every target, and how often. */
import { BURST_EVENTS, PACED_EVENTS, type Play } from "./answers.ts";
import type { Protocol, Size } from "./bodies.ts";

/** One column of the results. */
export interface Scenario {
  name: string;
  client: Protocol;
  upstream: Protocol;
  size: Size;
  play: Play;
  stream: boolean;
  /** Messages of the conversation; absent: as many as its size needs. */
  turns?: number;
  /** Connections that ask without pause; each once at least. */
  connections: number;
  /** Requests each second instead, whatever becomes of them. */
  perSecond?: number;
  /** Events with text of one answer: CPU time is told per event. */
  events?: number;
  /** Each connection asks once: an answer takes longer than a round. */
  once?: boolean;
  /** Not part of a quick run. */
  long?: boolean;
}

const JSON_1K = { client: "chat", upstream: "chat", size: "1k", play: "json", stream: false, connections: 32 } as const;
const CROSS = { upstream: "messages" } as const;
const BURST = { play: "burst", stream: true, connections: 16, events: BURST_EVENTS } as const;
const PACED = { play: "paced", stream: true, connections: 40, events: PACED_EVENTS, once: true } as const;
const FIRST = { play: "first", stream: true, connections: 4 } as const;
const CALM = { connections: 4, perSecond: 100 } as const;

/** All columns. */
export const SCENARIOS: readonly Scenario[] = [
  { name: "json 1k", ...JSON_1K },
  { name: "json 60k", ...JSON_1K, size: "60k" },
  { name: "json 60k cjk", ...JSON_1K, size: "60k-cjk", long: true },
  { name: "json 1m", ...JSON_1K, size: "1m", connections: 8, long: true },
  { name: "json answer 60k", ...JSON_1K, play: "json60", long: true },
  { name: "json 1k responses", ...JSON_1K, client: "responses", upstream: "responses", long: true },
  { name: "json 1k messages", ...JSON_1K, client: "messages", upstream: "messages", long: true },
  { name: "json 1k cross", ...JSON_1K, ...CROSS },
  { name: "json 60k cross", ...JSON_1K, ...CROSS, size: "60k" },
  { name: "json 60k cjk cross", ...JSON_1K, ...CROSS, size: "60k-cjk", long: true },
  { name: "json 1m cross", ...JSON_1K, ...CROSS, size: "1m", connections: 8, long: true },
  { name: "burst", ...JSON_1K, ...BURST },
  { name: "burst responses", ...JSON_1K, ...BURST, client: "responses", upstream: "responses", long: true },
  { name: "burst messages", ...JSON_1K, ...BURST, client: "messages", upstream: "messages", long: true },
  { name: "burst cross", ...JSON_1K, ...BURST, ...CROSS },
  { name: "paced", ...JSON_1K, ...PACED },
  { name: "paced cross", ...JSON_1K, ...PACED, ...CROSS },
  { name: "first event", ...JSON_1K, ...FIRST, long: true },
  { name: "first event cross", ...JSON_1K, ...FIRST, ...CROSS, long: true },
  { name: "calm 1k", ...JSON_1K, ...CALM },
];
