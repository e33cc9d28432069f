/** Members that only the client's own protocol knows: carried over if the target has an equivalent, else named. */
import { PARAMETER_NAMES } from "../canonical/parameter_names.ts";
import type { UnsupportedParameters } from "../canonical/unsupported_parameters.ts";
import type { ContentBlock, Message, Prompt, Protocol, Reasoning, Tool, UnknownMembers } from "../canonical/types.ts";
import { GatewayError } from "../../errors.ts";
import { isObject, type Json, type JsonObject } from "../../json/mod.ts";
import { mapEach, mapPrompt, withMessages } from "./map_blocks.ts";
import type { AdaptTarget } from "./adapt_target.ts";

/** Members of the body with the same name in both OpenAI protocols. */
const OPENAI = [
  "service_tier",
  "metadata",
  "prompt_cache_key",
  "prompt_cache_options",
  "prompt_cache_retention",
  "safety_identifier",
];

/** Members that are refused, because the answer would be wrong without them. */
const REFUSED: Readonly<Record<Protocol, readonly string[]>> = {
  chat: [],
  responses: [],
  messages: ["mcp_servers", "container", "thread", "fallbacks"],
  gemini: ["cachedContent", "continuationToken"],
};

type RestTarget = Pick<AdaptTarget, "protocol" | "dropped">;

/** Objects that only group members: their members are named, not the object. */
const WRAPPERS = new Set(["function", "custom", "image_url", "file", "item", "functionCall", "functionResponse"]);

/** Members of Gemini's body that only group others. */
const GROUPS = new Set(["generationConfig", "toolConfig", "functionCallingConfig"]);

/** Members without a meaning of their own, which are not named. */
const SILENT = new Set([
  "id",
  "index",
  "type",
  "role",
  "status",
  "object",
  "logprobs",
  "caller",
  "summary",
  "content",
  "additional_tools",
  // Schemas of a tool's result, which models get only at Google.
  "response",
  "responseJsonSchema",
]);

/**
 * Removes members and citations of other protocols than the target's.
 * @throws {GatewayError} `invalid`, for members without which the answer would be wrong
 */
export function* dropUnknownMembers(prompt: Prompt, target: RestTarget): Generator<void, Prompt> {
  const { dropped } = target;
  const { unknownMembers, reasoning } = prompt;
  const local = <T extends { unknownMembers?: UnknownMembers }>(value: T): T => localize(value, target);
  const localBlock = (block: ContentBlock): ContentBlock => dropCitations(local(block), target);
  const body = unknownMembers === undefined || unknownMembers.from === target.protocol
    ? unknownMembers
    : carryBody(unknownMembers, target);
  const thinking = reasoning && localReasoning(reasoning, target);
  const localized = yield* mapPrompt(prompt, localBlock);
  const messages = yield* mapEach<Message>(localized.messages, local);
  const tools = yield* mapEach<Tool>(localized.tools, local);
  if (thinking === reasoning && body === unknownMembers && tools === localized.tools) {
    return withMessages(localized, messages);
  }
  const { unknownMembers: _, reasoning: __, ...others } = localized;
  return {
    ...others,
    messages,
    tools,
    ...(thinking !== undefined && { reasoning: thinking }),
    ...(body !== undefined && { unknownMembers: body }),
  };

  function localReasoning(reasoning: Reasoning, { protocol }: RestTarget): Reasoning {
    if (reasoning.unknownMembers === undefined || reasoning.unknownMembers.from === protocol) return reasoning;
    const { unknownMembers, ...kept } = reasoning;
    for (const [name, value] of Object.entries(unknownMembers.members)) {
      if (!isNothing(value)) dropped.add(`${PARAMETER_NAMES[unknownMembers.from].reasoning}.${name}`);
    }
    return kept;
  }
}

function localize<T extends { unknownMembers?: UnknownMembers }>(value: T, { protocol, dropped }: RestTarget): T {
  if (value.unknownMembers === undefined || value.unknownMembers.from === protocol) return value;
  const { unknownMembers: _, ...kept } = value;
  nameMembers(value.unknownMembers.members, dropped);
  return kept as T;
}

