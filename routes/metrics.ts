import type { RouteContext } from "../lib/server/router.ts";
import { metrics } from "../lib/status/metrics.ts";

export function GET(_request: Request, { gateway }: RouteContext): Promise<Response> {
  return metrics(gateway);
}
