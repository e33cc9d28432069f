import type { RouteContext } from "../lib/http/router.ts";
import { ready } from "../lib/pipeline/health.ts";

export function GET(_request: Request, context: RouteContext): Promise<Response> {
  return ready(context.gateway);
}
