/** Reads the input items and instructions of a request as messages. */
import { type MessageKind, RESPONSES_ITEMS } from "../canonical/vendor_blocks.ts";
import type { ContentBlock, ContentBlockOf, Message, UnknownMembers } from "../canonical/types.ts";
import { GatewayError } from "../../errors.ts";
import type { Json, JsonObject } from "../../json/mod.ts";
import type { ClientPermissions } from "../codec.ts";
import { nonEmptyStringOf, objectsOf, partTexts, present, stringOf } from "../members.ts";
import { NATIVE_ISSUER, readEncrypted } from "./encrypted_content.ts";
import { unknownIn } from "../canonical/unknown_members.ts";
import { readContent } from "./read_parts.ts";

const MESSAGE_MEMBERS = new Set(["type", "role", "content"]);
const CALL_MEMBERS = new Set(["type", "call_id", "name", "arguments", "namespace"]);
const CUSTOM_CALL_MEMBERS = new Set(["type", "call_id", "name", "input", "namespace"]);
const RESULT_MEMBERS = new Set(["type", "call_id", "output"]);
const REASONING_MEMBERS = new Set(["type", "id", "summary", "content", "encrypted_content"]);

/** The blocks of one item, and the kind of message to which they belong. */
interface ReadItem {
  kind: MessageKind;
  blocks: ContentBlock[];
  unknownMembers?: UnknownMembers;
}

/**
 * Reads `input`: a text of the user, or items.
 * @param permissions absent: the client may not refer to files at the vendor
 * @throws {GatewayError} `invalid`, for references to state that the gateway does not keep
 */
export function readInput(input: Json | undefined, permissions?: ClientPermissions): Message[] {
  if (typeof input === "string") return [{ role: "user", blocks: [{ type: "text", text: input }] }];
  const messages: Message[] = [];
  let kind: MessageKind | undefined;
  let last: Message | undefined;
  objectsOf(input).forEach((item, index) => {
    // `readTools` reads these tools. The item does not separate messages.
    if (item.type === "additional_tools") return;
    const read = readItem(item, `input[${index}]`, permissions);
    if (last !== undefined && read.kind === kind && (kind === "assistant" || kind === "results")) {
      last.blocks.push(...read.blocks);
      return;
    }
    kind = read.kind;
    last = {
      role: kind === "results" ? "user" : kind,
      blocks: read.blocks,
      ...(read.unknownMembers !== undefined && { unknownMembers: read.unknownMembers }),
    };
    messages.push(last);
  });
  return messages;
}

/**
 * Reads `instructions`: a string or messages. They become one system message before all others.
 * @param permissions as for `readInput`
 * @throws {GatewayError} `invalid`, for items other than messages
 */
export function readInstructions(instructions: Json | undefined, permissions?: ClientPermissions): Message[] {
  // Some clients always send the member, even if it is empty.
  if (instructions === "") return [];
  if (typeof instructions === "string") return [{ role: "system", blocks: [{ type: "text", text: instructions }] }];
  const blocks = objectsOf(instructions).flatMap((item, index) => {
    const path = `instructions[${index}]`;
    if ((item.type ?? "message") !== "message") {
      throw new GatewayError("invalid", "Cannot use this item as an instruction: only messages are allowed", {
        param: `${path}.type`,
      });
    }
    return readContent(item.content, `${path}.content`, permissions);
  });
  return blocks.length === 0 ? [] : [{ role: "system", blocks }];
}

function readItem(item: JsonObject, path: string, permissions: ClientPermissions | undefined): ReadItem {
  const type = stringOf(item.type) ?? (item.role === undefined ? "item_reference" : "message");
  switch (type) {
    case "message":
      return readMessage(item, path, permissions);
    case "function_call":
      return { kind: "assistant", blocks: [readCall(item, false)] };
    case "custom_tool_call":
      return { kind: "assistant", blocks: [readCall(item, true)] };
    case "function_call_output":
    case "custom_tool_call_output":
      return { kind: "results", blocks: [readResult(item, path, permissions)] };
    case "reasoning":
      return { kind: "assistant", blocks: [readReasoning(item)] };
    case "item_reference":
      throw new GatewayError(
        "invalid",
        "Cannot resolve an item reference: this gateway is stateless, send the item itself",
        { param: path },
      );
    default: {
      const kind = messageKindOf(type);
      if (kind === undefined) {
        throw new GatewayError("invalid", `Cannot read item type ${JSON.stringify(type)}`, { param: `${path}.type` });
      }
      permissions?.checkItem(item, path);
      return { kind, blocks: [{ type: "vendor_specific", from: "responses", value: item }] };
    }
  }
}

