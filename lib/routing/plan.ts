/** Plans the order in which targets are asked. Pure: drawn numbers and facts about targets are parameters. */
import type { Model, Target } from "../catalog/model.ts";
import { NO_PREFERENCES, type ProviderPreferences, type SpeedPreference } from "./preferences.ts";

/** A model and one of its targets. */
export interface Choice {
  model: Model;
  target: Target;
}

/** Facts about a target. */
export interface TargetFacts {
  /** Names that clients may give its upstream. */
  slugs: readonly string[];
  /** True if the target can be tried now. */
  isUp: boolean;
  /** True if the target speaks the client's protocol. */
  isNative: boolean;
  /** True if the target can read the signatures in the prompt. */
  isIssuer: boolean;
  /** True if the target answered the last request of the conversation, and has its start in its prompt cache. */
  isWarm: boolean;
  /** Milliseconds to the first event, and tokens per second, that this share of its requests meets. */
  firstMs(share: number): number | undefined;
  tokensPerSecond(share: number): number | undefined;
}

/** Parts of a plan. */
export interface PlanParts {
  /** Models that may answer, the requested one first, each with its price per token in 1e-12 USD. */
  models: readonly { model: Model; price: { prompt: bigint; completion: bigint } }[];
  preferences?: ProviderPreferences;
  facts: (target: Target) => TargetFacts;
  /** Returns a number from 0 up to, not including, 1: a random one, or that of a conversation and the target. */
  draw: (target: Target) => number;
}

/** A choice with the facts that decide about its position. */
interface Ranked extends Choice {
  facts: TargetFacts;
  price: { prompt: bigint; completion: bigint };
}

/**
 * Orders the choices, best first: model by model, unless the client wants them sorted together. Within a model the
 * client's `order` decides first, then whether a target is up and meets the preferences, then the client's `sort` or else
 * the priority. Equal targets are ordered by whether they can read the prompt's signatures, whether they have the
 * conversation in their cache, then as they are drawn by weight, and of equal weights those of the client's protocol come
 * first. A target of weight 0 comes last in its priority.
 */
export function planChoices({ models, preferences = NO_PREFERENCES, facts, draw }: PlanParts): Choice[] {
  const byModel = models.map(({ model, price }) => {
    const ranked = shuffle(model.targets.map((target) => ({ model, target, price, facts: facts(target) })), draw);
    return primaryOf(
      ranked.filter((choice) => isWanted(choice, preferences)).sort(comparator(preferences)),
      preferences,
    );
  });
  const acrossModels = preferences.sort?.acrossModels === true && preferences.order === undefined;
  const choices = acrossModels ? byModel.flat().sort(comparator(preferences)) : byModel.flat();
  return choices.map(({ model, target }) => ({ model, target }));
}

function isWanted({ facts: { slugs } }: Ranked, { only, ignore, order, allowFallbacks }: ProviderPreferences): boolean {
  if (only !== undefined && !slugs.some((slug) => only.has(slug))) return false;
  if (ignore !== undefined && slugs.some((slug) => ignore.has(slug))) return false;
  return allowFallbacks || order === undefined || slugs.some((slug) => order.includes(slug));
}

/** Without an order, a client that allows no fallbacks gets only the first target of each model. */
function primaryOf(choices: Ranked[], { allowFallbacks, order }: ProviderPreferences): Ranked[] {
  return allowFallbacks || order !== undefined ? choices : choices.slice(0, 1);
}

type Comparator = (a: Ranked, b: Ranked) => number;

/** Sorting is stable, so equal choices keep their random order. */
function comparator(preferences: ProviderPreferences): Comparator {
  const rules: Comparator[] = [
    by(({ facts: { slugs } }) => positionIn(preferences.order, slugs)),
    by(({ facts: { isUp } }) => isUp ? 0 : 1),
    by(({ facts }) => meets(preferences, facts) ? 0 : 1),
  ];
  if (preferences.order === undefined && preferences.sort !== undefined) rules.push(bySort(preferences.sort.by));
  rules.push(by(({ target: { priority } }) => priority), by(({ facts: { isIssuer } }) => isIssuer ? 0 : 1));
  rules.push(by(({ facts: { isWarm } }) => isWarm ? 0 : 1));
  return (a, b) => {
    for (const rule of rules) {
      const order = rule(a, b);
      if (order !== 0) return order;
    }
    return 0;
  };
}

function by(rank: (choice: Ranked) => number): Comparator {
  return (a, b) => {
    const [one, other] = [rank(a), rank(b)];
    return one < other ? -1 : one > other ? 1 : 0;
  };
}

function positionIn(order: readonly string[] | undefined, slugs: readonly string[]): number {
  const position = order?.findIndex((slug) => slugs.includes(slug)) ?? -1;
  return position === -1 ? Infinity : position;
}

/** A target that was never measured passes. */
function meets({ minThroughput, maxLatency }: ProviderPreferences, facts: TargetFacts): boolean {
  const all = (preference: SpeedPreference, holds: (at: SpeedPreference[number]) => boolean) => preference.every(holds);
  return all(minThroughput, ({ share, value }) => (facts.tokensPerSecond(share) ?? value) >= value) &&
    all(maxLatency, ({ share, value }) => (facts.firstMs(share) ?? 0) <= value * 1000);
}

/** Targets whose speed is not known come last. */
function bySort(sort: "price" | "latency" | "throughput"): Comparator {
  switch (sort) {
    case "price":
      return (a, b) => compare(a.price.prompt + a.price.completion, b.price.prompt + b.price.completion);
    case "latency":
      return by(({ facts }) => facts.firstMs(0.5) ?? Infinity);
    case "throughput":
      return by(({ facts }) => -(facts.tokensPerSecond(0.5) ?? -Infinity));
  }
}

function compare(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/**
 * Orders choices as if they were drawn by weight without replacement: each gets an exponentially distributed time with its
 * weight as the rate, the soonest comes first (Efraimidis and Spirakis, 2006). Of equal weights, choices of the client's
 * own protocol take the first positions.
 */
function shuffle(choices: readonly Ranked[], draw: PlanParts["draw"]): Ranked[] {
  const times = new Map(choices.map((choice) => [choice, timeOf(choice.target, draw)]));
  const sorted = choices.toSorted(by((choice) => times.get(choice) ?? Infinity));
  const native = by(({ facts: { isNative } }) => isNative ? 0 : 1);
  const equals = (choice: Ranked) => `${choice.target.priority} ${choice.target.weight}`;
  const byWeight = Map.groupBy(sorted, equals);
  for (const group of byWeight.values()) group.sort(native).reverse();
  return sorted.flatMap((choice) => byWeight.get(equals(choice))?.pop() ?? []);
}

function timeOf(target: Target, draw: PlanParts["draw"]): number {
  return target.weight === 0 ? Infinity : -Math.log(1 - draw(target)) / target.weight;
}
