import type { RouteContext } from "../lib/server/router.ts";
import { alive } from "../lib/request/health_endpoints.ts";

export function GET(_request: Request, { gateway }: RouteContext): Promise<Response> {
  return alive(gateway);
}
