/**
 * Replaces tools that only one vendor knows and that the client runs, such as OpenAI's shell, by functions with the same
 * arguments, for upstreams of other vendors.
 */
import { z } from "zod";
import { readCacheMark } from "../canonical/cache_mark.ts";
import {
  type ContentBlock,
  type ContentBlockOf,
  deltaOf,
  type EventTransform,
  type Prompt,
  type ReplyEvent,
  type Tool,
  type ToolChoice,
} from "../canonical/types.ts";
import { unknownIn } from "../canonical/unknown_members.ts";
import { isObject, type JsonObject, tryParse, writeJson } from "../../json/mod.ts";
import { hasContainer } from "../extras.ts";
import { objectsOf, stringOf, withoutNulls } from "../members.ts";
import type { AdaptTarget } from "../upstream_codec.ts";
import { ANTHROPIC_CLIENT_TOOLS, type ClientTool } from "./anthropic_client_tools.ts";
import { mapPrompt } from "./map_blocks.ts";
import { OPENAI_CLIENT_TOOLS, type OpenaiClientTool } from "./openai_client_tools.ts";

/** A prompt in which functions replace the vendor's tools. */
export interface FunctionPrompt {
  prompt: Prompt;
  /** Creates a transform that turns calls of these functions into the vendor's items; absent: there are none. */
  restore?: () => EventTransform;
}

/**
 * Turns the vendor's tools that the client runs into functions, with their past calls and results and the tool choice.
 * Tools that return images stay as they are if the model reads none.
 */
export function* replaceClientTools(
  prompt: Prompt,
  { row }: Pick<AdaptTarget, "row">,
): Generator<void, FunctionPrompt> {
  const readsImages = row.architecture.input_modalities.includes("image");
  if (prompt.protocol === "messages") {
    return { prompt: { ...prompt, tools: prompt.tools.map((tool) => asAnthropicFunction(tool, readsImages) ?? tool) } };
  }
  if (prompt.protocol !== "responses") return { prompt };
  const functions = new OpenaiFunctions(prompt, readsImages);
  const mapped = yield* mapPrompt(prompt, (block) => functions.mapBlock(block));
  const tools = mapped.tools.map((tool) => functions.mapTool(tool));
  const { toolChoice } = mapped;
  return {
    prompt: { ...mapped, tools, ...(toolChoice !== undefined && { toolChoice: functions.mapChoice(toolChoice) }) },
    ...(functions.byName.size > 0 && { restore: () => restoreItems(functions.byName) }),
  };
}

/** Returns a tool of Anthropic as a function; undefined if it is of another kind. */
function asAnthropicFunction(tool: Tool, readsImages: boolean): Tool | undefined {
  if (tool.type !== "hosted") return undefined;
  const { type, name } = tool.value;
  const kind = /^(\w+)_\d{8}$/.exec(stringOf(type) ?? "")?.[1] ?? "";
  const known = Object.hasOwn(ANTHROPIC_CLIENT_TOOLS, kind) ? ANTHROPIC_CLIENT_TOOLS[kind] : undefined;
  if (known === undefined || (known.returnsImages === true && !readsImages)) return undefined;
  return asFunction(tool, stringOf(name) ?? kind, known);
}

function asFunction(
  tool: Extract<Tool, { type: "hosted" }>,
  name: string,
  { arguments: schema, describe, members }: Pick<ClientTool, "arguments" | "describe" | "members">,
): Tool {
  const { $schema: _, ...parameters } = z.toJSONSchema(schema, { io: "input", override: removeBounds }) as JsonObject;
  const modelled = new Set(["type", "name", "cache_control", ...members]);
  return {
    type: "function",
    name,
    description: describe(tool.value),
    parameters,
    ...readCacheMark(tool.value),
    ...unknownIn(tool.from, tool.value, modelled, { more: tool.unknownMembers?.members }),
  };
}

