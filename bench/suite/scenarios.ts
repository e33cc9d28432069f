/** The requests that every target gets. */
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
  /** Messages of a conversation of plain text; absent: as many as its size needs. */
  turns?: number;
  /** Number of connections that send requests without a pause, each at least one. */
  connections: number;
  /** Requests per second that are sent without waiting for answers, instead of requests without a pause. */
  perSecond?: number;
  /** Text events of one answer: CPU time is reported per event. */
  events?: number;
  /** Each connection sends one request, because an answer takes longer than a round. */
  once?: boolean;
  /** Not part of a quick run. */
  long?: boolean;
}

const JSON_1K = { client: "chat", upstream: "chat", size: "1k", play: "json", stream: false, connections: 32 } as const;
const RESPONSES = { client: "responses", upstream: "responses" } as const;
const MESSAGES = { client: "messages", upstream: "messages" } as const;
const CROSS = { upstream: "messages" } as const;
const BURST = { play: "burst", stream: true, connections: 16, events: BURST_EVENTS } as const;
const PACED = { play: "paced", stream: true, connections: 40, events: PACED_EVENTS, once: true } as const;
const TIMED = { ...PACED, play: "timed", connections: 200 } as const;
const FIRST = { play: "first", stream: true, connections: 4 } as const;
const CALM = { connections: 4, perSecond: 100 } as const;

/** All columns. */
export const SCENARIOS: readonly Scenario[] = [
  { name: "json 1k", ...JSON_1K },
  { name: "json 60k", ...JSON_1K, size: "60k" },
  { name: "json 60k cjk", ...JSON_1K, size: "60k-cjk", long: true },
  { name: "json 1m", ...JSON_1K, size: "1m", connections: 8, long: true },
  { name: "json answer 60k", ...JSON_1K, play: "json60", long: true },
  { name: "json 1k responses", ...JSON_1K, ...RESPONSES, long: true },
  { name: "json 1k messages", ...JSON_1K, ...MESSAGES, long: true },
  { name: "json 1k cross", ...JSON_1K, ...CROSS },
  { name: "json 60k cross", ...JSON_1K, ...CROSS, size: "60k" },
  { name: "json 60k cjk cross", ...JSON_1K, ...CROSS, size: "60k-cjk", long: true },
  { name: "json 1m cross", ...JSON_1K, ...CROSS, size: "1m", connections: 8, long: true },
  { name: "agent 5k", ...JSON_1K, size: "5k-agent", long: true },
  { name: "agent 5k responses", ...JSON_1K, ...RESPONSES, size: "5k-agent", long: true },
  { name: "agent 5k messages", ...JSON_1K, ...MESSAGES, size: "5k-agent", long: true },
  { name: "agent 60k", ...JSON_1K, size: "60k-agent" },
  { name: "agent 60k responses", ...JSON_1K, ...RESPONSES, size: "60k-agent", long: true },
  { name: "agent 60k messages", ...JSON_1K, ...MESSAGES, size: "60k-agent", long: true },
  { name: "agent 250k", ...JSON_1K, size: "250k-agent", long: true },
  { name: "agent 250k responses", ...JSON_1K, ...RESPONSES, size: "250k-agent", long: true },
  { name: "agent 250k messages", ...JSON_1K, ...MESSAGES, size: "250k-agent", long: true },
  { name: "agent 5k cross", ...JSON_1K, ...CROSS, size: "5k-agent", long: true },
  { name: "agent 60k cross", ...JSON_1K, ...CROSS, size: "60k-agent" },
  { name: "agent 250k cross", ...JSON_1K, ...CROSS, size: "250k-agent", long: true },
  { name: "agent 60k messages to chat", ...JSON_1K, client: "messages", size: "60k-agent", long: true },
  { name: "agent 60k responses to messages", ...JSON_1K, ...CROSS, client: "responses", size: "60k-agent", long: true },
  { name: "agent burst", ...JSON_1K, ...BURST, size: "60k-agent", long: true },
  { name: "agent burst cross", ...JSON_1K, ...BURST, ...CROSS, size: "60k-agent", long: true },
  { name: "burst", ...JSON_1K, ...BURST },
  { name: "burst responses", ...JSON_1K, ...BURST, ...RESPONSES, long: true },
  { name: "burst messages", ...JSON_1K, ...BURST, ...MESSAGES, long: true },
  { name: "burst cross", ...JSON_1K, ...BURST, ...CROSS },
  { name: "paced", ...JSON_1K, ...PACED },
  { name: "paced cross", ...JSON_1K, ...PACED, ...CROSS },
  { name: "paced 200", ...JSON_1K, ...TIMED },
  { name: "paced 200 cross", ...JSON_1K, ...TIMED, ...CROSS, long: true },
  { name: "first event", ...JSON_1K, ...FIRST, long: true },
  { name: "first event cross", ...JSON_1K, ...FIRST, ...CROSS, long: true },
  { name: "calm 1k", ...JSON_1K, ...CALM },
];
