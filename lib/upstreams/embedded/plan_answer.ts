/** Plans the complete answer of the echo model. Limits are applied later. */
import { smallestInstance } from "./smallest_instance.ts";
import type { ContentBlockOf, Prompt, Protocol, ToolChoice } from "../../protocols/canonical/types.ts";
import { isInstance } from "./json_schema_instance.ts";
import { isObject, type Json, parseJson, writeJson } from "../../json/mod.ts";
import { type CallableTool, type Directive, LIMITS, readDirectives } from "./directives.ts";
import { type LastUserTurn, readLastUserTurn } from "./last_user_turn.ts";
import { reasoningText, wantsReasoning } from "./thinking.ts";
import { createHash } from "node:crypto";
import { PARAMETER_NAMES } from "../../protocols/canonical/parameter_names.ts";
import { GatewayError } from "../../errors.ts";

/** A whole answer, in the order of its events. */
export interface PlannedAnswer {
  reasoning?: { text: string; hidden: boolean };
  /** "" if there is no text. */
  text: string;
  calls: ContentBlockOf<"tool_call">[];
}

/** The answer to a prompt without text to repeat. */
export const NOTHING = "There is nothing to echo.";

/**
 * Plans the answer to a prompt. Equal prompts get equal answers.
 * @throws {GatewayError} `invalid` for parts that cannot be read, and for tools that cannot be called
 */
export function planAnswer(prompt: Prompt): PlannedAnswer {
  const turn = readLastUserTurn(prompt);
  const { calls, text, directed } = chooseCalls(prompt, turn);
  const format = prompt.format ?? { type: "text" };
  const echoed = [turn.results, text].filter((part) => part !== undefined && part !== "").join("\n");
  const reasoning = wantsReasoning(prompt.reasoning)
    ? { text: reasoningText(calls), hidden: prompt.reasoning?.display === "omitted" }
    : undefined;
  // Only plain text answers to prompts with `call:` directives have a text beside calls.
  const beside = format.type === "text" && directed ? echoed : "";
  return {
    ...(reasoning !== undefined && { reasoning }),
    text: calls.length > 0 ? beside : formatted(echoed === "" ? NOTHING : echoed),
    calls,
  };

  function formatted(echoed: string): string {
    switch (format.type) {
      case "text":
        return prompt.choices?.includes(echoed) === false ? prompt.choices[0] ?? "" : echoed;
      case "json_object":
        return writeJson({ echo: echoed });
      case "json_schema":
        return writeJson(ownInstance(echoed, format.schema) ?? smallestInstance(format.schema) ?? null);
    }
  }
}

