/** Entries of the demo's ledger, with the prices and sums that the gateway would have made. */
import { computeCharge, pricesAt } from "../../lib/billing/price.ts";
import { outputTokens } from "../../lib/billing/image_tokens.ts";
import { formatUsd } from "../../lib/billing/money.ts";
import { costAtTarget } from "../../lib/billing/extras.ts";
import type { Model } from "../../lib/catalog/model.ts";
import { NO_TOKENS } from "../../lib/store/days.ts";
import type { BilledTokens, Ending, Entry, EntryAttempt, EntryReason } from "../../lib/store/ledger.ts";
import type { Random } from "../support/random.ts";
import { attributionOf, type DemoClient, hasBudget, keyIdOf } from "./clients.ts";

/** One request before its outcome is known. */
export interface DemoRequest {
  id: string;
  /** Arrival, Unix time in milliseconds. */
  at: number;
  client: DemoClient;
  model: Model;
  /** Price factor of the client's group. */
  factor: string;
}

/** An outcome without a charge. */
export interface Failure {
  status: number;
  reason: EntryReason;
  totalMs: number;
  attempts?: readonly EntryAttempt[];
}

/** Output tokens per second of a model, and milliseconds to its first event. */
const SPEEDS: Readonly<Record<string, readonly [perSecond: number, firstMs: number]>> = {
  "borealis/atlas-2": [70, 620],
  "borealis/atlas-2-mini": [140, 310],
  "meridian/lyra-3": [55, 880],
  "meridian/lyra-3-small": [120, 420],
  "open/kestrel-70b": [90, 270],
};

/** Maximum number of tokens of output that the demo's requests ask for. */
const MAX_OUTPUT = 8192;

/** A number around a median, log-normal: most are within a factor of two, a few are far above. */
export function around(median: number, { next }: Random, spread = 0.5): number {
  const normal = Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next());
  return median * Math.exp(spread * normal);
}

/** An entry of a request that was answered. @param slow times that it took longer than usual */
export function answeredEntry(
  request: DemoRequest,
  random: Random,
  { slow = 1, attempts = [], left = false }: { slow?: number; attempts?: readonly EntryAttempt[]; left?: boolean } = {},
): Entry {
  const { client, model } = request;
  if (client.endpoint === "images.generations") return imageEntry(request, random);
  const tokens = tokensOf(client, random);
  const [perSecond = 100, first = 90] = SPEEDS[model.id] ?? [];
  const tried = attempts.reduce((sum, { ms }) => sum + ms, 0);
  const firstMs = tried + around(first * slow, random, 0.35);
  const totalMs = firstMs + tokens.completion * 1000 / around(perSecond / slow, random, 0.2);
  const ending: Ending = left
    ? "client_disconnected"
    : client.input > 20_000 && random.chance(0.6)
    ? "tool_use"
    : "end";
  return charged(request, random, {
    ending,
    status: left ? 499 : 200,
    tokens,
    source: left ? "counted" : "upstream",
    firstMs: Math.round(firstMs),
    totalMs: Math.round(totalMs),
    attempts,
  });
}

function tokensOf({ input, output, cached }: DemoClient, random: Random): BilledTokens {
  const all = Math.max(8, Math.round(around(input, random)));
  const read = Math.round(all * cached * (0.8 + random.next() * 0.2));
  const completion = output === 0 ? 0 : Math.min(MAX_OUTPUT, Math.max(1, Math.round(around(output, random, 0.7))));
  const reasoning = output > 600 ? Math.round(completion * 0.4 * random.next()) : 0;
  return { ...NO_TOKENS, prompt: all - read, input_cache_read: read, completion, reasoning };
}

function imageEntry(request: DemoRequest, random: Random): Entry {
  const size = random.pick(["1024x1024", "1024x1024", "1536x1024"]);
  const [width = 0, height = 0] = size.split("x").map(Number);
  const images = random.pick([1, 1, 2, 4]);
  const entry = charged(request, random, {
    ending: "done",
    status: 200,
    tokens: { ...NO_TOKENS, prompt: 20 + random.below(120), completion: images * outputTokens({ width, height }) },
    source: "formula",
    firstMs: Math.round(around(9_000, random, 0.3)),
    totalMs: Math.round(around(14_000, random, 0.3)),
    attempts: [],
  });
  const delivered = Array.from({ length: images }, () => size);
  return { ...entry, images, details: { ...entry.details, image_sizes: { asked: size, delivered } } };
}

function charged(
  { id, at, client, model, factor }: DemoRequest,
  random: Random,
  { attempts, firstMs, totalMs, ...answer }:
    & Pick<Entry, "ending" | "status" | "tokens" | "source" | "totalMs">
    & { firstMs: number; attempts: readonly EntryAttempt[] },
): Entry {
  const { tokens } = answer;
  const sheet = pricesAt(model, { factor, now: at }).sheet;
  const most = { ...tokens, prompt: tokens.prompt + 200, completion: Math.max(MAX_OUTPUT, tokens.completion) };
  const held = hasBudget(client) ? computeCharge({ tokens: most, sheet, held: 0n }).cost : 0n;
  const target = model.targets[attempts.length > 0 ? 1 : 0] ?? model.targets[0];
  const upstreamCost = target === undefined ? undefined : costAtTarget(target, { tokens }, { at });
  const tried: EntryAttempt[] = attempts.length === 0 ? [] : [
    ...attempts,
    { upstream: target?.upstream ?? "", model: model.id, outcome: "success", ms: firstMs },
  ];
  const details = {
    ...attributionOf(client, random.below),
    ...(tried.length > 0 && { attempts: tried }),
    ...(upstreamCost !== undefined && { upstream_usd: formatUsd(upstreamCost) }),
  };
  return {
    ...common({ id, at, client, model }),
    ...answer,
    upstream: target?.upstream ?? "",
    sheet,
    ...computeCharge({ tokens, sheet, held }),
    held,
    firstMs,
    totalMs: Math.max(firstMs, totalMs),
    attempts: Math.max(1, tried.length),
    images: 0,
    details,
  };
}

/** An entry of a request that failed, or was refused before any upstream was asked. */
export function failedEntry(
  { id, at, client, model }: Omit<DemoRequest, "factor">,
  { status, reason, totalMs, attempts }: Failure,
  random: Random,
): Entry {
  const requested = attempts?.at(-1)?.upstream;
  return {
    ...common({ id, at, client, model }),
    upstream: requested ?? "",
    status,
    ending: requested === undefined ? "refused" : "failed",
    tokens: NO_TOKENS,
    source: "none",
    cost: 0n,
    held: 0n,
    overrun: 0n,
    totalMs: Math.round(totalMs),
    attempts: attempts?.length ?? 0,
    images: 0,
    details: { reason, ...(attempts !== undefined && { attempts }), ...attributionOf(client, random.below) },
  };
}

function common(
  { id, at, client, model }: Omit<DemoRequest, "factor">,
): Pick<Entry, "id" | "at" | "keyId" | "group" | "model" | "endpoint"> {
  return { id, at, keyId: keyIdOf(client), group: client.group, model: model.id, endpoint: client.endpoint };
}
