/** Chooses the tool calls of the echo model. */
import { createHash } from "node:crypto";
import { smallestInstance } from "../../protocols/canonical/smallest_instance.ts";
import { PARAMETER_NAMES } from "../../protocols/canonical/parameter_names.ts";
import type { ContentBlockOf, Prompt, Protocol, ToolChoice } from "../../protocols/canonical/types.ts";
import { GatewayError } from "../../errors.ts";
import { isObject, writeJson } from "../../json/mod.ts";
import { type CallableTool, type Directive, readDirectives } from "./directives.ts";
import type { LastUserTurn } from "./last_user_turn.ts";

const MAX_CALLS = 128;
/** Letters of the shortest word of a tool's name that counts. */
const MIN_WORD = 3;

/** The calls of an answer, and the text beside them. */
export interface ChosenCalls {
  calls: ContentBlockOf<"tool_call">[];
  /** The user's text without its directives. */
  text: string;
  /** True when the text itself asked for the calls. */
  directed: boolean;
}

/**
 * Chooses the calls: what the text asks for; else what `tool_choice` demands; else the first tool that the text speaks of,
 * but never twice without a new message of the user's.
 * @throws {GatewayError} `invalid`, for a choice that no tool can satisfy
 */
export function chooseCalls(prompt: Prompt, turn: LastUserTurn): ChosenCalls {
  const { tools, isRequired } = permittedTools(prompt);
  const maxCalls = prompt.parallelToolCalls === false ? 1 : MAX_CALLS;
  const requested = turn.called && !isRequired
    ? { directives: [], text: turn.text }
    : readDirectives(turn.text, { tools, maxCalls });
  const directives: Directive[] = [...requested.directives];
  if (directives.length === 0) {
    const mentioned = isRequired || (turn.results === undefined && !turn.called)
      ? findMentionedTool(turn.words, tools)
      : undefined;
    const tool = mentioned ?? (isRequired ? tools[0] : undefined);
    if (tool !== undefined) directives.push({ tool });
  }
  return { calls: writeCalls(directives, prompt), text: requested.text, directed: requested.directives.length > 0 };
}

/** Returns the tools that may be called; `isRequired` is true if a call is required. */
function permittedTools({ protocol, tools, toolChoice }: Prompt): { tools: CallableTool[]; isRequired: boolean } {
  const choice: ToolChoice = toolChoice ?? { type: "auto" };
  const callable = tools.filter((tool) => tool.type !== "hosted");
  switch (choice.type) {
    case "none":
      return { tools: [], isRequired: false };
    case "auto":
      return { tools: callable, isRequired: false };
    case "required":
      return requireTool(protocol, callable, "there is no tool that this model can call");
    case "tool":
      return requireTool(
        protocol,
        callable.filter((tool) => isNamed(tool, choice.name)).slice(0, 1),
        `there is no tool named "${choice.name}"`,
      );
    case "allowed": {
      const allowed = callable.filter((tool) => choice.names.some((name) => isNamed(tool, name)));
      return choice.mode === "auto"
        ? { tools: allowed, isRequired: false }
        : requireTool(protocol, allowed, "there is none of the allowed tools");
    }
    case "vendor_specific":
      throw choiceError(protocol, `this model knows no choice of type "${String(choice.value.type)}"`);
  }
}

function requireTool(
  protocol: Protocol,
  tools: CallableTool[],
  problem: string,
): { tools: CallableTool[]; isRequired: true } {
  if (tools.length === 0) throw choiceError(protocol, problem);
  return { tools, isRequired: true };
}

function choiceError(protocol: Protocol, reason: string): GatewayError {
  return new GatewayError("invalid", `Cannot satisfy this tool choice: ${reason}`, {
    param: PARAMETER_NAMES[protocol].toolChoice,
  });
}

function isNamed({ name, namespace }: CallableTool, wireName: string): boolean {
  return name === wireName || (namespace !== undefined && `${namespace}.${name}` === wireName);
}

/** The tool whose whole name is in the text; else the first with a word of its name there. */
function findMentionedTool(text: string, tools: readonly CallableTool[]): CallableTool | undefined {
  if (tools.length === 0) return undefined;
  const names = new Set(text.match(/[A-Za-z0-9_][A-Za-z0-9_.:-]*(?<=[A-Za-z0-9_])/g));
  const words = new Set(text.toLowerCase().match(/[\p{L}\p{N}]+/gu));
  return tools.find(({ name }) => names.has(name)) ??
    tools.find(({ name }) => wordsOf(name).some((word) => words.has(word)));
}

/** `getWeather_v2` as `get`, `weather`. */
function wordsOf(name: string): string[] {
  return name.replace(/(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/g, " ").toLowerCase()
    .split(/[^a-z]+/).filter((word) => word.length >= MIN_WORD);
}

function writeCalls(directives: readonly Directive[], { messages }: Prompt): ContentBlockOf<"tool_call">[] {
  const usedIds = new Set(
    messages.flatMap(({ blocks }) => blocks.flatMap((block) => block.type === "tool_call" ? [block.id] : [])),
  );
  return directives.map(({ tool, arguments: input }, index) => {
    const text = input ?? smallestArguments(tool);
    const { name, namespace } = tool;
    const id = newId([namespace ?? "", name, text, index, messages.length], usedIds);
    return {
      type: "tool_call",
      id,
      name,
      arguments: text,
      ...(tool.type === "custom" && { custom: true }),
      ...(namespace !== undefined && { namespace }),
    };
  });
}

function smallestArguments(tool: CallableTool): string {
  if (tool.type === "custom") return "";
  const value = smallestInstance(tool.parameters ?? {});
  return writeJson(isObject(value) ? value : {});
}

/** Makes an id that is new in the conversation; the same conversation gets the same id. */
function newId(facts: (string | number)[], usedIds: Set<string>): string {
  for (let attempt = 0;; attempt++) {
    const id = `call_${createHash("sha256").update(JSON.stringify([...facts, attempt])).digest("hex").slice(0, 24)}`;
    if (usedIds.has(id)) continue;
    usedIds.add(id);
    return id;
  }
}