/** Removes the bounds of integers and the schemas of member names, which add nothing here. Some vendors refuse them. */
function removeBounds({ jsonSchema }: { jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  for (const name of ["minimum", "maximum", "propertyNames"]) delete jsonSchema[name];
}

/** Returns the kind of a tool of OpenAI; undefined if the vendor runs it. */
function kindOf(tool: JsonObject): OpenaiClientTool | undefined {
  const { type } = tool;
  if (typeof type !== "string" || (type === "shell" && hasContainer(tool))) return undefined;
  return Object.hasOwn(OPENAI_CLIENT_TOOLS, type) ? OPENAI_CLIENT_TOOLS[type] : undefined;
}

/** The functions in place of a request's tools of OpenAI. */
class OpenaiFunctions {
  /** The tools of the request, by the names of their functions. */
  readonly byName = new Map<string, OpenaiClientTool>();
  /** Kinds of calls by the type of their item, with the names of their functions. */
  readonly #byCall = new Map<string, { kind: OpenaiClientTool; name: string }>();
  /** Ids of calls by the ids of their items, because results of the local shell may refer to the item. */
  readonly #callIds = new Map<string, string>();

  constructor({ tools }: Prompt, readsImages: boolean) {
    const taken = new Set(tools.flatMap((tool) => tool.type === "hosted" ? [] : [tool.name]));
    const add = (kind: OpenaiClientTool, isTool: boolean) => {
      if (this.#byCall.has(kind.call) || (kind.returnsImages === true && !readsImages)) return;
      let { name } = kind;
      while (taken.has(name)) name += "_";
      this.#byCall.set(kind.call, { kind, name });
      if (isTool) this.byName.set(name, kind);
    };
    for (const tool of tools) {
      const kind = tool.type === "hosted" ? kindOf(tool.value) : undefined;
      if (kind !== undefined) add(kind, true);
    }
    // The conversation may contain calls of tools that the request no longer offers.
    for (const kind of Object.values(OPENAI_CLIENT_TOOLS)) add(kind, false);
  }

  mapTool(tool: Tool): Tool {
    const kind = tool.type === "hosted" ? kindOf(tool.value) : undefined;
    const name = kind && this.#nameOf(kind);
    return tool.type === "hosted" && kind !== undefined && name !== undefined ? asFunction(tool, name, kind) : tool;
  }

  mapBlock(block: ContentBlock): ContentBlock {
    if (block.type !== "vendor_specific" || block.from !== "responses") return block;
    const { value } = block;
    const type = stringOf(value.type) ?? "";
    const called = this.#byCall.get(type);
    if (called !== undefined) return this.#callOf(value, called);
    const returned = this.#byCall.get(type.replace(/_output$/, ""));
    const result = returned?.kind.readResult(value);
    const id = stringOf(value.call_id) ?? stringOf(value.id) ?? "";
    return result === undefined ? block : { type: "tool_result", callId: this.#callIds.get(id) ?? id, ...result };
  }

  mapChoice(choice: ToolChoice): ToolChoice {
    if (choice.type !== "vendor_specific") return choice;
    if (choice.value.type !== "allowed_tools") {
      const name = this.#chosenName(choice.value);
      return name === undefined ? choice : { type: "tool", name };
    }
    const { mode, tools } = choice.value;
    const names = objectsOf(tools).map((tool) =>
      tool.type === "function" || tool.type === "custom" ? stringOf(tool.name) : this.#chosenName(tool)
    );
    if (!names.every((name) => name !== undefined)) return choice;
    return { type: "allowed", mode: mode === "required" ? "required" : "auto", names };
  }

  #callOf(item: JsonObject, { kind, name }: { kind: OpenaiClientTool; name: string }): ContentBlockOf<"tool_call"> {
    const id = stringOf(item.call_id) ?? stringOf(item.id) ?? "";
    const itemId = stringOf(item.id);
    if (itemId !== undefined) this.#callIds.set(itemId, id);
    const input = withoutNulls(kind.argumentsOf(item));
    return { type: "tool_call", id, name, arguments: writeJson(input), input };
  }

  #chosenName(choice: JsonObject): string | undefined {
    const kind = kindOf({ type: choice.type ?? null });
    return kind && this.#nameOf(kind);
  }

  #nameOf(kind: OpenaiClientTool): string | undefined {
    for (const [name, tool] of this.byName) if (tool === kind) return name;
    return undefined;
  }
}

/**
 * Creates a transform that turns calls of functions into OpenAI's items. A call with invalid arguments stays a function
 * call.
 */
function restoreItems(byName: ReadonlyMap<string, OpenaiClientTool>): EventTransform {
  let call: { opening: ReplyEvent; id: string; kind: OpenaiClientTool; text: string } | undefined;
  return (event) => {
    if (event.type === "open") {
      const { block } = event;
      const kind = block.type === "tool_call" && block.namespace === undefined && block.custom !== true
        ? byName.get(block.name)
        : undefined;
      call = undefined;
      if (block.type !== "tool_call" || kind === undefined) return [event];
      call = { opening: event, id: block.id, kind, text: "" };
      return [];
    }
    if (call === undefined) return [event];
    if (event.type === "delta") {
      call.text += event.text;
      return [];
    }
    if (event.type !== "close") return [event];
    const { opening, id, kind, text } = call;
    call = undefined;
    const value = itemOf(kind, id, text);
    if (value === undefined) return [opening, ...deltaOf(event.index, text), event];
    return [
      { type: "open", index: event.index, block: { type: "vendor_specific", from: "responses", value } },
      event,
    ];
  };
}

/** Returns the item of a call; undefined if its arguments are not those of the tool. */
function itemOf(
  { call, idPrefix, arguments: schema, itemMembers }: OpenaiClientTool,
  id: string,
  text: string,
): JsonObject | undefined {
  const input = tryParse(text);
  // Models write null for optional members.
  const { success, data } = schema.safeParse(isObject(input) ? withoutNulls(input) : input);
  if (!success) return undefined;
  // OpenAI's rule for ids, which it checks when the conversation moves to one of its models.
  const itemId = `${idPrefix}_${id.replace(/[^A-Za-z0-9_-]/g, "_")}`.slice(0, 64);
  return { type: call, id: itemId, call_id: id, ...itemMembers(data), status: "completed" };
}