/** Parses a text as JSON; `undefined` if the value does not match the schema. */
function ownInstance(text: string, schema: Json): Json | undefined {
  try {
    const value = parseJson(text, LIMITS);
    return isInstance(value, schema) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Maximum number of calls of one answer. */
const MAX_CALLS = 128;
/** Minimum number of letters of a word in a tool's name by which the tool is found. */
const MIN_WORD_LENGTH = 3;

/** The calls of an answer, and the text beside them. */
interface ChosenCalls {
  calls: ContentBlockOf<"tool_call">[];
  /** The user's text without its directives. */
  text: string;
  /** True if directives in the text asked for the calls. */
  directed: boolean;
}

/**
 * Chooses the calls: those that directives in the text ask for; else one that `tool_choice` requires; else one of the
 * first tool that the text mentions, but only once after each message of the user.
 * @throws {GatewayError} `invalid` for a choice that no tool can satisfy
 */
export function chooseCalls(prompt: Prompt, turn: LastUserTurn): ChosenCalls {
  const { tools, must } = permittedTools(prompt);
  const maxCalls = prompt.parallelToolCalls === false ? 1 : MAX_CALLS;
  const requested = turn.called && !must
    ? { directives: [], text: turn.text }
    : readDirectives(turn.text, { tools, maxCalls });
  const chosen: Directive[] = [...requested.directives];
  if (chosen.length === 0) {
    const mentioned = must || (turn.results === undefined && !turn.called)
      ? findMentionedTool(turn.words, tools)
      : undefined;
    const tool = mentioned ?? (must ? tools[0] : undefined);
    if (tool !== undefined) chosen.push({ tool });
  }
  return { calls: writeCalls(chosen, prompt), text: requested.text, directed: requested.directives.length > 0 };
}

/** Returns the tools that may be called; `must` is true if a call is required. */
function permittedTools({ protocol, tools, toolChoice }: Prompt): { tools: CallableTool[]; must: boolean } {
  const choice: ToolChoice = toolChoice ?? { type: "auto" };
  const callable = tools.filter((tool) => tool.type !== "hosted");
  switch (choice.type) {
    case "none":
      return { tools: [], must: false };
    case "auto":
      return { tools: callable, must: false };
    case "required":
      return requireTools(protocol, callable, "there is no tool that this model can call");
    case "tool":
      return requireTools(
        protocol,
        callable.filter((tool) => isNamed(tool, choice.name)).slice(0, 1),
        `there is no tool named "${choice.name}"`,
      );
    case "allowed": {
      const allowed = callable.filter((tool) => choice.names.some((name) => isNamed(tool, name)));
      return choice.mode === "auto"
        ? { tools: allowed, must: false }
        : requireTools(protocol, allowed, "there is none of the allowed tools");
    }
    case "vendor_specific":
      throw choiceError(protocol, `this model knows no choice of type "${String(choice.value.type)}"`);
  }
}

function requireTools(
  protocol: Protocol,
  tools: CallableTool[],
  reason: string,
): { tools: CallableTool[]; must: true } {
  if (tools.length === 0) throw choiceError(protocol, reason);
  return { tools, must: true };
}

function choiceError(protocol: Protocol, reason: string): GatewayError {
  return new GatewayError("invalid", `Cannot satisfy this tool choice: ${reason}`, {
    param: PARAMETER_NAMES[protocol].toolChoice,
  });
}

function isNamed({ name, namespace }: CallableTool, wanted: string): boolean {
  return name === wanted || (namespace !== undefined && `${namespace}.${name}` === wanted);
}

/** Finds the first tool whose full name is in the text, else the first with a word of its name in the text. */
function findMentionedTool(text: string, tools: readonly CallableTool[]): CallableTool | undefined {
  if (tools.length === 0) return undefined;
  const names = new Set(text.match(/[A-Za-z0-9_][A-Za-z0-9_.:-]*(?<=[A-Za-z0-9_])/g));
  const words = new Set(text.toLowerCase().match(/[\p{L}\p{N}]+/gu));
  return tools.find(({ name }) => names.has(name)) ??
    tools.find(({ name }) => wordsOf(name).some((word) => words.has(word)));
}

/** Returns the words of a name: `get` and `weather` for `getWeather_v2`. */
function wordsOf(name: string): string[] {
  return name.replace(/(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/g, " ").toLowerCase()
    .split(/[^a-z]+/).filter((word) => word.length >= MIN_WORD_LENGTH);
}

function writeCalls(chosen: readonly Directive[], { messages }: Prompt): ContentBlockOf<"tool_call">[] {
  const usedIds = new Set(
    messages.flatMap(({ blocks }) => blocks.flatMap((block) => block.type === "tool_call" ? [block.id] : [])),
  );
  return chosen.map(({ tool, arguments: written }, index) => {
    const text = written ?? smallestArguments(tool);
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

/** Returns an id that is unique in the conversation. Equal conversations get equal ids. */
function newId(facts: (string | number)[], usedIds: Set<string>): string {
  for (let attempt = 0;; attempt++) {
    const id = `call_${createHash("sha256").update(JSON.stringify([...facts, attempt])).digest("hex").slice(0, 24)}`;
    if (usedIds.has(id)) continue;
    usedIds.add(id);
    return id;
  }
}
