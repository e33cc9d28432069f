/**
 * Features of requests that cost more than tokens or need permission: service tiers, hosted tools, remote MCP servers,
 * and state at the vendor. Each protocol has one table as data; lib/request checks the permissions.
 */
import { PLAIN_TIERS, type TokenUsage } from "./canonical/types.ts";
import { isObject, type Json, type JsonObject, type JsonPath } from "../json/mod.ts";

/** A feature that costs more than tokens or needs permission. */
export type Extra =
  /** A hosted tool, by its name in the configuration and prices. */
  | { asks: "hosted_tool"; tool: string }
  /** A service tier with a price of its own, by its name in the configuration and prices. */
  | { asks: "service_tier"; tier: string }
  /** An MCP server named by the client, which the vendor calls. */
  | { asks: "remote_mcp" }
  /** State at the vendor: a file, a store, a container. */
  | { asks: "vendor_state" }
  /** A feature whose cost no answer reports. */
  | { asks: "unpriced" }
  /** A context window that costs more beyond `over` tokens: for models with a longer one. */
  | { asks: "long_context"; over: number };

/** The feature of a body member. A member that is absent, null, false or an empty list uses no feature. */
export type MemberRule =
  | Extract<Extra, { asks: "hosted_tool" } | { asks: "remote_mcp" }>
  /** `notLists`: a list has another meaning. */
  | { asks: "unpriced"; notLists?: true }
  /** `plain`: values at the default price. `names`: tiers that the vendor bills under another name. */
  | { asks: "service_tier"; plain: readonly string[]; prefix?: string; names?: Readonly<Record<string, string>> }
  /** `only`: the member of the object that refers to the state; absent: the member itself does. */
  | { asks: "vendor_state"; only?: string; code?: string };

/** The features of one protocol. */
export interface ExtrasTable {
  members: Readonly<Record<string, MemberRule>>;
  /** Member by which the client bounds the calls of hosted tools: of the body, or of each tool; absent: there is none. */
  callLimit?: "max_tool_calls" | "max_uses";
  /** Types of tools that the client runs, or that cost only tokens. All other types are hosted. */
  plainTools: ReadonlySet<string>;
  /** Types of tools that are remote servers. */
  remoteTools: ReadonlySet<string>;
  /**
   * Hosted tools, by the member of a tool that asks for one, where tools have no types but members. `plainTools` and
   * `remoteTools` are names of members then.
   */
  toolMembers?: Readonly<Record<string, string>>;
  /** Tools defined outside of `tools`: in the member `tools` of entries of this list with these types. */
  nested?: { list: string; types: ReadonlySet<string> };
  /** Items that refer to vendor state by their `id` unless they have this member. */
  lookedUp?: Readonly<Record<string, string>>;
  /** Items whose `tools` list what a server offers and define nothing. */
  toolReports?: ReadonlySet<string>;
  /** Type of a tool choice that selects a hosted tool by `name`; absent: the choice has the tool's own type. */
  namedChoice?: string;
  /** Features of the header `anthropic-beta`, by name prefix. */
  betas?: Readonly<Record<string, Extra>>;
}

/** Members of a hosted tool or an item that refer to vendor state; `container` only as text. */
const STATE_MEMBERS: ReadonlySet<string> = new Set([
  "vector_store_ids",
  "file_id",
  "file_ids",
  "container_id",
  "skill_id",
  "container",
  "fileSearchStoreNames",
]);

/** Members of tools, of every protocol, at any depth. */
const TOOL_MEMBERS: ReadonlySet<string> = new Set([
  ...STATE_MEMBERS,
  ...["type", "name", "description", "function", "custom", "parameters", "strict", "format", "tools", "input_schema"],
  ...["environment", "definition", "model", "n", "size", "quality", "max_uses", "cache_control"],
  ...["server_url", "server_label", "connector_id", "authorization", "headers", "mcp_server_name"],
]);

/** Members with free content (model output, schemas, headers): names inside them have no meaning to the gateway. */
export const OWN_NAMES: ReadonlySet<string> = new Set([
  ...["arguments", "input", "parameters", "input_schema", "output_schema", "input_examples", "configs", "headers"],
]);

/** Characters of unusual spellings of a name. Few requests have one. */
const UNUSUAL = /[A-Z\u0080-\uffff]/;

/** Older names of tools. */
const OLDER_NAMES: Readonly<Record<string, string>> = { web_search_preview: "web_search" };

