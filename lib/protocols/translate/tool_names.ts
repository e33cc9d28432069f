/** Gives tools names that the upstream accepts, and restores the client's names in answers. */
import type { ContentBlock, ContentBlockOf, EventTransform, Prompt } from "../canonical/types.ts";
import type { ReplyEvent, Tool, ToolChoice } from "../canonical/types.ts";
import { present } from "../members.ts";
import type { Dialect, TextRule } from "../upstream_codec.ts";
import { hashText, isLegal, replaceIllegalCharacters } from "./legal_names.ts";
import { mapPrompt } from "./map_blocks.ts";
import { isToolNamed } from "./select_tools.ts";

/** A tool as the client names it. */
interface Original {
  name: string;
  namespace?: string;
  custom?: boolean;
}

/** A prompt whose tools have legal names. */
export interface RenamedTools {
  prompt: Prompt;
  /** Creates a transform that restores the client's names in the tool calls of an answer. Unknown names stay. */
  restore: () => EventTransform;
}

/** Base62 digits of the hash in a generated name. */
const HASH_LENGTH = 8;

/**
 * Makes tool names legal and unique in the tools, in past calls and in the choice, in steps. If the upstream has no
 * namespaces, `ns` and `name` become `ns__name`. A name that is legal and not taken stays.
 */
export function* renameTools(prompt: Prompt, dialect: Dialect): Generator<void, RenamedTools> {
  const names = new WireNames(dialect);
  for (const tool of prompt.tools) names.reserve(tool);
  const tools = prompt.tools.map((tool): Tool =>
    tool.type === "hosted" ? tool : rename(tool, names.of(originalOf(tool)))
  );
  let callable: Map<string, Original[]> | undefined;
  const renameBlock = (block: ContentBlock): ContentBlock => {
    if (block.type !== "tool_call") return block;
    callable ??= byName(prompt.tools);
    return rename(block, names.of(calledTool(block, callable.get(block.name))));
  };
  const choice = prompt.toolChoice && renameChoice(prompt.toolChoice, { tools: prompt.tools, names });
  const renamed = yield* mapPrompt(prompt, renameBlock);
  return {
    prompt: { ...renamed, tools, ...present({ toolChoice: choice }) },
    restore: () => (event) => [names.restore(event)],
  };
}

function originalOf(tool: Exclude<Tool, { type: "hosted" }>): Original {
  const { name, namespace } = tool;
  return { name, ...present({ namespace }), ...(tool.type === "custom" && { custom: true }) };
}

function byName(tools: readonly Tool[]): Map<string, Original[]> {
  return Map.groupBy(tools.filter((tool) => tool.type !== "hosted").map(originalOf), ({ name }) => name);
}

/** Returns the tool of a past call. Clients may omit its namespace or kind, so the best match counts. */
function calledTool(call: ContentBlockOf<"tool_call">, sameNamed: readonly Original[] = []): Original {
  let called: Original = call;
  let bestQuality = -1;
  for (const original of sameNamed) {
    if (call.namespace !== undefined && original.namespace !== call.namespace) continue;
    const isSameKind = (original.custom === true) === (call.custom === true);
    const namespaceQuality = original.namespace === call.namespace ? 2 : 1;
    const matchQuality = isSameKind ? namespaceQuality : 0;
    if (matchQuality <= bestQuality) continue;
    called = original;
    bestQuality = matchQuality;
  }
  return called;
}

/** Returns a tool or call under another name; the same object if the name is the same. */
function rename<T extends { name: string; namespace?: string }>(
  object: T,
  { name, namespace }: { name: string; namespace?: string },
): T {
  if (object.name === name && object.namespace === namespace) return object;
  const { namespace: _, ...others } = object;
  return { ...others, name, ...present({ namespace }) } as T;
}

