/** Checks a single ledger entry for the audit. */
import { messageOf } from "../../errors.ts";
import { formatUsd, parseUsd } from "../money.ts";
import { deliveredTokens, outputTokens, readSizeText } from "../image_tokens.ts";
import { type Charge, computeCharge } from "../price.ts";
import { type Entry, inputTokensOf, type KeptEntry } from "../../store/ledger.ts";

/** A problem of an entry. */
export interface EntryFault {
  kind: "number" | "cost";
  message: string;
}

/** Returns every problem of an entry: impossible numbers, and a cost that differs from its tokens and prices. */
export function checkEntry(entry: KeptEntry): EntryFault[] {
  const faults: EntryFault[] = [];
  for (const name of invalidNumbers(entry)) {
    faults.push({ kind: "number", message: `${name} is not a valid number` });
  }
  try {
    const { cost, overrun } = recomputeCharge(entry);
    if (cost !== entry.cost) faults.push(amountFault("cost", { stored: entry.cost, computed: cost }));
    if (overrun !== entry.overrun) faults.push(amountFault("overrun", { stored: entry.overrun, computed: overrun }));
    faults.push(...imageFaults(entry), ...contextTierFaults(entry));
    // Throws for an invalid amount.
    parseUsd(entry.details?.upstream_usd ?? "0");
  } catch (error) {
    faults.push({ kind: "cost", message: messageOf(error) });
  }
  return faults;
}

/**
 * Recomputes cost and overrun of an entry from its tokens, extras, prices and hold. An entry without prices costs 0.
 * @throws {RangeError} for invalid tokens or prices
 */
export function recomputeCharge(
  { tokens, details, sheet, held }: Pick<Entry, "tokens" | "details" | "sheet" | "held">,
): Charge {
  if (sheet === undefined) return { cost: 0n, overrun: 0n };
  return computeCharge({ tokens, sheet, extras: details?.extras, held });
}

function amountFault(what: string, { stored, computed }: { stored: bigint; computed: bigint }): EntryFault {
  return {
    kind: "cost",
    message: `the ${what} is ${formatUsd(stored)} USD, but its tokens and prices give ${formatUsd(computed)} USD`,
  };
}

/** Checks the tokens of images, which are billed by a formula from their sizes. */
function imageFaults({ tokens, images, details }: KeptEntry): EntryFault[] {
  const sizes = details?.image_sizes;
  if (sizes === undefined) return [];
  const faults: EntryFault[] = [];
  const { asked, delivered } = sizes;
  if (delivered.length !== images) {
    faults.push({ kind: "number", message: `images is ${images}, but the number of sizes is ${delivered.length}` });
  }
  const computed = delivered.reduce((sum, size) => sum + tokensOfSize(size, asked), 0);
  if (computed !== tokens.completion) {
    faults.push({
      kind: "cost",
      message: `it is billed for ${tokens.completion} image tokens, but their sizes give ${computed}`,
    });
  }
  return faults;
}

/** Checks that the input size lies in the context tier at whose prices the entry was billed. */
function contextTierFaults({ tokens, details }: KeptEntry): EntryFault[] {
  const tier = details?.context_tier;
  if (tier === undefined) return [];
  const input = inputTokensOf(tokens);
  const { above, up_to = Infinity } = tier;
  // The lowest tier also covers an input without tokens.
  if ((input > above || above === 0) && input <= up_to) return [];
  const range = up_to === Infinity ? `above ${above}` : `from ${above + 1} to ${up_to}`;
  return [{ kind: "cost", message: `it is priced at ${range} input tokens, but has ${input}` }];
}

/** Returns the tokens of a delivered image. If its size could not be read, it was billed at the requested size. */
function tokensOfSize(delivered: string, requested: string): number {
  const size = readSizeText(delivered);
  if (size !== undefined) return deliveredTokens(size);
  const requestedSize = readSizeText(requested);
  return requestedSize === undefined ? NaN : outputTokens(requestedSize);
}

function invalidNumbers(
  { at, status, tokens, firstMs, totalMs, attempts, images, held, details }: KeptEntry,
): string[] {
  const counts: [string, number | undefined][] = [
    ["at", at],
    ["status", status],
    ["prompt", tokens.prompt],
    ["input_cache_read", tokens.input_cache_read],
    ["input_cache_write_5m", tokens.input_cache_write_5m],
    ["input_cache_write_1h", tokens.input_cache_write_1h],
    ["completion", tokens.completion],
    ["reasoning", tokens.reasoning],
    ["first_ms", firstMs],
    ["total_ms", totalMs],
    ["attempts", attempts],
    ["images", images],
    ...(details?.extras ?? []).map(({ item, count }): [string, number] => [item, count]),
  ];
  const invalid = counts.filter(([, count]) => count !== undefined && !(Number.isSafeInteger(count) && count >= 0));
  return [
    ...invalid.map(([name]) => name),
    ...(tokens.reasoning > tokens.completion ? ["reasoning"] : []),
    ...(held < 0n ? ["held"] : []),
  ];
}
