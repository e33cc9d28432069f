import type { RouteContext } from "../lib/server/router.ts";
import { ready } from "../lib/status/health.ts";

export function GET(_request: Request, context: RouteContext): Promise<Response> {
  return ready(context);
}
