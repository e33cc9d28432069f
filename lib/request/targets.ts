/** Plans the targets of a request, and returns their time limits. */
import type { Prompt } from "../protocols/canonical/types.ts";
import type { Model, Target } from "../catalog/model.ts";
import type { Config } from "../config.ts";
import type { Gateway } from "../gateway.ts";
import { unitPrices } from "../billing/price.ts";
import { drawOf } from "../routing/affinity.ts";
import { targetName } from "../routing/health.ts";
import { type Choice, planChoices, type TargetFacts } from "../routing/plan.ts";
import { NO_PREFERENCES, type ProviderPreferences } from "../routing/preferences.ts";
import { type Candidate, noTargetLeft, slugsOf } from "./candidates.ts";
import type { Conversation } from "./conversation.ts";

/** The parts of a gateway that choose targets. */
export type Routing = Pick<
  Gateway,
  "config" | "health" | "upstreams" | "observer" | "monotonic" | "now" | "random" | "log"
>;

/**
 * Returns the targets of the candidates, the best first.
 * @throws {GatewayError} `overloaded` if preferences leave none
 */
export function planTargets(
  candidates: readonly Candidate[],
  { gateway, preferences, key, findConversation }: {
    gateway: Routing;
    preferences: ProviderPreferences;
    key: string;
    /** Called only if there is a choice of targets. */
    findConversation: () => Conversation | undefined;
  },
): Choice[] {
  const [first, ...others] = candidates;
  if (first === undefined) return [];
  const [target, ...alternatives] = first.model.targets;
  // Most models have one target.
  if (target !== undefined && alternatives.length + others.length === 0 && preferences === NO_PREFERENCES) {
    return [{ model: first.model, target }];
  }
  const issuers = issuersIn(first.prompt);
  const conversation = findConversation();
  const choices = planChoices({
    models: candidates.map(({ model, sheet }) => ({ model, price: unitPrices(sheet) })),
    preferences,
    facts: (target) => factsOf(target, { gateway, client: first.prompt.protocol, issuers, key, conversation }),
    draw: conversation === undefined ? gateway.random : (target) => drawOf(conversation.id, target),
  });
  if (choices.length === 0) throw noTargetLeft("provider.only, ignore and order leave no upstream of this model");
  return choices;
}

function factsOf(
  target: Target,
  { gateway, client, issuers, key, conversation }: {
    gateway: Routing;
    client: Prompt["protocol"];
    issuers: ReadonlySet<string>;
    key: string;
    conversation: Conversation | undefined;
  },
): TargetFacts {
  const upstream = gateway.upstreams.get(target.upstream);
  return {
    ...plainFacts(target, { gateway, key }),
    isNative: (upstream?.protocolFor?.(client, target) ?? client) === client,
    isIssuer: upstream !== undefined && issuers.size > 0 && issuers.has(upstream.issuerOf(target)),
    isWarm: conversation?.warm !== undefined && conversation.warm === targetName(target),
  };
}

/** Returns the facts of a target for requests without a prompt, such as images. */
export function plainFacts(
  target: Target,
  { gateway: { config, health }, key }: { gateway: Pick<Gateway, "config" | "health">; key: string },
): TargetFacts {
  return {
    slugs: slugsOf(target.upstream, { config }),
    isUp: health.isUp(target, key),
    isNative: true,
    isIssuer: false,
    isWarm: false,
    ...health.speed(target),
  };
}

function issuersIn(prompt: Prompt): Set<string> {
  const issuers = new Set<string>();
  const { plain } = prompt;
  if (plain !== undefined) return plain.signatures === undefined ? issuers : issuers.add(plain.signatures.issuer);
  for (const { blocks } of prompt.messages) {
    for (const block of blocks) {
      if (block.type === "reasoning" && block.signature !== undefined) issuers.add(block.signature.issuer);
    }
  }
  return issuers;
}

/** Returns the time limit of a target for a whole answer, in milliseconds. */
export function targetMs({ model, target }: Pick<Choice, "model" | "target">, { upstreams, images }: Config): number {
  const row = upstreams[target.upstream];
  if (row === undefined || row.vendor === "embedded") return images.total_ms;
  return target.timeouts?.total_ms ?? model.timeouts?.total_ms ?? row.timeouts.total_ms;
}

/** Returns the longest time that a request can last, in milliseconds: the sum of the time limits of all its targets. */
export function longestMs(candidates: readonly { model: Model }[], config: Config): number {
  let ms = 0;
  for (const { model } of candidates) {
    for (const target of model.targets) ms += targetMs({ model, target }, config);
  }
  return ms;
}
