/** What a prompt says beside the conversation: sampling, reasoning, the form of the answer, who asks. */
import { createHash } from "node:crypto";
import { type Effort, EFFORTS, type Prompt, type Reasoning } from "../canonical/types.ts";
import type { Json, JsonObject } from "../../json/mod.ts";
import { listOf, objectOf, present } from "../members.ts";
import { ownMembers, type ResponsesWriteContext } from "./write_context.ts";

const ENCRYPTED = "reasoning.encrypted_content";
const LOGPROBS = "message.output_text.logprobs";

/** Most characters of an end user's id. */
const USER_CHARACTERS = 64;

/** Efforts by the budget they stand for, in tokens: each up to, but not with, its bound. */
const BUDGETS: readonly (readonly [below: number, effort: Effort])[] = [
  [2_048, "low"],
  [8_192, "medium"],
  [24_576, "high"],
  [Infinity, "xhigh"],
];

/** Sampling knobs that the protocol and the model have; the others are named. */
export function writeSampling({ sampling, stop }: Prompt, { own, target, names }: ResponsesWriteContext): JsonObject {
  const { temperature, topP, topK, frequencyPenalty, presencePenalty, seed, logitBias, topLogprobs } = sampling;
  const { dropped, row } = target;
  const taken = (name: string): boolean => {
    const known = row.supported_parameters.includes(name);
    if (!known) dropped.add(name);
    return known;
  };
  // The penalties are Open Responses' own; OpenAI's service refuses them.
  const penalty = (name: string): boolean => {
    if (own) return taken(name);
    dropped.add(name);
    return false;
  };
  if (topK !== undefined) dropped.add("top_k");
  if (seed !== undefined) dropped.add("seed");
  if (logitBias !== undefined) dropped.add("logit_bias");
  if (stop.length > 0) dropped.add(names.stop);
  return {
    ...(temperature !== undefined && taken("temperature") && { temperature }),
    ...(topP !== undefined && taken("top_p") && { top_p: topP }),
    ...(frequencyPenalty !== undefined && penalty("frequency_penalty") && { frequency_penalty: frequencyPenalty }),
    ...(presencePenalty !== undefined && penalty("presence_penalty") && { presence_penalty: presencePenalty }),
    ...(topLogprobs !== undefined && taken("top_logprobs") && { top_logprobs: topLogprobs }),
  };
}

/**
 * What the answer is to hold beside its text. Nothing is stored, so reasoning must come with its token; a model that
 * does not reason refuses to be asked for it.
 */
export function writeInclude(
  { sampling, reasoning, unknownMembers }: Prompt,
  { own, target }: ResponsesWriteContext,
): JsonObject {
  const encrypted = own ? reasoning?.encrypted === true : target.row.reasoning !== undefined;
  const logprobs = sampling.logprobs === true;
  const known = !logprobs || target.row.supported_parameters.includes("logprobs");
  if (!known) target.dropped.add("logprobs");
  const include: Json[] = [
    ...(encrypted ? [ENCRYPTED] : []),
    ...(logprobs && known ? [LOGPROBS] : []),
    ...listOf(ownMembers(unknownMembers).include),
  ];
  return include.length === 0 ? {} : { include };
}

/** How much to think, and whether to show it. */
export function writeReasoning(
  reasoning: Reasoning | undefined,
  prompt: Prompt,
  context: ResponsesWriteContext,
): JsonObject {
  if (reasoning === undefined) return {};
  if (!context.own && context.target.row.reasoning === undefined) {
    // A model that cannot think is not thinking already.
    if (reasoning.mode !== "off" && reasoning.effort !== "none") context.target.dropped.add(context.names.effort);
    return {};
  }
  const members = context.own ? writeOwnReasoning(reasoning) : present({
    effort: writeEffort(reasoning, context),
    summary: showsReasoning(reasoning, prompt) ? "auto" : undefined,
  });
  return Object.keys(members).length === 0 ? {} : { reasoning: members };
}

