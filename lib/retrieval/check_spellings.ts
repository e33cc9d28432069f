/** Refuses members that some servers take for other ones. */
import type { z } from "zod";
import { GatewayError } from "../errors.ts";
import type { JsonObject } from "../json/mod.ts";
import { usualName } from "../protocols/extras.ts";

/**
 * Refuses members that differ from a known one in case alone. Members that the schema lacks are passed on, and an upstream
 * that reads names without regard to case would work on this member, while the gateway measured the other one.
 * @throws {GatewayError} `invalid`
 */
export function checkSpellings({ shape }: Pick<z.ZodObject, "shape">, body: JsonObject): void {
  for (const name in body) {
    const usual = usualName(name);
    if (usual === name || !Object.hasOwn(shape, usual)) continue;
    throw new GatewayError("invalid", `Cannot use ${JSON.stringify(name)}: expected "${usual}"`, { param: name });
  }
}
