import { greet } from "../../../lib/request/health_endpoints.ts";

/** Claude Code asks here, without a key, whether anybody is there. */
export function GET(): Response {
  return greet();
}
