/**
 * What a request asks of its vendor beyond tokens: dearer service tiers, tools that run at the vendor, remote MCP servers,
 * and state that the vendor keeps. Each protocol has one table of it. The tables are data: who may ask for what is decided
 * by the pipeline.
 */
import { PLAIN_TIERS, type TokenUsage } from "./canonical/types.ts";
import { isObject, type Json, type JsonObject, type JsonPath } from "../json/mod.ts";

/** One thing that a request asks for beyond tokens. */
export type Extra =
  /** A tool that runs at the vendor, by the plain name that the configuration and prices use. */
  | { asks: "hosted_tool"; tool: string }
  /** A service tier with a price of its own, by the name that the configuration and prices use. */
  | { asks: "service_tier"; tier: string }
  /** A server that the vendor calls at the client's wish. */
  | { asks: "remote_mcp" }
  /** Something the vendor keeps: a file, a store, a container. */
  | { asks: "vendor_state" }
  /** A feature whose cost no answer tells. */
  | { asks: "unpriced" }
  /** A window that is dearer beyond so many tokens: for models whose row has a longer one. */
  | { asks: "long_context"; over: number };

/** What a member of a body asks for. A member that is absent, null, false or an empty list asks for nothing. */
export type MemberRule =
  | Extract<Extra, { asks: "hosted_tool" } | { asks: "remote_mcp" }>
  /** `notLists`: a list asks for something else. */
  | { asks: "unpriced"; notLists?: true }
  /** `plain`: values that cost no more than the plain price. `names`: tiers that the vendor bills under another name. */
  | { asks: "service_tier"; plain: readonly string[]; prefix?: string; names?: Readonly<Record<string, string>> }
  /** `only`: a member of the object that names the state; absent: the member itself does. */
  | { asks: "vendor_state"; only?: string; code?: string };

/** What one protocol can ask of a vendor beyond tokens. */
export interface ExtrasTable {
  /** Members of the body. */
  members: Readonly<Record<string, MemberRule>>;
  /** Types of tools that the client runs, or that cost nothing but tokens. Every other type is hosted. */
  plainTools: ReadonlySet<string>;
  /** Types of tools that are servers of the client's choice. */
  remoteTools: ReadonlySet<string>;
  /** Where tools are defined beside `tools`: in entries of this list, of these types, in their member `tools`. */
  nested?: { list: string; types: ReadonlySet<string> };
  /** Items that the vendor looks up by their `id` unless they have this member. */
  lookedUp?: Readonly<Record<string, string>>;
  /** Items whose `tools` report what a server offers, and define nothing. */
  toolReports?: ReadonlySet<string>;
  /** The type that a choice has which names one hosted tool by `name`; absent: such a choice has the tool's own type. */
  namedChoice?: string;
  /** Feature names in the header `anthropic-beta`, by how they begin. */
  betas?: Readonly<Record<string, Extra>>;
}

/** Members, of a hosted tool or an item of the conversation, that name the vendor's state: `container` where it is a text. */
const STATE_MEMBERS: ReadonlySet<string> = new Set([
  "vector_store_ids",
  "file_id",
  "file_ids",
  "container_id",
  "skill_id",
  "container",
]);

/** Members of tools, of every protocol, at any depth. */
const TOOL_MEMBERS: ReadonlySet<string> = new Set([
  ...STATE_MEMBERS,
  ...["type", "name", "description", "function", "custom", "parameters", "strict", "format", "tools", "input_schema"],
  ...["environment", "definition", "model", "n", "size", "quality", "max_uses", "cache_control"],
  ...["server_url", "server_label", "connector_id", "authorization", "headers", "mcp_server_name"],
]);

/** Members that hold a model's words, schemas or headers: the names in them are the client's or a tool's own. */
export const OWN_NAMES: ReadonlySet<string> = new Set([
  ...["arguments", "input", "parameters", "input_schema", "output_schema", "input_examples", "configs", "headers"],
]);

/** Names that may be another spelling. Few requests have one. */
const UNUSUAL = /[A-Z\u0080-\uffff]/;

/** Tools that are known under an older name too. */
const OLDER_NAMES: Readonly<Record<string, string>> = { web_search_preview: "web_search" };

/**
 * A usage with what an answer reports beside tokens.
 * @param asked the tier that the request asks for: only then it matters that the answer was made in the plain one
 */