/** The form of the answer, and how wordy it is. */
export function writeText(
  { format, unknownMembers }: Prompt,
  { own, target, names }: ResponsesWriteContext,
): JsonObject {
  const text: JsonObject = { ...objectOf(ownMembers(unknownMembers).text) };
  if (typeof text.verbosity === "string" && !target.row.supported_parameters.includes("verbosity")) {
    target.dropped.add(names.verbosity);
    delete text.verbosity;
  }
  if (format?.type === "json_schema") {
    const { name, schema, description } = format;
    const strict = format.strict ?? (own ? undefined : false);
    text.format = { type: "json_schema", name: name ?? "output", schema, ...present({ description, strict }) };
  } else if (format !== undefined) {
    text.format = { type: format.type };
  }
  return Object.keys(text).length === 0 ? {} : { text };
}

/**
 * Who asks. The protocol limits ids in length: longer ones are hashed, the same to the same. The one id that messages
 * clients send names their session, which is what prompts share a cache by.
 */
export function writeUser({ user, protocol, unknownMembers }: Prompt, { own }: ResponsesWriteContext): JsonObject {
  if (user === undefined) return {};
  // The client may have said the same under the newer name only, and that one is in the rest.
  if (own) return ownMembers(unknownMembers).safety_identifier === user ? {} : { user };
  const id = user.length <= USER_CHARACTERS ? user : createHash("sha256").update(user).digest("hex");
  return { safety_identifier: id, ...(protocol === "messages" && { prompt_cache_key: id }) };
}

/** Members of this protocol that the canonical form does not model. Those of another one mean nothing here. */
export function writeUnknownMembers({ unknownMembers }: Prompt, { target }: ResponsesWriteContext): JsonObject {
  if (unknownMembers === undefined) return {};
  if (unknownMembers.from !== "responses") {
    for (const name of Object.keys(unknownMembers.members)) target.dropped.add(name);
    return {};
  }
  const { include: _include, text: _text, ...members } = unknownMembers.members;
  return members;
}

function writeOwnReasoning({ mode, budgetTokens, effort, display, unknownMembers }: Reasoning): JsonObject {
  return {
    ...present({
      enabled: mode === "off" ? false : undefined,
      max_tokens: budgetTokens,
      effort,
      summary: display === undefined ? undefined : "auto",
    }),
    ...ownMembers(unknownMembers),
  };
}

/** Clients of messages see thinking only where they switched it on, those of chat wherever they asked for any. */
function showsReasoning({ mode, effort, display }: Reasoning, { protocol }: Prompt): boolean {
  if (display === "omitted" || mode === "off" || effort === "none") return false;
  return protocol === "chat" || display !== undefined || mode !== undefined;
}

/**
 * The effort that says what was asked; nothing where the model shall decide, as it does when nothing is said. A depth
 * that the model does not have becomes the next one below it, else its least. Thinking less than asked is one thing, not
 * thinking at all another.
 */
function writeEffort(
  { mode, budgetTokens, effort }: Reasoning,
  { target, names }: ResponsesWriteContext,
): Effort | undefined {
  const wanted = mode === "off"
    ? "none"
    : effort ?? (budgetTokens === undefined ? undefined : BUDGETS.find(([below]) => budgetTokens < below)?.[1]);
  if (wanted === undefined) return undefined;
  const known = EFFORTS.filter((candidate) => target.row.reasoning?.efforts.includes(candidate));
  if (known.includes(wanted)) return wanted;
  const some = known.filter((candidate) => candidate !== "none");
  const nearest = some.findLast((candidate) => EFFORTS.indexOf(candidate) < EFFORTS.indexOf(wanted)) ?? some[0];
  if (wanted === "none") target.dropped.add(names.off);
  else if (effort !== undefined) target.dropped.add(names.effort);
  return nearest;
}
