/** Charges of a request: plausible token counts, and the customer's share of their cost. */
import type { TokenUsage } from "../protocols/canonical/types.ts";
import type { BilledExtra, BilledTokens, PriceSheet } from "../store/ledger.ts";
import type { Amount } from "./money.ts";
import { costOfExtras, costOfTokens } from "./price.ts";

/** Most tokens of one class that an upstream is believed: no model reads or writes as many in one request. */
const MOST_TOKENS = 1_000_000_000;

/** The plausible part of the usage that an upstream reported. */
export interface UsageReading {
  /** Reported tokens; 0 where none, or no plausible number, was reported. */
  tokens: BilledTokens;
  /** Classes to count: `prompt` for the input, `completion` and `reasoning` for the output. */
  missing: { input: boolean; output: boolean };
  /** True where the gateway has counted or estimated some of it already. */
  counted: NonNullable<TokenUsage["counted"]> | false;
  /** Members that were told and cannot be: for the log. */
  absurd: BilledClass[];
}

type BilledClass = keyof BilledTokens;

/**
 * Reads what an upstream told: whole numbers up to a thousand million; all else is absurd and counts as not told. So does
 * an input of no token at all, caches included: every prompt has some, and some hosts say 0 for what they do not know.
 *
 * The classes of caches are 0 where they are not told: their tokens are in `prompt` then. Where one of them is absurd
 * nobody knows what `prompt` holds, and the whole input is missing. Reasoning that is more than the completion it is part
 * of is absurd, too; it has no price of its own, so that it is 0 then, and nothing is missing.
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
 * The charge for tokens, and for what is billed beside them.
 * @param held what was set aside for the request: the most the customer pays. 0: nothing was, as no budget applies, and
 * the customer pays all of it
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
