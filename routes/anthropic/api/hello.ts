import { greet } from "../../../lib/status/health.ts";

/** Answers Claude Code, which checks at this path, without a key, that a server answers. */
export function GET(): Response {
  return greet();
}
