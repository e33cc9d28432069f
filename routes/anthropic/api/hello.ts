import { greet } from "../../../lib/status/health.ts";

/** Claude Code asks here, without a key, whether anybody is there. */
export function GET(): Response {
  return greet();
}
