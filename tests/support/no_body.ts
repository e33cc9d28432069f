/** The body of requests without one, for contexts that a test creates. */
import type { RouteContext } from "../../lib/server/router.ts";

/** Reserves nothing. */
export const NO_BODY: RouteContext["body"] = {
  readForm: () => Promise.resolve(new URLSearchParams()),
  arrived() {},
  reserve() {},
  reserveAnswer() {},
  holdAnswer() {},
  keepUntil() {},
};