function nameMembers(members: JsonObject, dropped: UnsupportedParameters): void {
  for (const [name, value] of Object.entries(members)) {
    if (isNothing(value) || SILENT.has(name)) continue;
    if (WRAPPERS.has(name) && isObject(value)) nameMembers(value, dropped);
    else dropped.add(name);
  }
}

function dropCitations(block: ContentBlock, { protocol, dropped }: RestTarget): ContentBlock {
  if (block.type !== "text" || block.citations === undefined) return block;
  const { citations, ...text } = block;
  const own = citations.filter(({ from }) => from === protocol);
  for (const { from } of citations) {
    if (from !== protocol) dropped.add(PARAMETER_NAMES[from].citations);
  }
  return own.length > 0 ? { ...text, citations: own } : text;
}

/** Members of the body under the target's names. */
function carryBody(unknownMembers: UnknownMembers, { protocol, dropped }: RestTarget): UnknownMembers | undefined {
  if (protocol === "gemini") {
    nameBody(unknownMembers, Object.keys(unknownMembers.members), dropped);
    return undefined;
  }
  const members: JsonObject = {};
  const lost = Object.entries(unknownMembers.members).filter(([name, value]) => {
    const carried = carry({ name, value, from: unknownMembers.from, to: protocol });
    if (carried !== undefined) Object.assign(members, carried);
    return carried === undefined;
  });
  nameBody(unknownMembers, lost.map(([name]) => name), dropped);
  return Object.keys(members).length === 0 ? undefined : { from: protocol, members };
}

function nameBody({ from, members }: UnknownMembers, names: readonly string[], dropped: UnsupportedParameters): void {
  for (const name of names) {
    const value = members[name];
    // The gateway stores nothing, so `store: false` is no loss.
    if (isNothing(value) || (name === "store" && value === false)) continue;
    refuseMember(name, from);
    for (const path of namesOf(name, value)) dropped.add(path);
  }
}

/** The name of a member, or the paths of its members if it only groups them. */
function namesOf(name: string, value: Json | undefined): string[] {
  if (!GROUPS.has(name.slice(name.lastIndexOf(".") + 1)) || !isObject(value)) return [name];
  return Object.entries(value).flatMap(([inner, member]) =>
    isNothing(member) ? [] : namesOf(`${name}.${inner}`, member)
  );
}

function refuseMember(name: string, from: Protocol): void {
  if (!REFUSED[from].includes(name)) return;
  throw new GatewayError("invalid", `Cannot use ${name}: only the vendor's own models support it`, {
    param: name,
    // With this code the vendor's own clients send the whole conversation instead.
    ...(name === "thread" && { code: "thread_unsupported_request" }),
  });
}

interface Member {
  name: string;
  value: Json | undefined;
  from: Protocol;
  to: Protocol;
}

/** Translates one member; undefined if the target has no equivalent. */
function carry({ name, value, from, to }: Member): JsonObject | undefined {
  if (from !== "messages" && to !== "messages") {
    if (OPENAI.includes(name)) return { [name]: value };
    if (from === "chat") return name === "verbosity" ? { text: { verbosity: value } } : undefined;
    const verbosity = name === "text" && isObject(value) && Object.keys(value).length === 1
      ? value.verbosity
      : undefined;
    return verbosity === undefined ? undefined : { verbosity };
  }
  if (name !== "service_tier") return undefined;
  if (value === "auto") return { service_tier: value };
  if (to === "messages") return value === "default" ? { service_tier: "standard_only" } : undefined;
  return value === "standard_only" ? { service_tier: "default" } : undefined;
}

/** True for values that ask for nothing. */
function isNothing(value: Json | undefined): boolean {
  if (value === undefined || value === null) return true;
  if (Array.isArray(value)) return value.length === 0;
  return isObject(value) && Object.keys(value).length === 0;
}
