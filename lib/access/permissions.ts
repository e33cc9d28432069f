/** Permissions of a caller: its group and its key must both allow a request. */
import { GatewayError } from "../errors.ts";
import type { Protocol } from "../protocols/canonical/types.ts";
import type { Endpoint } from "./access_table.ts";
import type { Group, KeyRules } from "../config.ts";

/** A group and the rules of a key. For a group alone the rules are `{}`. */
export type Permitted = Pick<Caller, "group" | "rules">;

/** The rules about models. */
interface PermittedModels {
  group: Pick<Permitted["group"], "models">;
  rules: Pick<Permitted["rules"], "models">;
}

/** Text endpoints, which are named as their protocols. */
const TEXT_ENDPOINTS: ReadonlySet<Endpoint> = new Set<Protocol>(["chat", "responses", "messages", "gemini"]);

/** Checks the endpoint. @throws {GatewayError} `forbidden` if the caller may not call it */
export function requireEndpoint({ group, rules }: Permitted, endpoint: Endpoint): void {
  if (allows(group.endpoints, endpoint) && allows(rules.endpoints, endpoint)) return;
  throw new GatewayError("forbidden", `This API key may not use the endpoint "${endpoint}"`, {
    refusal: { permission: { of: "endpoint", name: endpoint } },
  });
}

/** Checks the protocol. @throws {GatewayError} `forbidden` if the caller may not use it */
export function requireProtocol({ group }: Permitted, protocol: Protocol): void {
  if (allows(group.protocols, protocol)) return;
  throw new GatewayError("forbidden", `This API key may not use the protocol "${protocol}"`, {
    refusal: { permission: { of: "protocol", name: protocol } },
  });
}

/**
 * Checks the model.
 * @param names name of the model in the request; `isKnown` false: it is not in the catalog
 * @throws {GatewayError} `forbidden` if the caller may not use it
 */
export function requireModel(
  caller: Permitted,
  modelId: string,
  { name = modelId, isKnown = true }: { name?: string; isKnown?: boolean } = {},
): void {
  if (mayUse(caller, modelId)) return;
  throw new GatewayError("forbidden", `This API key may not use model "${name}"`, {
    param: "model",
    refusal: { permission: { of: "model", name: isKnown ? modelId : "other" } },
  });
}

/** Returns whether a glob of the group, and one of the key if it has any, matches the whole id. */
export function mayUse({ group, rules }: PermittedModels, modelId: string): boolean {
  return matchesAny(group.models, modelId) && (rules.models === undefined || matchesAny(rules.models, modelId));
}

function matchesAny(globs: readonly string[], text: string): boolean {
  for (const glob of globs) {
    // The most frequent glob.
    if (glob === "*" || matchesGlob(glob, text)) return true;
  }
  return false;
}

/** Returns true if the caller may call the endpoint and use its protocol. */
export function mayCall({ group, rules }: Permitted, endpoint: Endpoint): boolean {
  return allows(group.endpoints, endpoint) && allows(rules.endpoints, endpoint) &&
    (!TEXT_ENDPOINTS.has(endpoint) || allows(group.protocols, endpoint));
}

/** An absent list allows everything. */
function allows(names: readonly string[] | undefined, name: string): boolean {
  return names === undefined || names.includes("*") || names.includes(name);
}

/**
 * `*` matches any text, including none. Matching each part at its first occurrence is sufficient, so there is no
 * backtracking.
 */
function matchesGlob(glob: string, text: string): boolean {
  const parts = glob.split("*");
  const first = parts.shift() ?? "";
  const last = parts.pop();
  if (last === undefined) return first === text;
  if (text.length < first.length + last.length || !text.startsWith(first) || !text.endsWith(last)) return false;
  const end = text.length - last.length;
  let at = first.length;
  for (const part of parts) {
    const found = text.indexOf(part, at);
    if (found === -1 || found + part.length > end) return false;
    at = found + part.length;
  }
  return true;
}

/** An authenticated key with the rules of its group and its own. */
export interface Caller {
  /** Id of the key, not the key. */
  keyId: string;
  keyName: string;
  groupName: string;
  group: Group;
  /** Rules of the key, which narrow those of its group. */
  rules: KeyRules;
}

/** Returns the caller of a route that needs a key. @throws {GatewayError} `unauthenticated` */
export function requireCaller(caller: Caller | undefined): Caller {
  if (caller === undefined) throw new GatewayError("unauthenticated", "This request needs an API key");
  return caller;
}
