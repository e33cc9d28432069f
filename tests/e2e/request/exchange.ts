/** One exchange: the upstream's answer, the client's behaviour, and the expected entry. */
import { assert, assertEquals } from "@std/assert";
import type { Protocol } from "../../../lib/protocols/canonical/types.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import type { BilledTokens, Ending, KeptEntry, UsageSource } from "../../../lib/store/ledger.ts";
import { othersTurns } from "../../support/others_turns.ts";
import type { GatewayOptions } from "../../support/gateway.ts";
import { prompt } from "../../upstream/replies.ts";
import { frames, REPORTED, type ReportedUsage, whole } from "../../upstream/frames.ts";
import type { ScriptedAnswer, Step } from "../../upstream/mod.ts";
import { chargeOf, priceOf, spokenBy, tokens, type Way, type World, type WorldOptions } from "./world.ts";

/** Text of the upstream's answers, in pieces. */
export const PIECES = ["alpha beta ", "gamma delta ", "epsilon zeta ", "eta theta"];
const TEXT = PIECES.join("");

/** The transports to an upstream. */
export const HTTP: readonly Way[] = ["relayed", "translated"];

/** The expected entry. */
export interface Expected {
  status: number;
  ending: Ending;
  /** Absent: nothing is charged. */
  tokens?: BilledTokens;
  source?: UsageSource;
  /** Absent: one. */
  attempts?: number;
}

/** A whole exchange with a reported usage. */
export const COMPLETE: Expected = { status: 200, ending: "end", tokens: tokens(REPORTED), source: "upstream" };

/** A world before its start. */
export interface Planned {
  protocol: Protocol;
  way: Way;
  /** Resolves when the gateway's server has noticed the disconnect and the watchers were called. */
  gone: () => Promise<void>;
}

/** An upstream that answers as requested, streamed or whole. */
export function answers(reported: ReportedUsage): (world: Pick<Planned, "protocol" | "way">) => Partial<WorldOptions> {
  return ({ protocol, way }) => ({
    says: ({ stream }) => ({ steps: stepsOf(spokenBy(protocol, way), stream, reported) }),
  });
}

/** The steps of an answer with this usage, in the upstream's protocol. */
export function stepsOf(spoken: Protocol, stream: boolean, reported: ReportedUsage): string[] {
  if (!stream) return [whole(spoken, TEXT, reported)];
  const { opening, pieces, ending } = frames(spoken, PIECES, reported);
  return [...opening, ...pieces, ...ending];
}

/** Number of pieces that wait for the next event: Gemini's last event needs content. */
export function heldBy(protocol: Protocol, way: Way): number {
  return protocol === "gemini" && way !== "relayed" ? 1 : 0;
}

/** A streaming upstream whose steps are replaced by others after this number of pieces has reached the client. */
export function streamsThen(
  count: number,
  rest: (frames: { ending: string[]; pieces: string[]; spoken: Protocol } & Pick<Planned, "gone">) => Step[],
  more: Partial<ScriptedAnswer> = {},
): (world: Planned) => Partial<WorldOptions> {
  return ({ protocol, way, gone }) => {
    const spoken = spokenBy(protocol, way);
    const { opening, pieces, ending } = frames(spoken, PIECES, "reported");
    const sent = count + heldBy(protocol, way);
    const steps = () => [
      ...opening,
      ...pieces.slice(0, sent),
      ...rest({ ending, pieces: pieces.slice(sent), spoken, gone }),
    ];
    return { says: () => ({ steps: steps(), ...more }) };
  };
}

function asking(protocol: Protocol, stream: boolean): JsonObject {
  const options = protocol === "chat" && stream ? { stream_options: { include_usage: true } } : {};
  return prompt(protocol, { stream, ...options });
}

/** Asks for an answer, as the client of the world. */
export function ask(world: World, stream: boolean, signal?: AbortSignal): Promise<Response> {
  const { gateway, protocol } = world;
  return gateway.ask(protocol, asking(protocol, stream), signal === undefined ? {} : { signal });
}

/** Reads until a text has arrived, runs `then`, and disconnects; returns the received text. */
export async function disconnectsAfter(
  response: Response,
  text: string,
  { disconnect, then }: { disconnect: AbortController; then?: () => Promise<void> },
): Promise<string> {
  let got = "";
  const decoder = new TextDecoder();
  const reader = response.body?.getReader();
  while (!got.includes(text)) {
    const read = await reader?.read();
    if (read?.value === undefined) throw new Error(`Expected "${text}" in ${got}`);
    got += decoder.decode(read.value, { stream: true });
  }
  await then?.();
  disconnect.abort();
  await reader?.cancel().catch(() => {});
  return got;
}

/** Asserts every field of the entry. */
export function checkEntry(
  entry: KeptEntry,
  { world, expected, about }: { world: World; expected: Expected; about: string },
): void {
  const { protocol, way } = world;
  const attempts = expected.attempts ?? 1;
  const billed = expected.tokens ?? tokens({});
  assertEquals(chargeOf(entry), {
    status: expected.status,
    ending: expected.ending,
    tokens: billed,
    source: expected.source ?? "none",
    cost: priceOf(billed),
    attempts,
  }, about);
  const upstream = attempts === 0 ? "" : way === "embedded" ? "embedded" : attempts === 1 ? "one" : "two";
  assertEquals([entry.endpoint, entry.model, entry.upstream, entry.images], [protocol, "acme/one", upstream, 0], about);
  assertEquals([entry.keyId, entry.group], [world.gateway.key.id, "default"], about);
  assertEquals(entry.sheet === undefined, expected.tokens === undefined, about);
  assertEquals(entry.overrun, 0n, about);
  assert(entry.held >= entry.cost && entry.held > 0n, about);
  assert(expected.tokens === undefined || entry.firstMs !== undefined, `${about}: when it began is not reported`);
}

/** Reports when the client of the only request has disconnected, with the gateway options for that. */
export function disconnectWatch(): Pick<Planned, "gone"> & { gateway: GatewayOptions } {
  const { promise, resolve } = Promise.withResolvers<void>();
  // For a whole answer, the gateway checks a little later whether the client is still connected.
  return {
    gone: () => promise.then(() => othersTurns()),
    gateway: { arriving: ({ signal }) => signal.addEventListener("abort", () => resolve(), { once: true }) },
  };
}
