/** What a caller may do, by the rules of its group. */
import type { Group } from "../config.ts";
import { GatewayError } from "../errors.ts";
import type { Caller } from "./caller.ts";
import type { Endpoint } from "./table.ts";

/** @throws {GatewayError} `forbidden` where the caller's group may not call the endpoint */
export function requireEndpoint(caller: Caller, endpoint: Endpoint): void {
  const { endpoints } = caller.group;
  if (endpoints.includes("*") || endpoints.includes(endpoint)) return;
  throw new GatewayError("forbidden", `This API key may not use the endpoint "${endpoint}"`);
}

/** @throws {GatewayError} `forbidden` where the caller's group may not use the model */
export function requireModel(caller: Caller, modelId: string): void {
  if (mayUse(caller.group, modelId)) return;
  throw new GatewayError("forbidden", `This API key may not use model "${modelId}"`, { param: "model" });
}

/** True where one of the group's globs matches the whole id. */
export function mayUse(group: Group, modelId: string): boolean {
  return group.models.some((glob) => matchesGlob(glob, modelId));
}

/** `*` stands for any text, also none. The first place that fits is always right, so the scan never goes back. */
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
