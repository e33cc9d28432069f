/**
 * Finds features of requests that cost more than tokens or need permission: service tiers, hosted tools, remote MCP
 * servers, and state at the vendor. Each protocol has a table of its features; lib/request checks the permissions.
 */
import { PLAIN_TIERS, type TokenUsage } from "./canonical/types.ts";
import { isObject, type Json, type JsonObject, type JsonPath } from "../json/mod.ts";

/** A feature that costs more than tokens or needs permission. */
export type Extra =
  /** A hosted tool, by its name in the configuration and prices. */
  | { feature: "hosted_tool"; tool: string }
  /** A service tier with a price of its own, by its name in the configuration and prices. */
  | { feature: "service_tier"; tier: string }
  /** An MCP server named by the client, which the vendor calls. */
  | { feature: "remote_mcp" }
  /** State at the vendor, such as a file, a vector store or a container. */
  | { feature: "vendor_state" }
  /** A feature whose cost is in no answer, or cannot be bounded in advance. */
  | { feature: "unpriced" }
  /** A setting of the server, which affects requests of others or the server's network. */
  | { feature: "server" }
  /** A long context, which costs more beyond `over` tokens. It matters only for models with a longer context window. */
  | { feature: "long_context"; over: number };

/** The feature of a body member. A member that is absent, null, false or an empty list uses no feature. */
export type MemberRule =
  | Extract<Extra, { feature: "hosted_tool" } | { feature: "remote_mcp" } | { feature: "server" }>
  /** `notLists`: a list as value has another meaning, and uses no feature. */
  | { feature: "unpriced"; notLists?: true }
  /** `plain`: values at the default price. `names`: tiers that the vendor bills under another name. */
  | { feature: "service_tier"; plain: readonly string[]; prefix?: string; names?: Readonly<Record<string, string>> }
  /** `only`: the member inside the object that refers to the state; absent: the member itself does. */
  | { feature: "vendor_state"; only?: string; code?: string };

/** The features of one protocol. */
export interface ExtrasTable {
  members: Readonly<Record<string, MemberRule>>;
  /** Member by which the client limits the calls of hosted tools: of the body (`max_tool_calls`), or of each tool. */
  callLimit?: "max_tool_calls" | "max_uses";
  /** Types of tools that the client runs, or that cost only tokens. All other types are hosted. */
  plainTools: ReadonlySet<string>;
  /** Types of tools that are remote servers. */
  remoteTools: ReadonlySet<string>;
  /**
   * For protocols whose tools have no type: the hosted tool by the member of a tool that asks for it. `plainTools` and
   * `remoteTools` are names of members then.
   */
  toolMembers?: Readonly<Record<string, string>>;
  /** The place where tools are defined besides `tools`: the member `tools` of this list's entries with these types. */
  nested?: { list: string; types: ReadonlySet<string> };
  /** Types of items that refer to vendor state by their `id`, unless they have the member named here. */
  lookedUp?: Readonly<Record<string, string>>;
  /** Types of items whose `tools` report what a server offers, and define no tools. */
  toolReports?: ReadonlySet<string>;
  /** Type of a tool choice that selects a hosted tool by `name`; absent: the choice has the type of the tool. */
  namedChoice?: string;
  /** Features that the header `anthropic-beta` asks for, by the prefix of their name. */
  betas?: Readonly<Record<string, Extra>>;
}

/** Members of hosted tools and items that refer to vendor state, unless their value is an object. */
const STATE_MEMBERS: ReadonlySet<string> = new Set(
  `vector_store_ids file_id file_ids container_id skill_id container fileSearchStoreNames`.split(/\s+/),
);

/** Names of the members that tools of all protocols have, at any depth. */
const TOOL_MEMBERS: ReadonlySet<string> = new Set([
  ...STATE_MEMBERS,
  ...["type", "name", "description", "function", "custom", "parameters", "strict", "format", "tools", "input_schema"],
  ...["environment", "definition", "model", "n", "size", "quality", "max_uses", "cache_control"],
  ...["server_url", "server_label", "connector_id", "authorization", "headers", "mcp_server_name"],
]);

/**
 * Members with free content, such as model output, schemas and headers. Names inside them mean nothing to the gateway.
 */
export const OWN_NAMES: ReadonlySet<string> = new Set([
  ...["arguments", "input", "parameters", "input_schema", "output_schema", "input_examples", "configs", "headers"],
]);

