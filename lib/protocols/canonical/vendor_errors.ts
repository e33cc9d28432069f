/** Error texts that clients get in place of the vendor's own. */
import type { ErrorKind } from "../../errors.ts";

/** Messages by kind. Errors of kind `invalid` concern the request, so the vendor's own message takes precedence. */
export const VENDOR_ERRORS = {
  exhausted: "The rate limit of the model's vendor is reached",
  not_found: "The model's vendor does not have this model",
  overloaded: "The model's vendor is overloaded",
  timeout: "The model's vendor took too long to answer",
  too_large: "The request is larger than the model's vendor accepts",
  invalid: "The model's vendor refused this request",
  upstream: "The model's vendor failed to answer",
} as const satisfies Partial<Record<ErrorKind, string>>;

/** Kinds by HTTP status, without those of OpenAI's protocols, which vendors use with other meanings. */
export const KIND_BY_STATUS: ReadonlyMap<number, ErrorKind> = new Map<number, ErrorKind>([
  [400, "invalid"],
  [404, "not_found"],
  [408, "timeout"],
  [413, "too_large"],
  [422, "invalid"],
  [429, "exhausted"],
  [503, "overloaded"],
  [504, "timeout"],
  [529, "overloaded"],
]);

/** Message for a key of the gateway that the vendor refused. */
export const REFUSED_CREDENTIALS = "The model's vendor refused the gateway's credentials";

/** Message for an account of the gateway without credit. */
export const NO_CREDIT = "The credit at the model's vendor is used up";

/** Limit of a vendor's message that is passed on, in UTF-16 code units. */
export const MAX_ERROR_MESSAGE = 1_000;

/** Returns the message for a kind of error. */
export function vendorErrorMessage(kind: ErrorKind): string {
  return Object.hasOwn(VENDOR_ERRORS, kind)
    ? VENDOR_ERRORS[kind as keyof typeof VENDOR_ERRORS]
    : VENDOR_ERRORS.upstream;
}
