/** Charges of a request: plausible token counts, and the customer's share of their cost. */
import type { TokenUsage } from "../protocols/canonical/types.ts";
import type { BilledExtra, BilledTokens, PriceSheet } from "../store/ledger.ts";
import type { Amount } from "./money.ts";
import { costOfExtras, costOfTokens } from "./price.ts";

/** Larger counts of one class are implausible: no model reads or writes as many tokens in one request. */
const MOST_TOKENS = 1_000_000_000;

/** The plausible part of the usage that an upstream reported. */
export interface UsageReading {
  /** Reported tokens; 0 where none, or no plausible number, was reported. */
  tokens: BilledTokens;
  /** Classes to count: `prompt` for the input, `completion` and `reasoning` for the output. */
  missing: { input: boolean; output: boolean };
  /** True if the gateway has counted or estimated some of it already. */
  counted: NonNullable<TokenUsage["counted"]> | false;
  /** Classes whose reported count is impossible, for the log. */
  absurd: BilledClass[];
}

type BilledClass = keyof BilledTokens;

/**
 * Validates reported usage: whole numbers up to 1,000,000,000. Anything else is absurd and counts as missing, and so
 * does an input of zero tokens with its caches: every prompt has some, and some hosts report 0 for unknown.
 *
 * Cache classes are 0 when missing, since their tokens are then part of `prompt`. If one of them is absurd, the split
 * of `prompt` is unknown, so the whole input is missing. Reasoning above the completion that contains it is absurd; it
 * has no price of its own, so it becomes 0 and nothing is missing.
 */
export function readUsage(usage: TokenUsage): UsageReading {
  const absurd: BilledClass[] = [];
  const read = (name: BilledClass, most = MOST_TOKENS): number | undefined => {
    const count = usage[name];
    if (count === undefined) return undefined;
    if (Number.isSafeInteger(count) && count >= 0 && count <= most) return count;
    absurd.push(name);
    return undefined;
  };
  const prompt = read("prompt");
  const input_cache_read = read("input_cache_read") ?? 0;
  const input_cache_write_5m = read("input_cache_write_5m") ?? 0;
  const input_cache_write_1h = read("input_cache_write_1h") ?? 0;
  const cached = input_cache_read + input_cache_write_5m + input_cache_write_1h;
  const isInputTold = prompt !== undefined && absurd.length === 0 && prompt + cached > 0;
  const completion = read("completion");
  const reasoning = completion === undefined ? 0 : read("reasoning", completion) ?? 0;
  return {
    tokens: {
      prompt: isInputTold ? prompt : 0,
      input_cache_read: isInputTold ? input_cache_read : 0,
      input_cache_write_5m: isInputTold ? input_cache_write_5m : 0,
      input_cache_write_1h: isInputTold ? input_cache_write_1h : 0,
      completion: completion ?? 0,
      reasoning,
    },
    missing: { input: !isInputTold, output: completion === undefined },
    counted: usage.counted ?? false,
    absurd,
  };
}

/** The charge of a request. */
export interface Charge {
  /** Amount that the customer pays. */
  cost: Amount;
  /** Cost beyond the held amount, paid by the operator. */
  overrun: Amount;
}

/**
 * Computes the charge for tokens and for extras billed beside them.
 * @param held amount held for the request, the most that the customer pays; 0: no budget applies, so the customer pays
 * the whole cost
 */
export function computeCharge(
  { tokens, sheet, extras, held }: {
    tokens: BilledTokens;
    sheet: Readonly<PriceSheet>;
    extras?: readonly BilledExtra[] | undefined;
    held: Amount;
  },
): Charge {
  let cost = costOfTokens(tokens, sheet);
  if (extras !== undefined) cost += costOfExtras(extras, sheet);
  if (held === 0n || cost <= held) return { cost, overrun: 0n };
  return { cost: held, overrun: cost - held };
}