export function withReported(
  usage: TokenUsage,
  { tier, hostedCalls, asked }: {
    tier?: string | undefined;
    hostedCalls?: Readonly<Record<string, number>> | undefined;
    asked?: string | undefined;
  },
): TokenUsage {
  const tells = tier !== undefined && (asked !== undefined || !PLAIN_TIERS.has(tier)) && isName(tier);
  const calls = Object.entries(hostedCalls ?? {}).filter(([name, count]) => count > 0 && isName(name));
  if (!tells && calls.length === 0) return usage;
  return {
    ...usage,
    ...(tells && { tiers: [tier] }),
    ...(calls.length > 0 && { hostedCalls: Object.fromEntries(calls) }),
  };
}

/** Names from upstreams stand in bills and logs. */
function isName(text: string): boolean {
  return /^[a-z][a-z0-9_.:-]{0,63}$/.test(text);
}

/** What a client can do about a file id that it may not name. */
export function sendContent(member: string): string {
  return `the file belongs to one vendor's account. Send ${member}; or the operator can allow it in vendor_state of ` +
    "your key's group";
}

/** The plain name of a tool: its type without the date, `web_search` of `web_search_20250305`. */
function plainToolName(type: string): string {
  const plain = type.replace(/_(?:\d{8}|\d{4}_\d{2}_\d{2})$/, "");
  return OLDER_NAMES[plain] ?? plain;
}

/** What a tool asks for; undefined for one that costs nothing but tokens. */
export function extraOfTool(tool: JsonObject, { plainTools, remoteTools }: ExtrasTable): Extra | undefined {
  // Messages: a tool without a type is the client's.
  if (typeof tool.type !== "string") return undefined;
  const name = plainToolName(tool.type);
  if (remoteTools.has(name)) return { asks: "remote_mcp" };
  if (!plainTools.has(name)) return { asks: "hosted_tool", tool: name };
  // A shell is the client's unless it runs in a container of the vendor's.
  const { environment } = tool;
  const isHosted = name === "shell" && isObject(environment) && environment.type !== "local";
  return isHosted ? { asks: "hosted_tool", tool: name } : undefined;
}

/** Path, inside a hosted tool, of the first member that names state of the vendor's. */
export function stateInTool(value: Json | undefined, path = ""): string | undefined {
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      const found = stateInTool(item, `${path}[${index}]`);
      if (found !== undefined) return found;
    }
    return undefined;
  }
  if (!isObject(value)) return undefined;
  for (const [name, inner] of Object.entries(value)) {
    const at = `${path}.${name}`;
    if (namesState(name, inner)) return at;
    const found = stateInTool(inner, at);
    if (found !== undefined) return found;
  }
  return undefined;
}

/**
 * The name for which servers that read names without regard to case, as those written in Go do, take this one. They
 * take U+017F for an s and U+212A for a k.
 */
export function usualName(name: string): string {
  // Lower case of U+212A is a plain k.
  return UNUSUAL.test(name) ? name.toLowerCase().replaceAll("\u017f", "s") : name;
}

/** Paths, inside a tool, of members that some servers take for another one. Tools of a namespace have their own. */
export function spellingsInTool(value: Json | undefined, path: JsonPath = []): JsonPath[] {
  if (Array.isArray(value)) return value.flatMap((item, index) => spellingsInTool(item, [...path, index]));
  if (!isObject(value)) return [];
  const found: JsonPath[] = [];
  for (const name in value) {
    const inner = value[name];
    const usual = usualName(name);
    if (usual !== name && TOOL_MEMBERS.has(usual)) found.push([...path, name]);
    else if (typeof inner === "object" && !OWN_NAMES.has(name) && (name !== "tools" || value.type !== "namespace")) {
      found.push(...spellingsInTool(inner, [...path, name]));
    }
  }
  return found;
}

/** Whether a member names state of the vendor's. */
export function namesState(name: string, value: Json | undefined): boolean {
  return STATE_MEMBERS.has(name) && asksForSomething(value) && !isObject(value);
}

/** False for a value that a client sends to ask for nothing. */
export function asksForSomething(value: Json | undefined): boolean {
  if (value === undefined || value === null || value === false || value === "") return false;
  return !Array.isArray(value) || value.length > 0;
}

/** What a member's value asks for; undefined if that costs nothing but tokens. */
export function extraOfMember(value: Json | undefined, rule: MemberRule): Extra | undefined {
  if (!asksForSomething(value)) return undefined;
  switch (rule.asks) {
    case "service_tier": {
      if (typeof value !== "string" || rule.plain.includes(value)) return undefined;
      return { asks: "service_tier", tier: (rule.prefix ?? "") + (rule.names?.[value] ?? value) };
    }
    case "vendor_state": {
      const named = rule.only === undefined || (isObject(value) && asksForSomething(value[rule.only]));
      return named ? { asks: "vendor_state" } : undefined;
    }
    case "unpriced":
      return rule.notLists === true && Array.isArray(value) ? undefined : { asks: "unpriced" };
    default:
      return rule;
  }
}
