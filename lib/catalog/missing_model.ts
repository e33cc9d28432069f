/** The error for a model that does not exist or may not be used. */
import { type Caller, mayUse } from "../access/permissions.ts";
import { GatewayError } from "../errors.ts";
import { type Catalog, isExpired } from "./catalog.ts";
import type { Model } from "./model.ts";

/** The error, and the id that the client probably intended. */
export interface MissingModel {
  error: GatewayError;
  /** Id of the only model that the caller may use and whose id is `<vendor>/<name>`. */
  suggestion?: string;
}

interface Asking {
  gateway: { catalog: Catalog; now: () => number };
  caller: Pick<Caller, "group" | "rules">;
}

/** Creates the error for an unknown name or an expired model. It names no model that the caller may not use. */
export function missingModel(name: string, { gateway, caller }: Asking): MissingModel {
  const now = gateway.now();
  const isAllowed = ({ id }: Model): boolean => mayUse(caller, id);
  const found = gateway.catalog.find(name);
  if (found !== undefined && isAllowed(found) && isExpired(found, now)) {
    return { error: notFound(`Model "${name}" expired on ${found.expiration_date}`) };
  }
  const similar = gateway.catalog.named(name).filter((model) => isAllowed(model) && !isExpired(model, now));
  const suggestion = similar.length === 1 ? similar[0]?.id : undefined;
  if (suggestion === undefined) return { error: notFound(`Model "${name}" does not exist`) };
  return { error: notFound(`Model "${name}" does not exist; did you mean ${suggestion}?`), suggestion };
}

function notFound(message: string): GatewayError {
  return new GatewayError("not_found", message, { param: "model", code: "model_not_found" });
}