function messageKindOf(type: string): MessageKind | undefined {
  return Object.hasOwn(RESPONSES_ITEMS, type) ? RESPONSES_ITEMS[type as keyof typeof RESPONSES_ITEMS] : undefined;
}

function readMessage(item: JsonObject, path: string, permissions: ClientPermissions | undefined): ReadItem {
  const blocks = readContent(item.content, `${path}.content`, permissions);
  switch (item.role) {
    case "assistant":
      return { kind: "assistant", blocks: keepItemMembers(blocks, item) };
    case "user":
      return { kind: "user", blocks, ...unknownIn("responses", item, MESSAGE_MEMBERS) };
    default:
      return {
        kind: "system",
        blocks,
        ...unknownIn("responses", item, MESSAGE_MEMBERS, {
          more: { role: item.role === "system" ? undefined : item.role },
        }),
      };
  }
}

/**
 * Keeps the members of an assistant item (`id`, `status`, `phase`) with its first block, as the unknown member `item`:
 * one message may have several items.
 */
function keepItemMembers(blocks: ContentBlock[], item: JsonObject): ContentBlock[] {
  const { unknownMembers } = unknownIn("responses", item, MESSAGE_MEMBERS);
  const [first, ...others] = blocks;
  if (unknownMembers === undefined || first === undefined) return blocks;
  const members = { ...first.unknownMembers?.members, item: unknownMembers.members };
  return [{ ...first, unknownMembers: { from: "responses", members } }, ...others];
}

function readCall(item: JsonObject, custom: boolean): ContentBlockOf<"tool_call"> {
  return {
    type: "tool_call",
    id: stringOf(item.call_id) ?? "",
    name: stringOf(item.name) ?? "",
    arguments: stringOf(custom ? item.input : item.arguments) ?? "",
    ...(custom && { custom: true }),
    ...present({ namespace: stringOf(item.namespace) }),
    ...unknownIn("responses", item, custom ? CUSTOM_CALL_MEMBERS : CALL_MEMBERS),
  };
}

function readResult(
  item: JsonObject,
  path: string,
  permissions: ClientPermissions | undefined,
): ContentBlockOf<"tool_result"> {
  return {
    type: "tool_result",
    callId: stringOf(item.call_id) ?? "",
    blocks: item.output === "" ? [] : readContent(item.output, `${path}.output`, permissions),
    ...(item.type === "custom_tool_call_output" && { custom: true }),
    ...unknownIn("responses", item, RESULT_MEMBERS),
  };
}

/** Reads reasoning. The text is `content`, else the summary. What one text cannot represent stays an unknown member. */
function readReasoning(item: JsonObject): ContentBlockOf<"reasoning"> {
  const id = stringOf(item.id);
  const summary = partTexts(item.summary);
  const content = partTexts(item.content);
  const encrypted = nonEmptyStringOf(item.encrypted_content);
  const read = encrypted === undefined ? undefined : readEncrypted(encrypted, id);
  const text = (content.length > 0 ? content : summary).join("\n\n");
  const hidden = read !== undefined && (read.hidden || (text === "" && read.signature.issuer === NATIVE_ISSUER));
  const unmodelled = {
    id: read?.signature.id === id ? undefined : id,
    summary: content.length > 0 || summary.length > 1 ? item.summary : undefined,
    content: content.length > 0 ? item.content : undefined,
  };
  return {
    type: "reasoning",
    text,
    ...(hidden && { hidden }),
    ...present({ signature: read?.signature }),
    ...unknownIn("responses", item, REASONING_MEMBERS, { more: unmodelled }),
  };
}
