/**
 * Removes members that only the client's protocol knows: translates those that the target knows, reports the others.
 */
import { modalityOf } from "../canonical/media.ts";
import { PARAMETER_NAMES } from "../canonical/parameter_names.ts";
import { callSignatureId, chatCallSignature, GOOGLE_ISSUER, signatureBlock } from "../canonical/signature.ts";
import type { UnsupportedParameters } from "../canonical/unsupported_parameters.ts";
import type { ContentBlock, Message, Prompt, Protocol, Reasoning, Tool, UnknownMembers } from "../canonical/types.ts";
import { GatewayError } from "../../errors.ts";
import { isObject, type Json, type JsonObject } from "../../json/mod.ts";
import { present } from "../members.ts";
import { mapEach, mapPrompt } from "./map_blocks.ts";
import type { AdaptTarget } from "../upstream_codec.ts";
import { readThinkingMember } from "./thinking_member.ts";

/** Members of the body with the same name in both OpenAI protocols. */
const SHARED_OPENAI_MEMBERS: ReadonlySet<string> = new Set(
  `service_tier metadata prompt_cache_key prompt_cache_options prompt_cache_retention safety_identifier`.split(/\s+/),
);

/** Members that are refused, because the answer would be wrong without them. */
const REFUSED_MEMBERS: Readonly<Partial<Record<Protocol, readonly string[]>>> = {
  messages: ["mcp_servers", "container", "thread", "fallbacks"],
  gemini: ["cachedContent", "continuationToken"],
};

type DropTarget = Pick<AdaptTarget, "protocol" | "row" | "dropped">;

/** Objects that only group members: the members inside are reported, not the object. */
const WRAPPERS = new Set([
  ...["function", "custom", "image_url", "file", "item", "functionCall", "functionResponse"],
  "provider_specific_fields",
]);

/** Members of Gemini's body that only group members. */
const GROUPS = new Set(["generationConfig", "toolConfig", "functionCallingConfig"]);

/** Members that mean nothing by themselves, which are not reported. */
const UNREPORTED_MEMBERS = new Set([
  ...["id", "index", "type", "role", "status", "object", "logprobs", "caller", "summary", "content"],
  "additional_tools",
  // Schemas of a tool's result. Only Google passes them to its models.
  ...["response", "responseJsonSchema"],
]);

/**
 * Removes members and citations of other protocols than the target's. Adds them to `dropped` unless the target has an
 * equivalent.
 * @throws {GatewayError} `invalid`, for members without which the answer would be wrong
 */
export function* dropUnknownMembers(original: Prompt, target: DropTarget): Generator<void, Prompt> {
  const prompt = readThinkingMember(original, target);
  const { unknownMembers, reasoning } = prompt;
  const keepOwn = <T extends { unknownMembers?: UnknownMembers }>(part: T): T => keepOwnMembers(part, target);
  const keepOwnInBlock = (block: ContentBlock): ContentBlock | ContentBlock[] => {
    const { signature, call } = detachSignature(block, target);
    const kept = dropCitations(keepOwn(translateDetail(call, target)), target);
    return signature === undefined ? kept : [signature, kept];
  };
  const body = unknownMembers === undefined || unknownMembers.from === target.protocol
    ? unknownMembers
    : translateBody(unknownMembers, target);
  const ownReasoning = reasoning && keepOwnReasoning(reasoning, target);
  const mapped = yield* mapPrompt(prompt, keepOwnInBlock);
  const messages = yield* mapEach<Message>(mapped.messages, (message) => keepOwn(removeResultName(message, target)));
  const tools = yield* mapEach<Tool>(mapped.tools, keepOwn);
  const { unknownMembers: _, reasoning: __, ...others } = mapped;
  return {
    ...others,
    messages,
    tools,
    ...present({ reasoning: ownReasoning, unknownMembers: body }),
  };
}

