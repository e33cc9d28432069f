import type { RouteContext } from "../lib/server/router.ts";
import { metrics } from "../lib/request/metrics_endpoint.ts";

export function GET(_request: Request, { gateway }: RouteContext): Promise<Response> {
  return metrics(gateway);
}