/** Renames the tools of a choice. A choice has only a name: of several tools with it, the first one counts. */
function renameChoice(
  choice: ToolChoice,
  { tools, names }: { tools: readonly Tool[]; names: WireNames },
): ToolChoice {
  const wireNames = (matching: readonly Tool[]) =>
    matching.flatMap((tool) => tool.type === "hosted" ? [] : [names.of(originalOf(tool)).name]);
  switch (choice.type) {
    case "tool": {
      const named = tools.filter((tool) => isToolNamed(tool, choice.name));
      const sameKind = named.filter((tool) => (tool.type === "custom") === (choice.custom === true));
      const [name] = wireNames(sameKind.length > 0 ? sameKind : named);
      return name === undefined ? choice : { ...choice, name };
    }
    case "allowed": {
      const all = choice.names.flatMap((name) => {
        const wire = wireNames(tools.filter((tool) => isToolNamed(tool, name)));
        return wire.length === 0 ? [name] : wire;
      });
      return { ...choice, names: [...new Set(all)] };
    }
    default:
      return choice;
  }
}

/** The upstream's names of tools, and the client's names by them. */
class WireNames {
  readonly #rule: TextRule;
  readonly #keepsNamespaces: boolean;
  readonly #wireNames = new Map<string, { name: string; namespace?: string }>();
  readonly #originals = new Map<string, Original>();

  constructor({ toolName, namespaces }: Dialect) {
    this.#rule = toolName;
    this.#keepsNamespaces = namespaces;
  }

  /** Reserves the legal name of a tool, so that no other tool gets it as a generated name. */
  reserve(tool: Tool): void {
    if (tool.type === "hosted") {
      const { name } = tool.value;
      if (typeof name === "string") this.#originals.set(wireKey({ name }), { name });
      return;
    }
    const original = originalOf(tool);
    if (original.namespace === undefined && isLegal(original.name, this.#rule)) this.of(original);
  }

  /** Returns the upstream's name of a tool. */
  of({ name, namespace, custom }: Original): { name: string; namespace?: string } {
    const seed = () => JSON.stringify([namespace ?? null, name, custom === true]);
    const key = namespace === undefined ? `${custom === true ? "custom" : "function"} ${name}` : seed();
    const known = this.#wireNames.get(key);
    if (known !== undefined) return known;
    const wireNamespace = this.#keepsNamespaces ? namespace : undefined;
    const joined = namespace !== undefined && wireNamespace === undefined ? `${namespace}__${name}` : name;
    const wire = { name: this.#legalName(joined, { seed, wireNamespace }), ...present({ namespace: wireNamespace }) };
    this.#wireNames.set(key, wire);
    this.#originals.set(wireKey(wire), { name, ...present({ namespace }), ...(custom === true && { custom }) });
    return wire;
  }

  /** Returns the event with the client's name, if it opens a call of a known tool. */
  restore(event: ReplyEvent): ReplyEvent {
    if (event.type !== "open" || event.block.type !== "tool_call") return event;
    const original = this.#originals.get(wireKey(event.block));
    return original === undefined ? event : { ...event, block: { ...event.block, ...original } };
  }

  /** Returns the name if it is legal and not taken, else its legal characters and a hash. */
  #legalName(name: string, { seed, wireNamespace }: { seed: () => string; wireNamespace: string | undefined }): string {
    const isTaken = (name: string) => this.#originals.has(wireKey({ name, namespace: wireNamespace }));
    if (isLegal(name, this.#rule) && !isTaken(name)) return name;
    const separator = isLegal("_", this.#rule) ? "_" : "";
    const clean = replaceIllegalCharacters(name, this.#rule, separator);
    for (let salt = 0;; salt++) {
      const suffix = `${separator}${hashText(salt === 0 ? seed() : `${seed()}${salt}`, HASH_LENGTH)}`;
      const candidate = clean.slice(0, Math.max(0, this.#rule.max - suffix.length)) + suffix;
      if (!isTaken(candidate)) return candidate;
    }
  }
}

function wireKey({ name, namespace }: { name: string; namespace?: string | undefined }): string {
  return namespace === undefined ? name : JSON.stringify([namespace, name]);
}
