/** Cross-origin access (CORS) for the origins that the operator lists. It is off by default. */

import type { HeaderValues } from "./head.ts";
import { EXPOSED_HEADERS } from "./header_list.ts";
import type { AnswerHeader } from "./router.ts";

/** Time for which a browser may cache a preflight, in seconds. */
const MAX_AGE_SECONDS = 7200;

/** Response headers that scripts of listed origins may read. */
const EXPOSED = Object.keys(EXPOSED_HEADERS).join(", ");

const VARY: AnswerHeader = ["vary", "origin"];

/**
 * Returns the answer to a preflight from a listed origin; `undefined` for every other OPTIONS request. `Authorization`
 * is listed because `*` does not include it; `*` allows all other headers.
 */
export function preflight(
  headers: HeaderValues,
  origins: readonly string[],
  methods: readonly string[],
): Response | undefined {
  if (headers.get("access-control-request-method") === null) return undefined;
  if (listedOrigin(headers, origins) === undefined) return undefined;
  return new Response(null, {
    status: 204,
    headers: {
      "access-control-allow-methods": methods.join(", "),
      "access-control-allow-headers": "authorization, x-api-key, content-type, *",
      "access-control-max-age": String(MAX_AGE_SECONDS),
    },
  });
}

/** Returns the CORS headers of a response. There are none if no origin is configured. */
export function corsHeaders(headers: HeaderValues, origins: readonly string[]): AnswerHeader[] {
  if (origins.length === 0) return [];
  const origin = listedOrigin(headers, origins);
  if (origin === undefined) return [VARY];
  return [["access-control-allow-origin", origin], ["access-control-expose-headers", EXPOSED], VARY];
}

/** Returns the request's origin if it is listed. Origins must be equal, including their case. */
function listedOrigin(headers: HeaderValues, origins: readonly string[]): string | undefined {
  const origin = headers.get("origin");
  return origins.find((listed) => listed === origin);
}