/** Members of hosts and servers with OpenAI's or Anthropic's protocols, each in several of the protocols. */
export const HOSTS_MEMBERS: ExtrasTable["members"] = {
  // xAI and Qwen.
  search_parameters: { feature: "hosted_tool", tool: "web_search" },
  enable_search: { feature: "hosted_tool", tool: "web_search" },
  enable_code_interpreter: { feature: "hosted_tool", tool: "code_interpreter" },
  // OpenRouter: web search, file parser, model router; a configuration of the account, which may choose another model.
  plugins: { feature: "hosted_tool", tool: "plugins" },
  preset: { feature: "vendor_state" },
  // LiteLLM: its members go before those of the request.
  extra_body: { feature: "unpriced" },
  // vLLM: the request's priority. vLLM and SGLang: hosts that the server contacts. SGLang: code that the server runs.
  priority: { feature: "server" },
  kv_transfer_params: { feature: "server" },
  ec_transfer_params: { feature: "server" },
  bootstrap_host: { feature: "server" },
  custom_logit_processor: { feature: "server" },
};

/**
 * Names of the output limit and of the number of answers, by which a budget holds the cost of a request: those of all
 * protocols, of llama.cpp (`n_predict`, `n_cmpl`), Ollama (`num_predict`), SGLang and TGI (`max_new_tokens`), older
 * versions of vLLM (`best_of`) and of Transformers. Servers with several protocols read the names of one in another,
 * such as llama.cpp `max_completion_tokens` and `n` in responses requests.
 */
const OUTPUT_LIMITS = [
  ...["max_tokens", "max_completion_tokens", "max_output_tokens", "max_new_tokens", "num_predict", "n_predict"],
  ...["n", "n_cmpl", "best_of", "num_return_sequences"],
];

/** Returns the members that would set another output limit or number of answers than those that a protocol has. */
export function otherLimits(own: readonly string[]): ExtrasTable["members"] {
  return Object.fromEntries(
    OUTPUT_LIMITS.filter((name) => !own.includes(name)).map((name) => [name, { feature: "unpriced" }]),
  );
}

/** Characters that only unusual spellings of a name have. Few requests have any. */
const UNUSUAL_CHARACTER = /[A-Z\u0080-\uffff]/;

/**
 * Returns the usage with the service tier and the calls of hosted tools that the answer reports.
 * @param requestedTier a tier at the default price is added only if the client requested another
 */
export function withReported(
  usage: TokenUsage,
  { tier, hostedCalls, requestedTier }: {
    tier?: string | undefined;
    hostedCalls?: Readonly<Record<string, number>> | undefined;
    requestedTier?: string | undefined;
  },
): TokenUsage {
  const hasTier = tier !== undefined && (requestedTier !== undefined || !PLAIN_TIERS.has(tier)) && isValidName(tier);
  const calls = Object.entries(hostedCalls ?? {}).filter(([name, count]) => count > 0 && isValidName(name));
  if (!hasTier && calls.length === 0) return usage;
  return {
    ...usage,
    ...(hasTier && { tiers: [tier] }),
    ...(calls.length > 0 && { hostedCalls: Object.fromEntries(calls) }),
  };
}

/** True if a text is a valid name. Names from upstreams appear in bills and logs. */
function isValidName(text: string): boolean {
  return /^[a-z][a-z0-9_.:-]{0,63}$/.test(text);
}

/** Returns the advice for a client that may not refer to a file at the vendor: to send `member` instead. */
export function sendContent(member: string): string {
  return `the file belongs to one vendor's account. Send ${member}; or the operator can allow it in vendor_state of ` +
    "your key's group";
}

/** Returns the plain name of a tool: its type without the date, such as `web_search` for `web_search_20250305`. */
function plainToolName(type: string): string {
  const plain = type.replace(/_(?:\d{8}|\d{4}_\d{2}_\d{2})$/, "");
  return plain === "web_search_preview" ? "web_search" : plain;
}

/** Returns the feature that a tool uses; undefined if it costs only tokens. */
export function extraOfTool(tool: JsonObject, { plainTools, remoteTools }: ExtrasTable): Extra | undefined {
  // Messages: a tool without a type is run by the client.
  if (typeof tool.type !== "string") return undefined;
  const name = plainToolName(tool.type);
  if (remoteTools.has(name)) return { feature: "remote_mcp" };
  if (!plainTools.has(name)) return { feature: "hosted_tool", tool: name };
  return name === "shell" && hasContainer(tool) ? { feature: "hosted_tool", tool: name } : undefined;
}

/** Returns whether a shell has a container at the vendor. Any other shell is run by the client. */
export function hasContainer({ environment }: JsonObject): boolean {
  return isObject(environment) && environment.type !== "local";
}

