import type { RouteContext } from "../lib/server/router.ts";
import { answerReadiness } from "../lib/status/health.ts";

export function GET(_request: Request, context: RouteContext): Promise<Response> {
  return answerReadiness(context);
}
