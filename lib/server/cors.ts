/** Cross-origin access: off, but for the origins the operator lists. */

import type { HeaderValues } from "./head.ts";
import { EXPOSED_HEADERS } from "./header_list.ts";
import type { AnswerHeader } from "./router.ts";

/** Time for which a browser may cache a preflight, in seconds. */
const MAX_AGE_SECONDS = 7200;

/** Headers a page's script may read. */
const EXPOSED = EXPOSED_HEADERS.join(", ");

const VARY: AnswerHeader = ["vary", "origin"];

/**
 * The answer to an OPTIONS request that is a preflight from a listed origin; `undefined` for every other one.
 * `Authorization` is named because the star does not cover it; the star allows all other headers.
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

/** Headers for any response. None at all where no origin is configured. */
export function corsHeaders(headers: HeaderValues, origins: readonly string[]): AnswerHeader[] {
  if (origins.length === 0) return [];
  const origin = listedOrigin(headers, origins);
  if (origin === undefined) return [VARY];
  return [["access-control-allow-origin", origin], ["access-control-expose-headers", EXPOSED], VARY];
}

/** The list's own copy of the request's origin. Origins are compared whole and as they are written. */
function listedOrigin(headers: HeaderValues, origins: readonly string[]): string | undefined {
  const origin = headers.get("origin");
  return origins.find((listed) => listed === origin);
}