function keepOwnReasoning(reasoning: Reasoning, { protocol, dropped }: DropTarget): Reasoning {
  const { unknownMembers, ...others } = reasoning;
  if (unknownMembers === undefined || unknownMembers.from === protocol) return reasoning;
  for (const [name, value] of Object.entries(unknownMembers.members)) {
    if (!asksForNothing(name, value)) dropped.add(`${PARAMETER_NAMES[unknownMembers.from].reasoning}.${name}`);
  }
  return others;
}

/** Removes and reports unknown members, unless they are of the target's protocol. */
function keepOwnMembers<T extends { unknownMembers?: UnknownMembers }>(part: T, { protocol, dropped }: DropTarget): T {
  if (part.unknownMembers === undefined || part.unknownMembers.from === protocol) return part;
  const { unknownMembers, ...others } = part;
  reportMembers(unknownMembers.members, dropped);
  return others as T;
}

/** Removes the `name` of a chat client's tool result. It repeats that of the call, so it is not reported as dropped. */
function removeResultName(message: Message, { protocol }: DropTarget): Message {
  const { blocks: [block], unknownMembers } = message;
  if (block?.type !== "tool_result" || unknownMembers?.from !== "chat" || protocol === "chat") return message;
  const { name: _, ...members } = unknownMembers.members;
  return { ...message, unknownMembers: { from: "chat", members } };
}

/** Makes the signature beside a chat client's call a block of its own for Google's models, which sign calls. */
function detachSignature(
  block: ContentBlock,
  { protocol }: DropTarget,
): { signature?: ContentBlock; call: ContentBlock } {
  if (protocol !== "gemini" || block.type !== "tool_call" || block.unknownMembers?.from !== "chat") {
    return { call: block };
  }
  const value = chatCallSignature(block.unknownMembers.members);
  if (value === undefined) return { call: block };
  const { extra_content: _, ...members } = block.unknownMembers.members;
  return {
    signature: signatureBlock({ issuer: GOOGLE_ISSUER, value, id: callSignatureId(block.id) }),
    call: { ...block, unknownMembers: { from: "chat", members } },
  };
}

/**
 * Moves the `detail` of an image, which decides how many tokens it costs, to where the other OpenAI protocol has it.
 * Reports the image's other unknown members.
 */
function translateDetail(block: ContentBlock, { protocol, dropped }: DropTarget): ContentBlock {
  if (block.type !== "media" || block.unknownMembers === undefined) return block;
  const { from, members } = block.unknownMembers;
  const isBetweenOpenAi = (from === "chat" && protocol === "responses") ||
    (from === "responses" && protocol === "chat");
  if (!isBetweenOpenAi || modalityOf(block.media, block.name) !== "image") return block;
  const { image_url: image, ...others } = members;
  const { detail, ...unknown } = { ...others, ...(isObject(image) && image) };
  if (typeof detail !== "string") return block;
  reportMembers(unknown, dropped);
  return {
    ...block,
    unknownMembers: { from: protocol, members: protocol === "chat" ? { image_url: { detail } } : { detail } },
  };
}

function reportMembers(members: JsonObject, dropped: UnsupportedParameters): void {
  for (const [name, value] of Object.entries(members)) {
    if (asksForNothing(name, value) || UNREPORTED_MEMBERS.has(name)) continue;
    if (WRAPPERS.has(name) && isObject(value)) reportMembers(value, dropped);
    else dropped.add(name);
  }
}

/** Removes and reports citations of other protocols than the target's. */
function dropCitations(block: ContentBlock, { protocol, dropped }: DropTarget): ContentBlock {
  if (block.type !== "text" || block.citations === undefined) return block;
  const { citations, ...text } = block;
  const own = citations.filter(({ from }) => from === protocol);
  for (const { from } of citations) {
    if (from !== protocol) dropped.add(PARAMETER_NAMES[from].citations);
  }
  return own.length > 0 ? { ...text, citations: own } : text;
}

