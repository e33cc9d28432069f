/** What a caller may do: what its group and its key both allow. */
import { GatewayError } from "../errors.ts";
import type { Caller } from "./caller.ts";
import type { Endpoint, Protocol } from "./access_table.ts";

/** What permissions are made of. A group by itself is one with `rules` of `{}`. */
export type Permitted = Pick<Caller, "group" | "rules">;

/** What decides about models alone. */
interface PermittedModels {
  group: Pick<Permitted["group"], "models">;
  rules: Pick<Permitted["rules"], "models">;
}

/** Endpoints that speak a text protocol, which has their name. */
const SPEAKING: ReadonlySet<Endpoint> = new Set<Protocol>(["chat", "responses", "messages"]);

/** @throws {GatewayError} `forbidden` where the caller may not call the endpoint */
export function requireEndpoint({ group, rules }: Permitted, endpoint: Endpoint): void {
  if (allows(group.endpoints, endpoint) && allows(rules.endpoints, endpoint)) return;
  throw new GatewayError("forbidden", `This API key may not use the endpoint "${endpoint}"`);
}

/** @throws {GatewayError} `forbidden` where the caller may not speak the protocol */
export function requireProtocol({ group }: Permitted, protocol: Protocol): void {
  if (allows(group.protocols, protocol)) return;
  throw new GatewayError("forbidden", `This API key may not use the protocol "${protocol}"`);
}

/**
 * @param name what the request calls the model
 * @throws {GatewayError} `forbidden` where the caller may not use the model
 */
export function requireModel(caller: Permitted, modelId: string, name: string = modelId): void {
  if (mayUse(caller, modelId)) return;
  throw new GatewayError("forbidden", `This API key may not use model "${name}"`, { param: "model" });
}

/** True where a glob of the group, and one of the key if it has any, matches the whole id. */
export function mayUse({ group, rules }: PermittedModels, modelId: string): boolean {
  const matches = (glob: string): boolean => matchesGlob(glob, modelId);
  return group.models.some(matches) && (rules.models === undefined || rules.models.some(matches));
}

/** True where the caller may call the endpoint and speak what it speaks. */
export function mayCall({ group, rules }: Permitted, endpoint: Endpoint): boolean {
  return allows(group.endpoints, endpoint) && allows(rules.endpoints, endpoint) &&
    (!SPEAKING.has(endpoint) || allows(group.protocols, endpoint));
}

/** An absent list narrows nothing. */
function allows(names: readonly string[] | undefined, name: string): boolean {
  return names === undefined || names.includes("*") || names.includes(name);
}

/** `*` stands for any text, also none. The first place that fits is always right, so the scan never goes back. */
function matchesGlob(glob: string, text: string): boolean {
  // What most groups say.
  if (glob === "*") return true;
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