/**
 * Adds the features that an answer reports to its usage.
 * @param requestedTier the requested tier: the default tier is added only if another one was requested
 */
export function withReported(
  usage: TokenUsage,
  { tier, hostedCalls, requestedTier }: {
    tier?: string | undefined;
    hostedCalls?: Readonly<Record<string, number>> | undefined;
    requestedTier?: string | undefined;
  },
): TokenUsage {
  const isReported = tier !== undefined && (requestedTier !== undefined || !PLAIN_TIERS.has(tier)) && isName(tier);
  const calls = Object.entries(hostedCalls ?? {}).filter(([name, count]) => count > 0 && isName(name));
  if (!isReported && calls.length === 0) return usage;
  return {
    ...usage,
    ...(isReported && { tiers: [tier] }),
    ...(calls.length > 0 && { hostedCalls: Object.fromEntries(calls) }),
  };
}

/** Checks names from upstreams, which appear in bills and logs. */
function isName(text: string): boolean {
  return /^[a-z][a-z0-9_.:-]{0,63}$/.test(text);
}

/** Advice for a client that may not refer to a file id. */
export function sendContent(member: string): string {
  return `the file belongs to one vendor's account. Send ${member}; or the operator can allow it in vendor_state of ` +
    "your key's group";
}

/** The plain name of a tool: its type without the date, such as `web_search` for `web_search_20250305`. */
function plainToolName(type: string): string {
  const plain = type.replace(/_(?:\d{8}|\d{4}_\d{2}_\d{2})$/, "");
  return OLDER_NAMES[plain] ?? plain;
}

/** The feature of a tool; undefined if it costs only tokens. */
export function extraOfTool(tool: JsonObject, { plainTools, remoteTools }: ExtrasTable): Extra | undefined {
  // Messages: a tool without a type is run by the client.
  if (typeof tool.type !== "string") return undefined;
  const name = plainToolName(tool.type);
  if (remoteTools.has(name)) return { asks: "remote_mcp" };
  if (!plainTools.has(name)) return { asks: "hosted_tool", tool: name };
  // A shell is run by the client unless it has a container at the vendor.
  const { environment } = tool;
  const isHosted = name === "shell" && isObject(environment) && environment.type !== "local";
  return isHosted ? { asks: "hosted_tool", tool: name } : undefined;
}

/** The feature of a tool's member; undefined if it costs only tokens. */
export function extraOfToolMember(
  name: string,
  { plainTools, remoteTools, toolMembers = {} }: ExtrasTable,
): Extra | undefined {
  if (plainTools.has(name)) return undefined;
  if (remoteTools.has(name)) return { asks: "remote_mcp" };
  return { asks: "hosted_tool", tool: Object.hasOwn(toolMembers, name) ? toolMembers[name] ?? name : name };
}

/** Path, inside a hosted tool, of the first member that refers to vendor state. */
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
 * The name that servers with case-insensitive names, such as those written in Go, read this one as. They fold U+017F to
 * s and U+212A to k.
 */
export function usualName(name: string): string {
  // toLowerCase() maps U+212A to k, but not U+017F to s.
  return UNUSUAL.test(name) ? name.toLowerCase().replaceAll("\u017f", "s") : name;
}

/** Paths, inside a tool, of unusual spellings of members. A namespace's tools are checked separately. */
export function spellingsInTool(value: Json | undefined, path: JsonPath = []): JsonPath[] {
  if (Array.isArray(value)) return value.flatMap((item, index) => spellingsInTool(item, [...path, index]));
  if (!isObject(value)) return [];
  const found: JsonPath[] = [];
  for (const name in value) {
    const inner = value[name];
    const usual = usualName(name);
    if (usual !== name && TOOL_MEMBERS.has(usual)) found.push([...path, name]);
    else if (typeof inner === "object" && !OWN_NAMES.has(name) && (name !== "tools" || value.type !== "namespace")) {
      for (const spelling of spellingsInTool(inner, [...path, name])) found.push(spelling);
    }
  }
  return found;
}

/** Returns whether a member refers to vendor state. */
export function namesState(name: string, value: Json | undefined): boolean {
  return STATE_MEMBERS.has(name) && asksForSomething(value) && !isObject(value);
}

/** Returns whether a value uses a feature at all. */
export function asksForSomething(value: Json | undefined): boolean {
  if (value === undefined || value === null || value === false || value === "") return false;
  return !Array.isArray(value) || value.length > 0;
}

/** The feature of a member's value; undefined if it costs only tokens. */
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
