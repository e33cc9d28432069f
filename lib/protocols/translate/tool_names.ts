/** Gives tools names that the upstream accepts, and restores the client's names in answers. */
import type {
  ContentBlock,
  ContentBlockOf,
  Machine,
  Prompt,
  ReplyEvent,
  Tool,
  ToolChoice,
} from "../canonical/types.ts";
import type { Dialect, TextRule } from "../upstream_codec.ts";
import { hashText, isLegal, replaceIllegalCharacters } from "./legal_names.ts";
import { mapPrompt } from "./map_blocks.ts";
import { isToolNamed } from "./select_tools.ts";

/** A tool in the client's terms. */
interface Original {
  name: string;
  namespace?: string;
  custom?: boolean;
}

/** A prompt whose tools have legal names. */
export interface RenamedTools {
  prompt: Prompt;
  /** Restores the client's names in the tool calls of an answer. Unknown names pass. */
  restore: () => Machine<ReplyEvent, ReplyEvent>;
}

const HASH_LENGTH = 8;

/**
 * Makes tool names legal and unique, in steps: in the tools, in past calls and in the choice. Without namespaces, `ns` and `name`
 * become `ns__name`. A name that is legal and free stays.
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
    prompt: tools.length === 0 && choice === undefined ? renamed : {
      ...renamed,
      tools,
      ...(choice !== undefined && { toolChoice: choice }),
    },
    restore: () => ({ push: (event) => [names.restore(event)], end: () => [] }),
  };
}

function originalOf(tool: Exclude<Tool, { type: "hosted" }>): Original {
  const { name, namespace } = tool;
  return { name, ...(namespace !== undefined && { namespace }), ...(tool.type === "custom" && { custom: true }) };
}

/** Groups the callable tools by name. */
function byName(tools: readonly Tool[]): Map<string, Original[]> {
  return Map.groupBy(tools.filter((tool) => tool.type !== "hosted").map(originalOf), ({ name }) => name);
}

/** Returns the tool of a past call. Clients may omit its namespace or kind: the first best match counts. */
function calledTool(call: ContentBlockOf<"tool_call">, candidates: readonly Original[] = []): Original {
  let called: Original = call;
  let best = -1;
  for (const original of candidates) {
    if (call.namespace !== undefined && original.namespace !== call.namespace) continue;
    const isSameKind = (original.custom === true) === (call.custom === true);
    const fit = !isSameKind ? 0 : original.namespace === call.namespace ? 2 : 1;
    if (fit <= best) continue;
    called = original;
    best = fit;
  }
  return called;
}

/** Returns the thing under another name; the same thing if the name is the same. */
function rename<T extends { name: string; namespace?: string }>(
  value: T,
  { name, namespace }: { name: string; namespace?: string },
): T {
  if (value.name === name && value.namespace === namespace) return value;
  const { namespace: _, ...rest } = value;
  return { ...rest, name, ...(namespace !== undefined && { namespace }) } as T;
}

/** A choice has a bare name: the first tool of that name counts. */
function renameChoice(
  choice: ToolChoice,
  { tools, names }: { tools: readonly Tool[]; names: WireNames },
): ToolChoice {
  const wireNames = (matching: readonly Tool[]) =>
    matching.flatMap((tool) => tool.type === "hosted" ? [] : [names.of(originalOf(tool)).name]);
  switch (choice.type) {
    case "tool": {
      const sameName = tools.filter((tool) => isToolNamed(tool, choice.name));
      const sameKind = sameName.filter((tool) => (tool.type === "custom") === (choice.custom === true));
      const [name] = wireNames(sameKind.length > 0 ? sameKind : sameName);
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

/** The names given so far. */
class WireNames {
  readonly #rule: TextRule;
  readonly #keepsNamespaces: boolean;
  readonly #wire = new Map<string, { name: string; namespace?: string }>();
  readonly #originals = new Map<string, Original>();

  constructor({ toolName, namespaces }: Dialect) {
    this.#rule = toolName;
    this.#keepsNamespaces = namespaces;
  }

  /** Lets a tool keep its legal name before others get a generated one. */
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
    const known = this.#wire.get(key);
    if (known !== undefined) return known;
    const keptNamespace = this.#keepsNamespaces ? namespace : undefined;
    const joined = namespace !== undefined && keptNamespace === undefined ? `${namespace}__${name}` : name;
    const wire = {
      name: this.#free(joined, { seed, namespace: keptNamespace }),
      ...(keptNamespace !== undefined && { namespace: keptNamespace }),
    };
    this.#wire.set(key, wire);
    this.#originals.set(wireKey(wire), {
      name,
      ...(namespace !== undefined && { namespace }),
      ...(custom === true && { custom }),
    });
    return wire;
  }

  restore(event: ReplyEvent): ReplyEvent {
    if (event.type !== "open" || event.block.type !== "tool_call") return event;
    const original = this.#originals.get(wireKey(event.block));
    return original === undefined ? event : { ...event, block: { ...event.block, ...original } };
  }

  /** Returns the name itself if it is legal and free, else its legal characters and a hash. */
  #free(name: string, { seed, namespace }: { seed: () => string; namespace: string | undefined }): string {
    const isTaken = (name: string) => this.#originals.has(wireKey({ name, namespace }));
    if (isLegal(name, this.#rule) && !isTaken(name)) return name;
    const line = isLegal("_", this.#rule) ? "_" : "";
    const clean = replaceIllegalCharacters(name, this.#rule, line);
    for (let salt = 0;; salt++) {
      const suffix = `${line}${hashText(salt === 0 ? seed() : `${seed()}${salt}`, HASH_LENGTH)}`;
      const candidate = clean.slice(0, Math.max(0, this.#rule.max - suffix.length)) + suffix;
      if (!isTaken(candidate)) return candidate;
    }
  }
}

function wireKey({ name, namespace }: { name: string; namespace?: string | undefined }): string {
  return namespace === undefined ? name : JSON.stringify([namespace, name]);
}
