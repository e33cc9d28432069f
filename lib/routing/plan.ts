/**
 * Plans the order in which targets are tried. It has no state: random numbers and facts about targets are parameters.
 */
import { compareValues } from "../compare_values.ts";
import type { Model, Target } from "../catalog/model.ts";
import type { TargetSpeed } from "./health.ts";
import { NO_PREFERENCES, type ProviderPreferences, type SortBy } from "./preferences.ts";

/** A model and one of its targets. */
export interface Choice {
  model: Model;
  target: Target;
}

/** Facts about a target. */
export interface TargetFacts extends TargetSpeed {
  /** Names that clients may use for the upstream. */
  slugs: readonly string[];
  /** True if the target can be tried now. */
  isUp: boolean;
  /** True if the target speaks the client's protocol. */
  isNative: boolean;
  /** True if the target can read the signatures in the prompt. */
  isIssuer: boolean;
  /**
   * True if the target answered the last request of the conversation, so that its prompt cache has the conversation.
   */
  isWarm: boolean;
}

/** Parameters of a plan. */
export interface PlanParts {
  /** Models that may answer, the requested one first, each with its price per token in 1e-12 USD. */
  models: readonly { model: Model; price: { prompt: bigint; completion: bigint } }[];
  preferences?: ProviderPreferences;
  facts: (target: Target) => TargetFacts;
  /** Returns a number from 0 to less than 1: a random one, or a fixed one for a conversation and the target. */
  draw: (target: Target) => number;
}

/** A choice with the facts that decide its position. */
interface Ranked extends Choice {
  facts: TargetFacts;
  price: { prompt: bigint; completion: bigint };
}

/**
 * Orders the choices, best first: model by model, unless the client wants all models sorted together. Within a model
 * these rules apply, one after another:
 * 1. the client's `order`;
 * 2. targets that are up;
 * 3. targets that meet the client's preferences of speed;
 * 4. the client's `sort`, unless it has an `order`;
 * 5. the priority;
 * 6. targets that can read the signatures in the prompt;
 * 7. targets that have the conversation in their cache;
 * 8. a random order by weight, in which targets of the client's protocol come first among equal weights. Targets of
 *    weight 0 come last.
 */
export function planChoices({ models, preferences = NO_PREFERENCES, facts, draw }: PlanParts): Choice[] {
  const byModel = models.map(({ model, price }) => {
    const ranked = shuffle(model.targets.map((target) => ({ model, target, price, facts: facts(target) })), draw);
    const wanted = ranked.filter((choice) => isWanted(choice, preferences)).sort(comparator(preferences));
    // Without fallbacks, one target of each model is left, unless the client names an order.
    return preferences.allowFallbacks || preferences.order !== undefined ? wanted : wanted.slice(0, 1);
  });
  const sortsAcrossModels = preferences.sort?.acrossModels === true && preferences.order === undefined;
  const choices = sortsAcrossModels ? byModel.flat().sort(comparator(preferences)) : byModel.flat();
  return choices.map(({ model, target }) => ({ model, target }));
}

function isWanted({ facts: { slugs } }: Ranked, { only, ignore, order, allowFallbacks }: ProviderPreferences): boolean {
  if (only !== undefined && !slugs.some((slug) => only.has(slug))) return false;
  if (ignore !== undefined && slugs.some((slug) => ignore.has(slug))) return false;
  return allowFallbacks || order === undefined || slugs.some((slug) => order.includes(slug));
}

type Comparator = (a: Ranked, b: Ranked) => number;

/**
 * Returns a comparator with the rules of `planChoices`. Sorting is stable, so equal choices keep their random order.
 */
function comparator(preferences: ProviderPreferences): Comparator {
  const rules: Comparator[] = [
    by(({ facts: { slugs } }) => positionIn(preferences.order, slugs)),
    by(({ facts: { isUp } }) => isUp ? 0 : 1),
    by(({ facts }) => meets(preferences, facts) ? 0 : 1),
  ];
  if (preferences.order === undefined && preferences.sort !== undefined) rules.push(bySort(preferences.sort.by));
  rules.push(
    by(({ target: { priority } }) => priority),
    by(({ facts: { isIssuer } }) => isIssuer ? 0 : 1),
    by(({ facts: { isWarm } }) => isWarm ? 0 : 1),
  );
  return (a, b) => {
    for (const rule of rules) {
      const order = rule(a, b);
      if (order !== 0) return order;
    }
    return 0;
  };
}

function by(rank: (choice: Ranked) => number): Comparator {
  return (a, b) => compareValues(rank(a), rank(b));
}

function positionIn(order: readonly string[] | undefined, slugs: readonly string[]): number {
  const position = order?.findIndex((slug) => slugs.includes(slug)) ?? -1;
  return position === -1 ? Infinity : position;
}

/** Returns whether a target meets the preferences of speed. A target that was never measured does. */
function meets({ minThroughput, maxLatency }: ProviderPreferences, facts: TargetFacts): boolean {
  return minThroughput.every(({ share, value }) => (facts.tokensPerSecond(share) ?? value) >= value) &&
    maxLatency.every(({ share, value }) => (facts.firstMs(share) ?? 0) <= value * 1000);
}

/** Returns the comparator of the client's `sort`. Targets of unknown speed come last. */
function bySort(sort: SortBy): Comparator {
  switch (sort) {
    case "price":
      return (a, b) => compareValues(a.price.prompt + a.price.completion, b.price.prompt + b.price.completion);
    case "latency":
      return by(({ facts }) => facts.firstMs(0.5) ?? Infinity);
    case "throughput":
      return by(({ facts }) => -(facts.tokensPerSecond(0.5) ?? -Infinity));
  }
}

/**
 * Orders choices at random, as if drawn by weight without replacement. Each gets an exponentially distributed time with
 * its weight as the rate, and the earliest comes first (Efraimidis and Spirakis, 2006). Among choices of equal priority
 * and weight, those of the client's protocol get the first of their positions.
 */
function shuffle(choices: readonly Ranked[], draw: PlanParts["draw"]): Ranked[] {
  const timeOf = ({ target }: Ranked) => target.weight === 0 ? Infinity : -Math.log(1 - draw(target)) / target.weight;
  const times = new Map(choices.map((choice) => [choice, timeOf(choice)]));
  const drawn = choices.toSorted(by((choice) => times.get(choice) ?? Infinity));
  const nativeFirst = by(({ facts: { isNative } }) => isNative ? 0 : 1);
  const groupOf = (choice: Ranked) => `${choice.target.priority} ${choice.target.weight}`;
  const groups = Map.groupBy(drawn, groupOf);
  for (const group of groups.values()) group.sort(nativeFirst).reverse();
  return drawn.flatMap((choice) => groups.get(groupOf(choice))?.pop() ?? []);
}
