/** Reads the bill that each protocol reports to the client. */
import { assert, assertEquals } from "@std/assert";
import type { Protocol } from "../../../lib/protocols/canonical/types.ts";
import { readSse } from "../../support/sse.ts";
import type { KeptEntry } from "../../../lib/store/ledger.ts";

/** Reported numbers of tokens and the cost; undefined if not reported. */
export interface Bill {
  /** Exact, in USD. */
  cost: string | undefined;
  /** Input tokens of all classes, and those of them read from a cache. */
  input: number | undefined;
  cached: number | undefined;
  output: number | undefined;
}

// deno-lint-ignore no-explicit-any
type Parsed = any;

/** The bill in a whole answer. */
export function wholeBill(protocol: Protocol, { headers }: Response, text: string): Bill {
  return { cost: headers.get("x-sluice-cost") ?? undefined, ...usageOf(protocol, usageIn(protocol, JSON.parse(text))) };
}

/** The bill at the end of a streamed answer: the last reported usage. */
export function streamedBill(protocol: Protocol, text: string): Bill {
  const frames: Parsed[] = readSse(text).map(({ data }) => data).filter((data) => typeof data === "object");
  const last = frames.findLast((frame) => usageIn(protocol, frame) !== undefined);
  // Clients of messages take the later counts over those of the beginning.
  const usages = frames.map((frame) => frame.message?.usage ?? usageIn(protocol, frame));
  const usage = protocol === "messages" ? Object.assign({}, ...usages) : usages.findLast(Boolean);
  return { cost: last?.sluice_cost, ...usageOf(protocol, usage) };
}

/** Asserts that the reported bill equals the entry. */
export function assertSameBill(bill: Bill, { tokens, cost }: KeptEntry, about: string): void {
  const input = tokens.prompt + tokens.input_cache_read + tokens.input_cache_write_5m + tokens.input_cache_write_1h;
  assertEquals(bill, {
    cost: usd(cost),
    input,
    cached: tokens.input_cache_read,
    output: tokens.completion,
  }, about);
}

/** An amount as reported, formatted independently. */
export function usd(amount: bigint): string {
  assert(amount >= 0n);
  const digits = amount.toString().padStart(13, "0");
  return `${digits.slice(0, -12)}.${digits.slice(-12)}`.replace(/\.?0+$/, "");
}

function usageIn(protocol: Protocol, frame: Parsed): Parsed {
  if (protocol === "gemini") return frame.usageMetadata ?? undefined;
  return (protocol === "responses" ? frame.response?.usage ?? frame.usage : frame.usage) ?? undefined;
}

function usageOf(protocol: Protocol, usage: Parsed): Omit<Bill, "cost"> {
  if (usage === undefined) return { input: undefined, cached: undefined, output: undefined };
  switch (protocol) {
    case "chat":
      return {
        input: usage.prompt_tokens,
        cached: usage.prompt_tokens_details?.cached_tokens ?? 0,
        output: usage.completion_tokens,
      };
    case "responses":
      return {
        input: usage.input_tokens,
        cached: usage.input_tokens_details?.cached_tokens ?? 0,
        output: usage.output_tokens,
      };
    case "gemini":
      return {
        input: usage.promptTokenCount,
        cached: usage.cachedContentTokenCount ?? 0,
        output: usage.candidatesTokenCount + (usage.thoughtsTokenCount ?? 0),
      };
    case "messages": {
      const cached = usage.cache_read_input_tokens ?? 0;
      return {
        input: usage.input_tokens === undefined ? undefined : usage.input_tokens + cached,
        cached,
        output: usage.output_tokens,
      };
    }
  }
}
