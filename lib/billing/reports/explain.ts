/** Explains one request and its price line by line. */
import { type Amount, formatUsd, parseUsd } from "../money.ts";
import { costOfExtras, PRICE_CLASSES, unitPrices } from "../price.ts";
import type { EntryDetails, Hold, KeptEntry, LedgerStore } from "../../store/ledger.ts";
import { whyText } from "./reason_text.ts";
import type { EndedRequest, Explanation, RequestNames, RunningRequest } from "./request_schemas.ts";
import { keyNames } from "./usage.ts";

/**
 * Explains a request by its id, with or without `req_`. Returns `undefined` if the ledger has neither an entry nor a
 * hold of it.
 * @param named the store and the configuration in which its key is looked up; absent: it appears with its id
 */
export async function explainRequest(
  ledger: Pick<LedgerStore, "find" | "holds">,
  id: string,
  named?: Parameters<typeof keyNames>[0],
): Promise<Explanation | undefined> {
  const requestId = id.startsWith("req_") ? id.slice("req_".length) : id;
  const hold = (await ledger.holds()).find((hold) => hold.id === requestId);
  // Read after the holds, to find a request that ended in between.
  const entry = await ledger.find(requestId);
  const found = entry ?? hold;
  if (found === undefined) return undefined;
  const name = named && (await keyNames(named, [found.keyId])).get(found.keyId);
  if (entry !== undefined) return explainEntry(entry, name);
  return hold && explainHold(hold, name);
}

/** Returns the members that name a request. */
export function requestNames(entry: KeptEntry, keyName: string | undefined): RequestNames {
  return {
    id: `req_${entry.id}`,
    seq: entry.seq,
    at: new Date(entry.at).toISOString(),
    key: keyName ?? entry.keyId,
    key_id: entry.keyId,
    group: entry.group,
    model: entry.model === "" ? null : entry.model,
    upstream: entry.upstream === "" ? null : entry.upstream,
    endpoint: entry.endpoint,
  };
}

/** Explains an entry. @throws {RangeError} if its prices cannot be read */
export function explainEntry(entry: KeptEntry, keyName?: string): EndedRequest {
  const { cost, held, overrun } = entry;
  const amounts = amountsOf(entry);
  const sum = amounts.reduce((sum, { amount }) => sum + amount, 0n);
  return {
    state: "ended",
    ...requestNames(entry, keyName),
    status: entry.status,
    ending: entry.ending,
    attempts: entry.attempts,
    attempt_list: entry.details?.attempts ?? [],
    skipped: entry.details?.skipped ?? [],
    upstream_request_id: requestIdOf(entry.details) ?? null,
    reason: entry.details?.reason ?? null,
    why: whyText(entry, keyName) ?? null,
    dropped: entry.details?.dropped ?? [],
    max_tokens: entry.details?.max_tokens ?? null,
    requested_max_tokens: entry.details?.requested_max_tokens ?? null,
    user: entry.details?.user ?? null,
    tags: entry.details?.tags ?? [],
    first_ms: entry.firstMs ?? null,
    total_ms: entry.totalMs,
    images: entry.images,
    image_sizes: entry.details?.image_sizes ?? null,
    service_tier: entry.details?.service_tier ?? null,
    context_tier: entry.details?.context_tier ?? null,
    price_window: entry.details?.price_window ?? null,
    tokens: entry.tokens,
    affinity: entry.details?.affinity ?? null,
    cache_saved_usd: savedByCache(entry),
    source: entry.source,
    price_version: entry.priceVersion ?? null,
    lines: amounts.map(({ name, count, price, amount }) => ({
      class: name,
      tokens: count,
      price_usd: formatUsd(parseUsd(price)),
      factor: entry.sheet?.factor ?? "1",
      amount_usd: formatUsd(amount),
    })),
    sum_usd: formatUsd(sum),
    held_usd: formatUsd(held),
    released_usd: formatUsd(held > cost ? held - cost : 0n),
    overrun_usd: formatUsd(overrun),
    charged_usd: formatUsd(cost),
    upstream_usd: entry.details?.upstream_usd ?? null,
    why_free: whyFree(entry, sum),
    adds_up: sum === cost + overrun,
  };
}

/** Returns the upstream's id of the attempt that succeeded. */
function requestIdOf({ request_id, attempts }: EntryDetails = {}): string | undefined {
  return request_id ?? attempts?.findLast(({ outcome }) => outcome === "success")?.request_id;
}

/** Returns what the prompt cache saved, negative if it cost more; `null` if it was not used. */
function savedByCache({ sheet, tokens }: KeptEntry): string | null {
  const used = (["input_cache_read", "input_cache_write_5m", "input_cache_write_1h"] as const)
    .filter((name) => tokens[name] > 0);
  if (sheet === undefined || used.length === 0) return null;
  const prices = unitPrices(sheet);
  return formatUsd(used.reduce((sum, name) => sum + BigInt(tokens[name]) * (prices.prompt - prices[name]), 0n));
}

/** Returns the cost of each class of tokens and of each extra, without those that were not used. */
function amountsOf(
  { sheet, tokens, details }: KeptEntry,
): { name: string; count: number; price: string; amount: Amount }[] {
  if (sheet === undefined) return [];
  const prices = unitPrices(sheet);
  const all = PRICE_CLASSES.map((name) => {
    const count = tokens[name];
    return { name: name as string, count, price: sheet[name], amount: BigInt(count) * prices[name] };
  });
  for (const extra of details?.extras ?? []) {
    const { item: name, count, price } = extra;
    all.push({ name, count, price, amount: costOfExtras([extra], sheet) });
  }
  return all.filter(({ count }) => count > 0);
}

function explainHold(hold: Hold, keyName: string | undefined): RunningRequest {
  return {
    state: "running",
    id: `req_${hold.id}`,
    at: new Date(hold.at).toISOString(),
    key: keyName ?? hold.keyId,
    key_id: hold.keyId,
    group: hold.group,
    model: hold.model,
    endpoint: hold.endpoint,
    held_usd: formatUsd(hold.amount),
  };
}

/** Says in one clause why a request cost nothing; `null` if it cost something. */
function whyFree({ cost, ending, source }: KeptEntry, sum: Amount): string | null {
  if (cost !== 0n) return null;
  switch (ending) {
    case "refused":
      return "it was refused before any upstream was asked";
    case "failed":
      return "it failed, and failed requests are not charged";
    case "lost":
      return "the process ended before the request did";
  }
  if (ending === "done" && source === "none") return "it repeated a request with the same Idempotency-Key";
  if (ending === "client_disconnected" && source === "none") {
    return "the client disconnected before it received any of the answer";
  }
  if (sum === 0n && source !== "none") return "its tokens are free at these prices";
  return "there was nothing to charge";
}
