import { greet } from "../../../lib/status/health.ts";

/** Claude Code checks with it, without a key, that a server answers. */
export function GET(): Response {
  return greet();
}