/** Returns the feature that a member of a tool uses; undefined if it costs only tokens. */
export function extraOfToolMember(
  name: string,
  { plainTools, remoteTools, toolMembers = {} }: ExtrasTable,
): Extra | undefined {
  if (plainTools.has(name)) return undefined;
  if (remoteTools.has(name)) return { feature: "remote_mcp" };
  return { feature: "hosted_tool", tool: Object.hasOwn(toolMembers, name) ? toolMembers[name] ?? name : name };
}

/** Returns the path of the first member of a hosted tool that refers to vendor state; undefined if none does. */
export function stateInTool(value: Json | undefined, path = ""): string | undefined {
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      const innerPath = stateInTool(item, `${path}[${index}]`);
      if (innerPath !== undefined) return innerPath;
    }
    return undefined;
  }
  if (!isObject(value)) return undefined;
  for (const [name, inner] of Object.entries(value)) {
    const memberPath = `${path}.${name}`;
    if (namesState(name, inner)) return memberPath;
    const innerPath = stateInTool(inner, memberPath);
    if (innerPath !== undefined) return innerPath;
  }
  return undefined;
}

/**
 * Returns a name as servers with case-insensitive names read it, such as those written in Go. They fold U+017F to s and
 * U+212A to k.
 */
export function usualName(name: string): string {
  // toLowerCase() maps U+212A to k, but not U+017F to s.
  return UNUSUAL_CHARACTER.test(name) ? name.toLowerCase().replaceAll("\u017f", "s") : name;
}

/**
 * Returns the name among known ones that a server may read instead of this one: as `usualName`, or with underscores
 * where servers that read protocol buffers as JSON also accept capitals; undefined if there is none or it is the same.
 */
export function respelled(name: string, isKnown: (name: string) => boolean): string | undefined {
  const usual = usualName(name);
  if (usual === name) return undefined;
  if (isKnown(usual)) return usual;
  const separated = usualName(name.replace(/[A-Z]/g, "_$&"));
  return isKnown(separated) ? separated : undefined;
}

/** Returns the usual name of a tool's member; the same name if it is no unusual spelling of one. */
export function toolMemberOf(name: string): string {
  return respelled(name, isToolMember) ?? name;
}

function isToolMember(name: string): boolean {
  return TOOL_MEMBERS.has(name);
}

/** Returns the paths of a tool's members with unusual spellings. Tools of a namespace are checked separately. */
export function spellingsInTool(value: Json | undefined, path: JsonPath = []): JsonPath[] {
  if (Array.isArray(value)) return value.flatMap((item, index) => spellingsInTool(item, [...path, index]));
  if (!isObject(value)) return [];
  const spellings: JsonPath[] = [];
  for (const name in value) {
    const inner = value[name];
    if (toolMemberOf(name) !== name) spellings.push([...path, name]);
    else if (typeof inner === "object" && !OWN_NAMES.has(name) && (name !== "tools" || value.type !== "namespace")) {
      for (const spelling of spellingsInTool(inner, [...path, name])) spellings.push(spelling);
    }
  }
  return spellings;
}

/** Returns whether a member refers to vendor state. */
export function namesState(name: string, value: Json | undefined): boolean {
  return STATE_MEMBERS.has(name) && asksForSomething(value) && !isObject(value);
}

/** Returns whether a value asks for anything: null, false, an empty text or an empty list do not. */
export function asksForSomething(value: Json | undefined): boolean {
  if (value === undefined || value === null || value === false || value === "") return false;
  return !Array.isArray(value) || value.length > 0;
}

/** Returns the feature that the value of a body member uses; undefined if it costs only tokens. */
export function extraOfMember(value: Json | undefined, rule: MemberRule): Extra | undefined {
  if (!asksForSomething(value)) return undefined;
  switch (rule.feature) {
    case "service_tier": {
      if (typeof value !== "string" || rule.plain.includes(value)) return undefined;
      const { prefix = "", names = {} } = rule;
      return { feature: "service_tier", tier: prefix + (Object.hasOwn(names, value) ? names[value] : value) };
    }
    case "vendor_state": {
      const refersToState = rule.only === undefined || (isObject(value) && asksForSomething(value[rule.only]));
      return refersToState ? { feature: "vendor_state" } : undefined;
    }
    case "unpriced":
      return rule.notLists === true && Array.isArray(value) ? undefined : { feature: "unpriced" };
    default:
      return rule;
  }
}
