/** Rejects members whose names differ from known names only in case. */
import type { z } from "zod";
import { GatewayError } from "../errors.ts";
import type { JsonObject } from "../json/mod.ts";
import { usualName } from "../protocols/extras.ts";

/**
 * Rejects members whose names differ from a known name only in case. Unknown members are passed on, so an upstream with
 * case-insensitive names would use such a member, although the gateway has measured the other one.
 * @throws {GatewayError} `invalid`
 */
export function checkSpellings({ shape }: Pick<z.ZodObject, "shape">, body: JsonObject): void {
  for (const name in body) {
    const usual = usualName(name);
    if (usual === name || !Object.hasOwn(shape, usual)) continue;
    throw new GatewayError("invalid", `Cannot use ${JSON.stringify(name)}: expected "${usual}"`, {
      param: name,
      rule: `expected "${usual}"`,
    });
  }
}
