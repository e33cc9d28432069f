/** In which order targets are asked. Pure: the random numbers, and what is known of targets, are handed in. */
import type { Model, Target } from "../catalog/model.ts";
import { NO_PREFERENCES, type ProviderPreferences, type SpeedPreference } from "./preferences.ts";

/** A model, and one of the places where it runs. */
export interface Choice {
  model: Model;
  target: Target;
}

/** What is known of a target. */
export interface TargetFacts {
  /** What clients may call its upstream. */
  slugs: readonly string[];
  /** Whether it could be asked now. */
  isUp: boolean;
  /** Whether it is spoken to in the client's own protocol. */
  isNative: boolean;
  /** Whether it can read the signatures in the prompt. */
  isIssuer: boolean;
  /** Milliseconds to the first event, and tokens per second, that this share of its requests does not fall short of. */
  firstMs(share: number): number | undefined;
  tokensPerSecond(share: number): number | undefined;
}

/** What a plan is made of. */
export interface PlanParts {
  /** The models that may answer, the one that was asked for first, each with its price per token in 1e-12 USD. */
  models: readonly { model: Model; price: { prompt: bigint; completion: bigint } }[];
  wishes?: ProviderPreferences;
  facts: (target: Target) => TargetFacts;
  /** Numbers from 0 up to, not including, 1. */
  random: () => number;
}

/** A choice with what decides about its place. */
interface Ranked extends Choice {
  facts: TargetFacts;
  price: { prompt: bigint; completion: bigint };
}

/**
 * The choices, best first: model by model, unless the client wants them sorted together. Those of a model go by the
 * client's `order`, then by whether they can be asked and meet what it prefers, then by its `sort` or else by priority;
 * among equal ones whoever can read the prompt's signatures, then by chance in proportion to weights, and of equal
 * weights those of the client's protocol. A target of weight 0 goes after every other of its priority.
 */
export function planChoices({ models, wishes = NO_PREFERENCES, facts, random }: PlanParts): Choice[] {
  const byModel = models.map(({ model, price }) => {
    const ranked = shuffle(model.targets.map((target) => ({ model, target, price, facts: facts(target) })), random);
    return primaryOf(ranked.filter((choice) => isWanted(choice, wishes)).sort(comparator(wishes)), wishes);
  });
  const together = wishes.sort?.acrossModels === true && wishes.order === undefined;
  const choices = together ? byModel.flat().sort(comparator(wishes)) : byModel.flat();
  return choices.map(({ model, target }) => ({ model, target }));
}

function isWanted({ facts: { slugs } }: Ranked, { only, ignore, order, allowFallbacks }: ProviderPreferences): boolean {
  if (only !== undefined && !slugs.some((slug) => only.has(slug))) return false;
  if (ignore !== undefined && slugs.some((slug) => ignore.has(slug))) return false;
  return allowFallbacks || order === undefined || slugs.some((slug) => order.includes(slug));
}

/** Without an order, a client that wants no other gets the first of each model alone. */
function primaryOf(choices: Ranked[], { allowFallbacks, order }: ProviderPreferences): Ranked[] {
  return allowFallbacks || order !== undefined ? choices : choices.slice(0, 1);
}

type Comparator = (a: Ranked, b: Ranked) => number;

/** Sorting is stable, so that what is equal stays as chance has put it. */
function comparator(wishes: ProviderPreferences): Comparator {
  const rules: Comparator[] = [
    by(({ facts: { slugs } }) => placeIn(wishes.order, slugs)),
    by(({ facts: { isUp } }) => isUp ? 0 : 1),
    by(({ facts }) => meets(wishes, facts) ? 0 : 1),
  ];
  if (wishes.order === undefined && wishes.sort !== undefined) rules.push(bySort(wishes.sort.by));
  rules.push(by(({ target: { priority } }) => priority), by(({ facts: { isIssuer } }) => isIssuer ? 0 : 1));
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

function placeIn(order: readonly string[] | undefined, slugs: readonly string[]): number {
  const place = order?.findIndex((slug) => slugs.includes(slug)) ?? -1;
  return place === -1 ? Infinity : place;
}

/** What nobody has measured is given a chance. */
function meets({ minThroughput, maxLatency }: ProviderPreferences, facts: TargetFacts): boolean {
  const all = (wish: SpeedPreference, holds: (at: SpeedPreference[number]) => boolean) => wish.every(holds);
  return all(minThroughput, ({ share, value }) => (facts.tokensPerSecond(share) ?? value) >= value) &&
    all(maxLatency, ({ share, value }) => (facts.firstMs(share) ?? 0) <= value * 1000);
}

/** Whose speed is not known goes after those whose is. */
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

/** Draws without putting back; of equal weights, the client's own protocol takes the places that were drawn first. */
function shuffle(choices: readonly Ranked[], random: () => number): Ranked[] {
  const left = [...choices];
  const drawn: Ranked[] = [];
  while (left.length > 0) {
    const total = left.reduce((sum, { target: { weight } }) => sum + weight, 0);
    let point = random() * total;
    const at = left.findIndex(({ target: { weight } }) => (point -= weight) < 0);
    drawn.push(...left.splice(Math.max(0, at), 1));
  }
  const native = by(({ facts: { isNative } }) => isNative ? 0 : 1);
  const equals = (choice: Ranked) => `${choice.target.priority} ${choice.target.weight}`;
  const byWeight = Map.groupBy(drawn, equals);
  for (const group of byWeight.values()) group.sort(native).reverse();
  return drawn.flatMap((choice) => byWeight.get(equals(choice))?.pop() ?? []);
}
