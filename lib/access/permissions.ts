/** Checks the permissions of a caller: both its group and its key must allow a request. */
import { GatewayError } from "../errors.ts";
import { type Protocol, PROTOCOLS } from "../protocols/canonical/types.ts";
import type { Endpoint } from "./access_table.ts";
import type { Group, KeyRules } from "../config.ts";

/** A group and the rules of a key. To check a group alone, the rules are `{}`. */
export type Permitted = Pick<Caller, "group" | "rules">;

/** The parts of a group and a key that are about models. */
interface PermittedModels {
  group: Pick<Permitted["group"], "models">;
  rules: Pick<Permitted["rules"], "models">;
}

/** Requires the permission to call an endpoint. @throws {GatewayError} `forbidden` without it */
export function requireEndpoint({ group, rules }: Permitted, endpoint: Endpoint): void {
  if (allows(group.endpoints, endpoint) && allows(rules.endpoints, endpoint)) return;
  throw new GatewayError("forbidden", `This API key may not use the endpoint "${endpoint}"`, {
    refusal: { permission: { of: "endpoint", name: endpoint } },
  });
}

/** Requires the permission to use a protocol. @throws {GatewayError} `forbidden` without it */
export function requireProtocol({ group }: Permitted, protocol: Protocol): void {
  if (allows(group.protocols, protocol)) return;
  throw new GatewayError("forbidden", `This API key may not use the protocol "${protocol}"`, {
    refusal: { permission: { of: "protocol", name: protocol } },
  });
}

/**
 * Requires the permission to use a model.
 * @param options `name`: name of the model in the request; `isKnown`: whether the catalog has it
 * @throws {GatewayError} `forbidden` without it
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

/**
 * Returns whether a caller may use a model: a glob of the group and, if the key has any, one of the key match its id.
 */
export function mayUse({ group, rules }: PermittedModels, modelId: string): boolean {
  return matchesAny(group.models, modelId) && (rules.models === undefined || matchesAny(rules.models, modelId));
}

function matchesAny(globs: readonly string[], text: string): boolean {
  for (const glob of globs) {
    // `*` is the most frequent glob, so it is compared first.
    if (glob === "*" || matchesGlob(glob, text)) return true;
  }
  return false;
}

/** Returns whether a caller may call an endpoint and use its protocol. */
export function mayCall({ group, rules }: Permitted, endpoint: Endpoint): boolean {
  return allows(group.endpoints, endpoint) && allows(rules.endpoints, endpoint) &&
    (!PROTOCOLS.some((protocol) => protocol === endpoint) || allows(group.protocols, endpoint));
}

/** Returns whether a list allows a name. An absent list allows everything. */
function allows(names: readonly string[] | undefined, name: string): boolean {
  return names === undefined || names.includes("*") || names.includes(name);
}

/**
 * Returns whether a glob, in which `*` matches any text or none, matches a whole text. It is enough to match each part
 * at its first occurrence, so there is no backtracking.
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
    const index = text.indexOf(part, at);
    if (index === -1 || index + part.length > end) return false;
    at = index + part.length;
  }
  return true;
}

/** An authenticated API key, with its group and its own rules. */
export interface Caller {
  /** Id of the key, which is not a secret. */
  keyId: string;
  keyName: string;
  groupName: string;
  group: Group;
  /** Rules of the key, which narrow those of its group. */
  rules: KeyRules;
}

/** Returns the caller of a route that requires a key. @throws {GatewayError} `unauthenticated` if there is none */
export function requireCaller(caller: Caller | undefined): Caller {
  if (caller === undefined) throw new GatewayError("unauthenticated", "This request needs an API key");
  return caller;
}