/** Returns the body's members under the target's names; undefined if none is left. Reports those without equivalent. */
function translateBody(unknownMembers: UnknownMembers, { protocol, dropped }: DropTarget): UnknownMembers | undefined {
  if (protocol === "gemini") {
    reportBodyMembers(unknownMembers, Object.keys(unknownMembers.members), dropped);
    return undefined;
  }
  const members: JsonObject = {};
  const lost = Object.entries(unknownMembers.members).filter(([name, value]) => {
    const translated = translateMember({ name, value, from: unknownMembers.from, to: protocol });
    if (translated !== undefined) Object.assign(members, translated);
    return translated === undefined;
  });
  reportBodyMembers(unknownMembers, lost.map(([name]) => name), dropped);
  return Object.keys(members).length === 0 ? undefined : { from: protocol, members };
}

function reportBodyMembers(
  { from, members }: UnknownMembers,
  names: readonly string[],
  dropped: UnsupportedParameters,
): void {
  for (const name of names) {
    const value = members[name];
    // The gateway stores responses itself.
    if (asksForNothing(name, value) || from === "responses" && name === "store") continue;
    checkMember(name, from);
    for (const path of pathsOf(name, value)) dropped.add(path);
  }
}

/** Returns the name of a member, or the paths of the members inside if it only groups them. */
function pathsOf(name: string, value: Json | undefined): string[] {
  if (!GROUPS.has(name.slice(name.lastIndexOf(".") + 1)) || !isObject(value)) return [name];
  return Object.entries(value).flatMap(([inner, member]) =>
    asksForNothing(inner, member) ? [] : pathsOf(`${name}.${inner}`, member)
  );
}

/** @throws {GatewayError} `invalid`, for a member without which the answer would be wrong */
function checkMember(name: string, from: Protocol): void {
  if (REFUSED_MEMBERS[from]?.includes(name) !== true) return;
  throw new GatewayError("invalid", `Cannot use ${name}: only the vendor's own models support it`, {
    param: name,
    // On this code the vendor's own clients send the whole conversation in place of the thread.
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
function translateMember({ name, value, from, to }: Member): JsonObject | undefined {
  if (from === "gemini") return undefined;
  if (from !== "messages" && to !== "messages") {
    if (SHARED_OPENAI_MEMBERS.has(name)) return { [name]: value };
    if (from === "chat") return name === "verbosity" ? { text: { verbosity: value } } : undefined;
    const isVerbosity = name === "text" && isObject(value) && Object.keys(value).length === 1;
    return isVerbosity && value.verbosity !== undefined ? { verbosity: value.verbosity } : undefined;
  }
  if (name !== "service_tier") return undefined;
  if (value === "auto") return { service_tier: value };
  if (to === "messages") return value === "default" ? { service_tier: "standard_only" } : undefined;
  return value === "standard_only" ? { service_tier: "default" } : undefined;
}

/**
 * Members whose default clients often send, with the default as JSON. The gateway stores no answers for vendors, and
 * pads no streams.
 */
const DEFAULTS: ReadonlyMap<string, string> = new Map([
  ["store", "false"],
  ["include_obfuscation", "false"],
  ["detail", '"auto"'],
  ["modalities", '["text"]'],
  ["responseModalities", '["TEXT"]'],
  ["citations", '{"enabled":false}'],
  ["min_p", "0"],
  ["top_a", "0"],
  ["repetition_penalty", "1"],
]);

/**
 * True if a member has no effect: its value is null, an empty list, an object of such members, or the default.
 * `web_search_options` asks for a search even if it is empty.
 */
function asksForNothing(name: string, value: Json | undefined): boolean {
  if (value === undefined || value === null) return true;
  if (name === "web_search_options") return false;
  const isEmpty = Array.isArray(value)
    ? value.length === 0
    : isObject(value) && Object.entries(value).every(([inner, member]) => asksForNothing(inner, member));
  return isEmpty || DEFAULTS.has(name) && DEFAULTS.get(name) === JSON.stringify(value);
}
